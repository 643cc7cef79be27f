from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from time import process_time
from typing import Any

import numpy as np
import pytest

from forecaster.vertical.cluster_rules.server import LATEST_SERVER
from forecaster.vertical.nodes.forecast import Aim, PoolForecast, pool_forecast
from forecaster.vertical.nodes.headroom import LABEL_MAX, Headroom, buffers, headroom, manifests, pressures
from forecaster.vertical.nodes.joint_samples import DemandWindow, past_ranks, samples
from forecaster.vertical.nodes.pools import Member, Pool, homes_of, pack, pools_of
from tests.support.cluster_rules import block, node, pod, resident
from tests.support.recommendations import GIB, NOON

WEB, BATCH = "shop/web", "shop/batch"
QUARTER = timedelta(minutes=15)


def member(workload: str = WEB, cpu: str = "1", *, replicas: int = 2, per_pod: float | None = 0.5) -> Member:
    return Member(workload, pod(block(cpu, "1Gi")), replicas, per_pod)


def window(*demand: tuple[str, float, float], later: int = 0, size: int = 100) -> DemandWindow:
    """A window in which each workload's cores rise from its first value to its second; memory is a GiB a core."""
    cpu = np.array([np.linspace(low, high, size) for _, low, high in demand])
    begin = NOON + later * QUARTER
    return DemandWindow(begin, begin + QUARTER, tuple(name for name, _, _ in demand), cpu, cpu * GIB)


def ahead(
    *windows: DemandWindow, pool: Pool, members: list[Member], residents: list[Any] | None = None
) -> PoolForecast:
    aim = Aim(0.95, np.random.default_rng(0), LATEST_SERVER)
    return pool_forecast(pool, members, residents or [], windows, aim)


def pool(*nodes: Any) -> Pool:
    return pools_of(nodes or (node("n1"),))[0]


def on(name: str, workload: str, cpu: str = "1", **more: Any) -> Any:
    return resident(name, cpu, workload=workload, **more)


class TestPools:
    def test_nodes_are_grouped_by_the_label_of_their_provisioner(self) -> None:
        nodes = [
            node("a", labels={"karpenter.sh/nodepool": "spot"}),
            node("b", labels={"karpenter.sh/nodepool": "web"}),
            node("c"),
        ]
        assert [(pool.name, len(pool.nodes)) for pool in pools_of(nodes)] == [("nodes", 1), ("spot", 1), ("web", 1)]

    def test_pools_of_one_name_or_of_long_names_have_headroom_of_their_own(self) -> None:
        """A NodePool of Karpenter may have the name of a node group; long names may differ in the last sign only."""
        long = "shop-production-general-purpose-eu-central-1"
        groups = [{"eks.amazonaws.com/nodegroup": name} for name in ("default", f"{long}a", f"{long}b")]
        pools = pools_of(
            [node(str(i), labels=labels) for i, labels in enumerate([{"karpenter.sh/nodepool": "default"}, *groups])]
        )
        made = [buffers(Headroom(pool.name, 1, 1.0, GIB, None, ""), pool)[0] for pool in pools]
        assert len({pool.name for pool in pools}) == len({template["metadata"]["name"] for template in made}) == 4
        assert [template["template"]["spec"]["nodeSelector"] for template in made] == [
            {pool.label: pool.nodes[0].labels[pool.label]} for pool in pools
        ]
        assert all(len(template["metadata"]["labels"]["forecaster/pool"]) <= LABEL_MAX for template in made)

    def test_the_home_of_a_workload_is_the_pool_with_most_of_its_pods(self) -> None:
        both = pools_of([node("a", labels={"karpenter.sh/nodepool": "spot"}), node("b")])
        pods = [resident("a", workload=WEB), resident("a", workload=WEB), resident("b", workload=WEB)]
        assert homes_of(pods, both) == {WEB: "spot"}


class TestPacking:
    def test_free_room_is_used_before_nodes_are_added(self) -> None:
        assert pack(pool(), [(member(), 4)], [], LATEST_SERVER).new_nodes == 0
        assert pack(pool(), [(member(), 5)], [], LATEST_SERVER).new_nodes == 1

    def test_a_new_node_carries_the_daemons_of_its_kind(self) -> None:
        daemon = resident("n1", "500m", daemon=True)
        assert pack(pool(), [(member(), 6)], [daemon], LATEST_SERVER).new_nodes == 1
        assert pack(pool(), [(member(), 7)], [daemon], LATEST_SERVER).new_nodes == 2

    def test_a_pod_that_no_node_takes_is_homeless(self) -> None:
        packing = pack(pool(), [(member(cpu="5"), 2)], [], LATEST_SERVER)
        assert (packing.new_nodes, packing.unplaced) == (0, 2)

    def test_a_workload_that_needs_a_thousand_nodes_is_packed_in_a_moment(self) -> None:
        """Reading all nodes again for each new one took 12 s, for each of eight windows of a cycle."""
        nodes = [node(f"n{i}") for i in range(1_000)]
        full = [resident(host.name, "4", workload=BATCH) for host in nodes]
        began = process_time()
        assert pack(pool(*nodes), [(member(cpu="4"), 2_000)], full, LATEST_SERVER).new_nodes == 1_000
        assert process_time() - began < 3


class TestAhead:
    def test_nodes_are_needed_when_the_replicas_come(self) -> None:
        """Eight cores at half a core a pod are 16 pods of one core: four nodes of four cores."""
        quiet, busy = window((WEB, 0.5, 1.0)), window((WEB, 7.0, 8.0), later=1)
        pods = [on("n1", WEB), on("n1", WEB)]
        forecast = ahead(quiet, busy, pool=pool(), members=[member()], residents=pods)
        assert forecast.peak is not None
        assert forecast.peak.begin == NOON + QUARTER
        assert forecast.nodes_needed == 4

    def test_requested_now_and_used_ahead(self) -> None:
        forecast = ahead(
            window((WEB, 1.0, 1.0)), pool=pool(), members=[member()], residents=[on("n1", WEB), on("n1", WEB)]
        )
        assert (forecast.requested_cpu, forecast.allocatable_cpu) == (2.0, 4.0)
        assert forecast.windows[0].used_cpu.value == pytest.approx(1.0)
        assert forecast.windows[0].requested_cpu.value == 2.0

    def test_workloads_that_do_not_peak_together_need_fewer_nodes(self) -> None:
        up, down = np.linspace(1.0, 8.0, 100), np.linspace(8.0, 1.0, 100)
        apart = DemandWindow(NOON, NOON + QUARTER, (WEB, BATCH), np.array([up, down]), np.array([up, down]) * GIB)
        at_once = DemandWindow(NOON, NOON + QUARTER, (WEB, BATCH), np.array([up, up]), np.array([up, up]) * GIB)
        both = [member(WEB), member(BATCH)]
        unknown = replace(apart, dependence_known=False)
        needed = [ahead(window, pool=pool(), members=both).nodes_needed for window in (apart, unknown, at_once)]
        assert needed[0] < needed[1] == needed[2]

    def test_a_workload_without_a_forecast_stays_and_is_named(self) -> None:
        forecast = ahead(window((WEB, 1.0, 1.0)), pool=pool(), members=[member(), member(BATCH, replicas=3)])
        assert forecast.unforecast == (BATCH,)
        assert forecast.windows[0].requested_cpu.value == 5.0

    def test_a_workload_on_two_pools_is_summed_once(self) -> None:
        """Two of its three pods are on its home; all four ahead were added there, and the third in its pool, too."""
        spot, rest = pools_of([node("a", labels={"karpenter.sh/nodepool": "spot"}), node("b")])[::-1]
        pods, growing = [on("a", WEB), on("a", WEB), on("b", WEB)], window((WEB, 2.0, 2.0))
        home = ahead(growing, pool=spot, members=[member(replicas=3)], residents=pods)
        other = ahead(growing, pool=rest, members=[], residents=pods)
        assert [each.windows[0].requested_cpu.value for each in (home, other)] == [3.0, 1.0]
        assert [each.windows[0].used_cpu.value for each in (home, other)] == pytest.approx([4 / 3, 2 / 3])
        assert headroom(home, NOON).replicas == 1

    def test_pods_of_nobody_that_is_forecast_count_as_they_are(self) -> None:
        daemon = resident("n1", "500m", daemon=True)
        forecast = ahead(window((WEB, 1.0, 1.0)), pool=pool(), members=[member()], residents=[daemon])
        assert forecast.windows[0].requested_cpu.value == 2.5


class TestHeadroom:
    def test_placeholders_are_what_will_be_requested_beyond_now(self) -> None:
        pods = [on("n1", WEB), on("n1", WEB)]
        forecast = ahead(window((WEB, 2.0, 2.0), later=1), pool=pool(), members=[member()], residents=pods)
        placeholders = headroom(forecast, NOON + QUARTER)
        assert (placeholders.replicas, placeholders.cpu) == (2, 1.0)

    def test_a_fraction_of_a_core_without_memory_is_kept_warm(self) -> None:
        small = Member(WEB, pod(block("300m")), 2, 0.15)
        pods = [on("n1", WEB, "300m", memory=None), on("n1", WEB, "300m", memory=None)]
        placeholders = headroom(ahead(window((WEB, 0.6, 0.6)), pool=pool(), members=[small], residents=pods), NOON)
        assert (placeholders.replicas, placeholders.cpu, placeholders.memory) == (2, pytest.approx(0.3), 0.0)

    @pytest.mark.parametrize(
        "blocked",
        [member(replicas=10_000, per_pod=None), replace(member(replicas=0), min_replicas=10**6)],
        ids=["kept out by a quota", "scaled to zero, beside an HPA with a minimum"],
    )
    def test_replicas_that_never_come_keep_nothing_warm(self, blocked: Member) -> None:
        """Replicas that an owner states are no demand; placeholders for them would make the autoscaler add nodes."""
        pods = [on("n1", WEB), on("n1", BATCH), on("n1", BATCH)]
        busy = window((WEB, 0.1, 0.1), (BATCH, 2.0, 2.0), later=1)
        forecast = ahead(busy, pool=pool(), members=[blocked, member(BATCH)], residents=pods)
        assert headroom(forecast, NOON + QUARTER).replicas == 2

    def test_windows_that_begin_later_are_not_kept_warm_yet(self) -> None:
        forecast = ahead(
            window((WEB, 2.0, 2.0), later=4), pool=pool(), members=[member()], residents=[on("n1", WEB), on("n1", WEB)]
        )
        assert headroom(forecast, NOON + QUARTER).replicas == 0

    def test_the_manifest_tolerates_the_pool_and_yields_to_everybody(self) -> None:
        tainted = node("a", labels={"karpenter.sh/nodepool": "Spot_1"}, taint="spot")
        forecast = ahead(window((WEB, 2.0, 2.0)), pool=pool(tainted), members=[member()])
        priority, deployment = manifests(headroom(forecast, NOON), forecast.pool, "pause")
        template = deployment["spec"]["template"]["spec"]
        assert priority["value"] == -10
        assert deployment["metadata"]["name"] == "forecaster-headroom-spot-1"
        assert template["nodeSelector"] == {"karpenter.sh/nodepool": "Spot_1"}
        assert template["tolerations"] == [{"key": "spot", "operator": "Equal", "value": "", "effect": "NoSchedule"}]
        assert template["containers"][0]["resources"] == {"requests": {"cpu": "1", "memory": "1Gi"}}

    def test_a_buffer_has_the_size_and_the_pool_of_the_placeholders_and_no_priority(self) -> None:
        tainted = node("a", labels={"karpenter.sh/nodepool": "Spot_1"}, taint="spot")
        pods = [on("a", WEB), on("a", WEB)]
        forecast = ahead(window((WEB, 3.0, 3.0)), pool=pool(tainted), members=[member()], residents=pods)
        template, buffer = buffers(headroom(forecast, NOON), forecast.pool)
        pod = template["template"]["spec"]
        assert buffer["spec"] == {"podTemplateRef": {"name": "forecaster-headroom-spot-1"}, "replicas": 4}
        assert pod["containers"][0]["resources"] == {"requests": {"cpu": "1", "memory": "1Gi"}}
        assert pod["nodeSelector"] == {"karpenter.sh/nodepool": "Spot_1"}
        assert "priorityClassName" not in pod


class TestPressure:
    def test_the_node_that_fills_up_comes_first_with_the_pods_that_go(self) -> None:
        growing = resident("n1", memory="1Gi", workload=WEB, name="web-1", memory_bytes=8 * GIB)
        calm = resident("n1", memory="4Gi", workload=BATCH, name="batch-1", memory_bytes=3 * GIB)
        quiet = resident("n2", memory="4Gi", workload=BATCH, name="batch-2", memory_bytes=3 * GIB)
        pressured = pressures(
            [node("n2"), node("n1")], [growing, calm, quiet], {WEB: 8 * GIB, BATCH: 6 * GIB}, window((WEB, 8.0, 20.0))
        )
        assert [pressure.node for pressure in pressured] == ["n1", "n2"]
        assert pressured[0].risk == pytest.approx(0.58, abs=0.02)
        assert pressured[0].first == ("web-1", "batch-1")
        assert pressured[1].risk == 0.0

    def test_a_node_that_nobody_measures_is_left_out(self) -> None:
        assert pressures([node()], [resident(workload=WEB)], {WEB: GIB}, window((WEB, 1.0, 1.0))) == []


def test_ranks_of_the_past_make_windows() -> None:
    """Histories become ranks, samples, a window of demand and at last a number of nodes."""
    past = np.random.default_rng(2).lognormal(0, 0.4, (2, 14 * 24))
    cpu = samples((0.1, 0.5, 0.9), np.array([[1.0, 2.0, 6.0], [1.0, 2.0, 6.0]]), past_ranks(past, 24, 1))
    demand = DemandWindow(NOON, NOON + QUARTER, (WEB, BATCH), cpu, cpu * GIB)
    forecast = ahead(demand, pool=pool(), members=[member(WEB), member(BATCH)])
    assert forecast.windows[0].requested_cpu.independent <= forecast.windows[0].requested_cpu.value
    assert forecast.nodes_needed >= 4

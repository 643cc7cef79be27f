from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest

from forecaster.vertical.admission.checks import Verdict
from forecaster.vertical.admission.context import Rollout
from forecaster.vertical.admission.proof import Proof, prove
from forecaster.vertical.cluster_rules.pod import Container, Pod
from forecaster.vertical.cluster_rules.qos import QosClass
from forecaster.vertical.cluster_rules.resource_list import texts
from forecaster.vertical.cluster_rules.server import Server
from tests.support.cluster_rules import APP, block, context, guaranteed, limits, node, pod, quota, resident


def first_refusal(proof: Proof) -> str:
    return proof.refusals[0].message if proof.refusals else ""


def nearest(proof: Proof) -> dict[str, str]:
    assert proof.nearest is not None
    values = proof.nearest[APP]
    return {**texts(values.requests), **{f"limits.{name}": text for name, text in texts(values.limits).items()}}


class TestLimitRange:
    def test_a_request_below_the_minimum_is_raised_to_it(self) -> None:
        proof = prove({APP: block("50m", "1Gi")}, context(limit_ranges=(limits(min={"cpu": "100m"}),)))
        assert "minimum cpu per Container is 100m" in first_refusal(proof)
        assert nearest(proof)["cpu"] == "100m"

    def test_a_limit_above_the_maximum_is_lowered_and_the_request_with_it(self) -> None:
        ranges = (limits(max={"memory": "2Gi"}),)
        before = pod(block("500m", "1Gi", limits=(None, "2Gi")))
        proof = prove({APP: block("500m", "3Gi", limits=(None, "4Gi"))}, context(before, limit_ranges=ranges))
        assert nearest(proof) == {"cpu": "500m", "memory": "2Gi", "limits.memory": "2Gi"}

    def test_a_limit_that_is_dropped_under_a_maximum_comes_back(self) -> None:
        ranges = (limits(max={"cpu": "2"}),)
        before = pod(block("500m", "1Gi", limits=("1", None)))
        proof = prove({APP: block("500m", "1Gi")}, context(before, limit_ranges=ranges))
        assert proof.accepted
        assert texts(proof.values[APP].limits) == {"cpu": "2"}
        assert any("adds the limit cpu 2" in finding.message for finding in proof.findings)

    def test_a_ratio_that_is_too_wide_raises_the_request(self) -> None:
        ranges = (limits(ratio={"memory": "2"}),)
        before = pod(block("500m", "1Gi", limits=(None, "2Gi")))
        proof = prove({APP: block("500m", "1Gi", limits=(None, "3Gi"))}, context(before, limit_ranges=ranges))
        assert nearest(proof)["memory"] == "1536Mi"
        assert nearest(proof)["limits.memory"] == "3Gi"

    def test_the_nearest_memory_is_whole_bytes(self) -> None:
        """The API server warns of fractions; a ratio of a request that a quota cuts is seldom whole."""
        hard = quota({"requests.memory": "1679215"}, {"requests.memory": "3000"})
        before = pod(block("500m", "1000", limits=("1", "1000")))
        facts = context(before, limit_ranges=(limits(max={"memory": "8M"}, ratio={"memory": "1.37"}),), quotas=(hard,))
        proof = prove({APP: block("500m", "35M", limits=("1", "69M"))}, facts)
        assert not nearest(proof)["limits.memory"].endswith("m")

    def test_a_pod_maximum_refuses_a_pod_without_a_limit(self) -> None:
        proof = prove({APP: block("500m", "1Gi")}, context(limit_ranges=(limits("Pod", max={"cpu": "2"}),)))
        assert "no limit is set" in first_refusal(proof)
        assert nearest(proof)["limits.cpu"] == "500m"

    def test_limits_that_permit_nothing_are_a_reason_and_no_value(self) -> None:
        proof = prove({APP: block("500m", "1Gi")}, context(limit_ranges=(limits(min={"cpu": "2"}, max={"cpu": "1"}),)))
        assert first_refusal(proof) == "permits no cpu per Container at all: minimum 2 is above maximum 1"
        assert proof.nearest is None


class TestQuota:
    def test_a_rollout_counts_both_generations(self) -> None:
        """The rollout needs 3 x 1 + 1.2 = 4.2 of 4 cores, although the end state of 3.6 fits."""
        before = pod(block("1", "1Gi"))
        quotas = (quota({"requests.cpu": "4"}, {"requests.cpu": "3"}),)
        proof = prove({APP: block("1200m", "1Gi")}, context(before, quotas=quotas))
        assert "would stall after 0 of 3 pods" in first_refusal(proof)
        assert nearest(proof)["cpu"] == "1"

    def test_pods_that_may_be_missing_make_room(self) -> None:
        before = pod(block("1", "1Gi"))
        quotas = (quota({"requests.cpu": "4"}, {"requests.cpu": "3"}),)
        proof = prove({APP: block("1200m", "1Gi")}, context(before, quotas=quotas, rollout=Rollout(3, 1, 1)))
        assert proof.accepted

    def test_in_place_only_the_growth_counts(self) -> None:
        before = pod(block("1", "1Gi"))
        quotas = (quota({"requests.cpu": "4"}, {"requests.cpu": "3"}),)
        proof = prove({APP: block("1300m", "1Gi")}, context(before, quotas=quotas, in_place=True))
        assert proof.accepted

    def test_in_place_the_first_pods_take_what_is_left(self) -> None:
        before = pod(block("1", "1Gi"))
        quotas = (quota({"requests.cpu": "4"}, {"requests.cpu": "3"}),)
        proof = prove({APP: block("1400m", "1Gi")}, context(before, quotas=quotas, in_place=True))
        assert "after 2 of 3 pods" in first_refusal(proof)

    def test_in_place_a_pod_that_is_alone_may_not_outgrow_it(self) -> None:
        before = pod(block("1", "1Gi"))
        quotas = (quota({"requests.cpu": "1"}, {"requests.cpu": "1"}),)
        proof = prove({APP: block("1400m", "1Gi")}, context(before, quotas=quotas, in_place=True, rollout=Rollout(1)))
        assert "requests.cpu" in first_refusal(proof)
        assert nearest(proof)["cpu"] == "1"

    @pytest.mark.parametrize(("in_place", "fit"), [(True, 10**9), (False, 10**9 - 1)], ids=["in place", "rolled out"])
    def test_of_two_billion_pods_is_answered_at_once(self, fit: int, *, in_place: bool) -> None:
        """An owner may state so many replicas; counting them one by one would take too long."""
        many = 2**31 - 1
        hard = quota({"requests.cpu": f"{many + 10**9}"}, {"requests.cpu": f"{many}"})
        facts = context(pod(block("1", "1Gi")), quotas=(hard,), in_place=in_place, rollout=Rollout(many))
        assert f"after {fit} of {many} pods" in first_refusal(prove({APP: block("2", "1Gi")}, facts))

    def test_of_a_pod_with_a_thousand_containers_is_answered_in_a_moment(self) -> None:
        """An owner may state so many containers; comparing each with all others took 8 s."""
        many = Pod(tuple(Container(f"c{i}", block("10m", "10Mi")) for i in range(1_000)))
        proposed = {container.name: block("20m", "20Mi") for container in many.containers}
        began = process_time()
        proof = prove(
            proposed, context(many, limit_ranges=(limits(max={"cpu": "15m"}),), nodes=(node("n", "400", "1Ti"),))
        )
        assert not proof.accepted
        assert process_time() - began < 3

    def test_a_tracked_limit_must_be_stated(self) -> None:
        proof = prove({APP: block("500m", "1Gi")}, context(quotas=(quota({"limits.memory": "8Gi"}),)))
        assert "tracks limits.memory, so app must state it" in first_refusal(proof)
        assert nearest(proof)["limits.memory"] == "1Gi"

    def test_shrinking_is_always_allowed(self) -> None:
        before = pod(block("1", "1Gi"))
        quotas = (quota({"requests.cpu": "2"}, {"requests.cpu": "3"}),)
        assert prove({APP: block("900m", "1Gi")}, context(before, quotas=quotas)).accepted


class TestQos:
    def test_dropping_a_limit_would_make_a_guaranteed_pod_burstable(self) -> None:
        proof = prove({APP: block("600m", "1Gi", limits=(None, "1Gi"))}, context(pod(guaranteed("500m", "1Gi"))))
        assert (proof.qos_before, proof.qos_after) == (QosClass.GUARANTEED, QosClass.BURSTABLE)
        assert nearest(proof) == {"cpu": "600m", "memory": "1Gi", "limits.cpu": "600m", "limits.memory": "1Gi"}

    def test_a_change_may_be_accepted(self) -> None:
        before = context(pod(guaranteed("500m", "1Gi")), accepts_qos_change=True)
        assert prove({APP: block("600m", "1Gi")}, before).accepted

    def test_in_place_it_may_not(self) -> None:
        before = context(pod(guaranteed("500m", "1Gi")), accepts_qos_change=True, in_place=True)
        assert not prove({APP: block("600m", "1Gi")}, before).accepted

    def test_a_burstable_pod_stays_burstable(self) -> None:
        before = pod(block("500m", "1Gi", limits=("1", "2Gi")))
        proof = prove({APP: guaranteed("1", "2Gi")}, context(before))
        assert nearest(proof) == {"cpu": "999m", "memory": "2Gi", "limits.cpu": "1", "limits.memory": "2Gi"}

    def test_a_best_effort_pod_keeps_nothing_in_place(self) -> None:
        proof = prove({APP: block("100m")}, context(pod(block(None)), in_place=True))
        assert proof.qos_before is QosClass.BEST_EFFORT
        assert proof.nearest == {APP: block()}


class TestNodes:
    def test_without_nodes_it_is_not_known_and_not_refused(self) -> None:
        proof = prove({APP: block("500m", "1Gi")}, context())
        assert proof.accepted
        assert any(finding.verdict is Verdict.UNKNOWN and finding.rule == "node fit" for finding in proof.findings)

    def test_some_replicas_wait_for_new_nodes(self) -> None:
        proof = prove({APP: block("3", "1Gi")}, context(nodes=(node("n1"), node("n2"))))
        assert proof.free is not None
        assert (proof.free.now, proof.free.waiting, proof.free.new_nodes) == (2, 1, 1)

    def test_a_pod_larger_than_any_node_is_cut_to_the_largest(self) -> None:
        nodes = (node("n1", cpu="4"), node("n2", cpu="8"))
        daemon = resident("n2", cpu="500m", daemon=True)
        proof = prove({APP: block("9", "1Gi")}, context(nodes=nodes, residents=(daemon,)))
        assert "no node takes one even when empty" in first_refusal(proof)
        assert nearest(proof)["cpu"] == "7500m"

    def test_a_taint_that_is_not_tolerated_leaves_no_node(self) -> None:
        proof = prove({APP: block("1", "1Gi")}, context(nodes=(node(taint="dedicated"),)))
        assert "taint dedicated (1)" in first_refusal(proof)
        assert proof.nearest is None

    def test_a_pod_that_is_bound_to_one_of_several_equal_hosts_has_its_place(self) -> None:
        host = "kubernetes.io/hostname"
        nodes = tuple(node(name, labels={host: name}) for name in ("n1", "n2"))
        bound = pod(spec={"nodeSelector": {host: "n2"}})
        assert prove({APP: block("500m", "1Gi")}, context(bound, nodes=nodes)).accepted

    def test_the_workload_s_present_pods_make_room_for_the_new_ones(self) -> None:
        mine = tuple(resident(cpu="1300m", workload="shop/web") for _ in range(3))
        proof = prove({APP: block("1300m", "1Gi")}, context(nodes=(node(),), residents=mine))
        assert proof.free is not None
        assert proof.free.now == 3

    def test_spread_over_zones_keeps_replicas_waiting(self) -> None:
        spread = [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
        nodes = (node("n1", labels={"zone": "a"}), node("n2", cpu="600m", labels={"zone": "b"}))
        proof = prove(
            {APP: block("500m", "1Gi")},
            context(pod(spec={"topologySpreadConstraints": spread}), rollout=Rollout(4), nodes=nodes),
        )
        assert proof.free is not None
        assert proof.free.now == 3
        assert "topology spread (1)" in proof.free.refused

    def test_anti_affinity_allows_one_pod_a_host(self) -> None:
        term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}
        apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        nodes = tuple(node(f"n{i}", labels={"host": f"n{i}"}) for i in range(2))
        proof = prove({APP: block("500m", "1Gi")}, context(pod(spec=apart), nodes=nodes))
        assert proof.free is not None
        assert proof.free.now == 2

    def test_a_pod_of_higher_priority_preempts_the_least_important(self) -> None:
        low, lower = (
            resident("n1", cpu="2", priority=5, workload="shop/batch"),
            resident("n1", cpu="2", priority=1, workload="shop/idle"),
        )
        important = pod(priority=100)
        proof = prove(
            {APP: block("2", "1Gi")}, context(important, nodes=(node(),), residents=(low, lower), rollout=Rollout(1))
        )
        assert proof.free is not None
        assert [victim.workload for preemption in proof.free.preempted for victim in preemption.victims] == [
            "shop/idle"
        ]


class TestStaticCpu:
    def test_a_fraction_of_a_core_is_rounded_up(self) -> None:
        proof = prove({APP: guaranteed("1900m", "1Gi")}, context(pod(guaranteed("2", "1Gi")), static_cpu=True))
        assert first_refusal(proof) == "app would lose its 2 exclusive CPUs"
        assert nearest(proof)["cpu"] == "2"

    def test_exclusive_cpus_cannot_be_resized_in_place(self) -> None:
        before = pod(guaranteed("2", "1Gi"))
        facts = context(before, static_cpu=True, in_place=True, nodes=(node(),), running=((before, "n1"),))
        proof = prove({APP: guaranteed("3", "1Gi")}, facts)
        assert "1 infeasible" in first_refusal(proof)


class TestInPlace:
    def test_a_node_without_room_defers(self) -> None:
        before = pod(block("1", "1Gi"))
        facts = context(
            before, in_place=True, nodes=(node(),), residents=(resident(cpu="2500m"),), running=((before, "n1"),)
        )
        proof = prove({APP: block("2", "1Gi")}, facts)
        assert proof.accepted
        assert any("1 deferred" in finding.message for finding in proof.findings)

    def test_a_memory_limit_below_usage_is_not_applied(self) -> None:
        before = pod(block("1", "1Gi", limits=("2", "4Gi")))
        facts = context(before, in_place=True, nodes=(node(),), running=((before, "n1"),), memory_usage=3 * 2**30)
        proof = prove({APP: block("1", "1Gi", limits=("2", "2Gi"))}, facts)
        assert any("the node will not apply it" in finding.message for finding in proof.findings)

    def test_a_memory_limit_that_stays_is_no_risk(self) -> None:
        before = pod(block("1", "1Gi", limits=("2", "4Gi")))
        facts = context(before, in_place=True, nodes=(node(),), running=((before, "n1"),), memory_usage=5 * 2**30)
        proof = prove({APP: block("2", "1Gi", limits=("2", "4Gi"))}, facts)
        assert not any("shrinks" in finding.message for finding in proof.findings)

    @pytest.mark.parametrize(("minor", "limit"), [(33, "4Gi"), (34, "2Gi")])
    def test_servers_until_1_33_keep_a_memory_limit(self, minor: int, limit: str) -> None:
        before = pod(block("1", "1Gi", limits=("2", "4Gi")))
        facts = context(before, in_place=True, nodes=(node(),), running=((before, "n1"),), server=Server(1, minor))
        assert nearest(prove({APP: block("1", "1Gi", limits=("2", "2Gi"))}, facts))["limits.memory"] == limit


class TestKilling:
    def test_a_smaller_request_exposes_the_container(self) -> None:
        facts = context(pod(block("500m", "4Gi")), nodes=(node(memory="16Gi"),))
        proof = prove({APP: block("500m", "2Gi")}, facts)
        assert proof.risk is not None
        assert (proof.risk.scores_before[APP], proof.risk.scores_after[APP]) == (750, 875)

    def test_a_request_below_usage_moves_it_up_in_the_eviction_order(self) -> None:
        other = resident(memory="1Gi", memory_bytes=2**30 + 2**20, name="other")
        facts = context(pod(block("500m", "4Gi")), nodes=(node(),), residents=(other,), memory_usage=3 * 2**30)
        proof = prove({APP: block("500m", "2Gi")}, facts)
        assert proof.risk is not None
        assert (proof.risk.rank_before, proof.risk.rank_after) == (2, 1)


def test_the_proposed_values_are_the_nearest_ones_when_nothing_speaks_against_them() -> None:
    proposed = {APP: block("600m", "1Gi")}
    proof = prove(proposed, context())
    assert proof.nearest == proposed


def test_unknown_objects_of_the_namespace_are_findings() -> None:
    proof = prove({APP: block("600m", "1Gi")}, replace(context(), limit_ranges=None, quotas=None))
    assert [finding.rule for finding in proof.findings if finding.verdict is Verdict.UNKNOWN][:2] == [
        "LimitRange",
        "ResourceQuota",
    ]

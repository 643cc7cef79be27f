from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.sources.blocks import workload_of
from forecaster.sources.facts import Facts, InstantRow
from forecaster.sources.inventory import inventory_of, specifications_of

if TYPE_CHECKING:
    from forecaster.domain.window import Inventory

AT = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
WEB = WorkloadId("shop", "Deployment", "web")
WEB_LABELS = {"namespace": "shop", "workload_kind": "Deployment", "workload": "web"}
HPA = {"namespace": "shop", "horizontalpodautoscaler": "web-hpa"}
MAX_REPLICAS = InstantRow(HPA, 9.0)
CPU_60 = InstantRow(HPA | {"metric_name": "cpu", "metric_target_type": "utilization"}, 60.0)
SCALES_WEB = InstantRow(HPA | {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}, 1.0)


def read_inventory(
    replicas: tuple[InstantRow, ...] = (InstantRow(WEB_LABELS, 3.0),),
    ready_replicas: tuple[InstantRow, ...] = (InstantRow(WEB_LABELS, 2.0),),
    **rows: list[InstantRow],
) -> Inventory:
    """Read web with three pods, two of them ready, and the specifications in `rows`."""
    facts = Facts()
    for name, series in rows.items():
        facts = facts.renewed(name, series)
    counts = ({workload_of(row.labels): row.value for row in side} for side in (replicas, ready_replicas))
    return inventory_of(AT, *counts, specifications_of(facts), ["Deployment"])


def test_a_workload_is_its_replicas_and_nothing_invented() -> None:
    assert read_inventory().workloads == (Workload(WEB, 3, 2, Resources(), None),)


def test_a_count_that_is_none_is_no_more_than_impossible() -> None:
    """Any target can export a series of this name; beyond 64 bits it would have ended the cycle of all workloads."""
    (web,) = read_inventory(
        replicas=(InstantRow(WEB_LABELS, 1e300),), ready_replicas=(InstantRow(WEB_LABELS, 1e20),)
    ).workloads
    assert (web.replicas, web.ready_replicas) == (2**31, 2**31)


def test_other_kinds_are_left_out_silently() -> None:
    daemon = InstantRow(WEB_LABELS | {"workload_kind": "DaemonSet"}, 5.0)
    assert read_inventory(replicas=(InstantRow(WEB_LABELS, 3.0), daemon)).faults == ()


def test_a_workload_without_ready_count_is_named_and_left_out() -> None:
    inventory = read_inventory(ready_replicas=())
    assert inventory.workloads == ()
    assert inventory.faults == ("Deployment shop/web: no series has its ready replicas; left out",)


def test_a_list_without_any_workload_says_what_to_look_at() -> None:
    """Right after a start nothing was listed before, so nothing is missed: kube-state-metrics may be away."""
    (fault,) = read_inventory(replicas=(), ready_replicas=()).faults
    assert fault.startswith("no workload is listed: no series has the replicas of any Deployment; see whether kube-")


def test_requests_and_limits_are_taken_where_they_are_stated() -> None:
    inventory = read_inventory(
        pod_requests=[
            InstantRow(WEB_LABELS | {"resource": "cpu"}, 0.5),
            InstantRow(WEB_LABELS | {"resource": "memory"}, 1e9),
        ],
        pod_limits=[
            InstantRow(WEB_LABELS | {"resource": "memory"}, 2e9),
            InstantRow(WEB_LABELS | {"resource": "example.com/gpu"}, 1.0),
        ],
    )
    assert inventory.workloads[0].resources == Resources(cpu_request=0.5, memory_request=1e9, memory_limit=2e9)


def test_an_hpa_without_lower_bound_has_one_pod() -> None:
    inventory = read_inventory(
        hpa_scale_targets=[SCALES_WEB], hpa_max_replicas=[MAX_REPLICAS], hpa_metric_targets=[CPU_60]
    )
    assert inventory.workloads[0].autoscaler == Autoscaler(
        "web-hpa", 1, 9, (Target("cpu", TargetType.UTILIZATION, 0.6),)
    )
    assert not inventory.partly


def test_an_hpa_that_a_query_of_ones_own_names_twice_is_one_hpa_with_each_target_once() -> None:
    """Without an aggregation two replicas of kube-state-metrics tell everything twice."""
    inventory = read_inventory(
        hpa_scale_targets=[SCALES_WEB] * 2, hpa_max_replicas=[MAX_REPLICAS] * 2, hpa_metric_targets=[CPU_60] * 2
    )
    autoscaler = Autoscaler("web-hpa", 1, 9, (Target("cpu", TargetType.UTILIZATION, 0.6),))
    assert (inventory.workloads[0].autoscaler, inventory.faults) == (autoscaler, ())


@pytest.mark.parametrize(
    ("versions", "held"),
    [
        (["v2.4.2"], True),
        (["v2.4.2", "v2.4.3"], True),
        (["v2.4.2", "v2.19.1"], False),
        (["v2.5.0"], False),
        (["v2.19.1"], False),
        (["own"], False),
    ],
)
def test_a_kube_state_metrics_that_drops_fractions_describes_hpas_in_part(versions: list[str], *, held: bool) -> None:
    """A target of 500m is missing in an old version; a newer one outvotes it, as any pod may claim to be an old one."""
    inventory = read_inventory(
        hpa_scale_targets=[SCALES_WEB],
        hpa_max_replicas=[MAX_REPLICAS],
        hpa_metric_targets=[CPU_60],
        state_metrics=[InstantRow({"version": version}, 1.0) for version in versions],
    )
    assert bool(inventory.partly) is held
    assert (inventory.workloads[0].autoscaler is None) is held
    assert not held or "kube-state-metrics v2.4.2 leaves them out" in inventory.partly[WEB]


@pytest.mark.parametrize(
    ("facts", "missing"),
    [({"hpa_metric_targets": [CPU_60]}, "maxReplicas"), ({"hpa_max_replicas": [MAX_REPLICAS]}, "metrics")],
)
def test_an_hpa_that_is_known_in_part_is_not_used_and_its_workload_is_held(
    facts: dict[str, list[InstantRow]], missing: str
) -> None:
    inventory = read_inventory(hpa_scale_targets=[SCALES_WEB], **facts)
    assert inventory.workloads[0].autoscaler is None
    assert inventory.partly == {WEB: f"no series has the {missing} of its HPA web-hpa"}
    assert inventory.faults == (f"HPA shop/web-hpa: no series has its {missing}; Deployment shop/web is held",)


def test_percent_become_ratios_and_unknown_types_are_passed_over() -> None:
    targets = [
        InstantRow(HPA | {"metric_name": "memory", "metric_target_type": "utilization"}, 80.0),
        InstantRow(HPA | {"metric_name": "cpu", "metric_target_type": "average"}, 0.5),
        InstantRow(HPA | {"metric_name": "cpu", "metric_target_type": "phase of the moon"}, 1.0),
    ]
    inventory = read_inventory(
        hpa_scale_targets=[SCALES_WEB], hpa_max_replicas=[InstantRow(HPA, 9.0)], hpa_metric_targets=targets
    )
    assert inventory.workloads[0].autoscaler is not None
    assert inventory.workloads[0].autoscaler.targets == (
        Target("cpu", TargetType.AVERAGE_VALUE, 0.5),
        Target("memory", TargetType.UTILIZATION, 0.8),
    )


def test_of_thousands_of_metrics_the_first_are_read_since_each_costs_the_whole_fleet() -> None:
    rows = [InstantRow(CPU_60.labels | {"metric_name": f"queue-{number:04}"}, 60.0) for number in range(5000)]
    inventory = read_inventory(hpa_scale_targets=[SCALES_WEB], hpa_max_replicas=[MAX_REPLICAS], hpa_metric_targets=rows)
    assert inventory.workloads[0].autoscaler is not None
    assert [target.metric for target in inventory.workloads[0].autoscaler.targets][-2:] == ["queue-0030", "queue-0031"]
    assert inventory.faults == ("HPA shop/web-hpa: of its 5000 metrics the first 32 by name are read",)


def test_an_hpa_whose_workload_is_not_known_is_a_fault() -> None:
    orphan = InstantRow(HPA | {"scaletargetref_kind": "Deployment", "scaletargetref_name": "gone"}, 1.0)
    inventory = read_inventory(hpa_scale_targets=[orphan], hpa_max_replicas=[MAX_REPLICAS], hpa_metric_targets=[CPU_60])
    assert inventory.faults == ("HPA shop/web-hpa: scales Deployment gone, which no series describes",)

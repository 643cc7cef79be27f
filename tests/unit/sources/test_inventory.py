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
WHO = {"namespace": "shop", "workload_kind": "Deployment", "workload": "web"}
HPA = {"namespace": "shop", "horizontalpodautoscaler": "web-hpa"}
MOST = InstantRow(HPA, 9.0)
CPU_60 = InstantRow(HPA | {"metric_name": "cpu", "metric_target_type": "utilization"}, 60.0)
SCALES_WEB = InstantRow(HPA | {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}, 1.0)


def inventory(
    replicas: tuple[InstantRow, ...] = (InstantRow(WHO, 3.0),),
    ready_replicas: tuple[InstantRow, ...] = (InstantRow(WHO, 2.0),),
    **rows: list[InstantRow],
) -> Inventory:
    """Web with three pods of which two are ready, and what `rows` specify."""
    facts = Facts()
    for name, found in rows.items():
        facts = facts.renewed(name, found)
    counts = ({workload_of(row.labels): row.value for row in side} for side in (replicas, ready_replicas))
    return inventory_of(AT, *counts, specifications_of(facts), ["Deployment"])


def test_a_workload_is_its_replicas_and_nothing_invented() -> None:
    assert inventory().workloads == (Workload(WEB, 3, 2, Resources(), None),)


def test_a_count_that_is_none_is_no_more_than_impossible() -> None:
    """Any target can export a series of this name; beyond 64 bits it would have ended the cycle of all workloads."""
    (web,) = inventory(replicas=(InstantRow(WHO, 1e300),), ready_replicas=(InstantRow(WHO, 1e20),)).workloads
    assert (web.replicas, web.ready_replicas) == (2**31, 2**31)


def test_other_kinds_are_left_out_silently() -> None:
    daemon = InstantRow(WHO | {"workload_kind": "DaemonSet"}, 5.0)
    assert inventory(replicas=(InstantRow(WHO, 3.0), daemon)).faults == ()


def test_a_workload_without_ready_count_is_named_and_left_out() -> None:
    found = inventory(ready_replicas=())
    assert found.workloads == ()
    assert found.faults == ("Deployment shop/web: no series has its ready replicas; left out",)


def test_a_list_without_any_workload_says_what_to_look_at() -> None:
    """Right after a start nothing was listed before, so nothing is missed: kube-state-metrics may be away."""
    (fault,) = inventory(replicas=(), ready_replicas=()).faults
    assert fault.startswith("no workload is listed: no series has the replicas of any Deployment; see whether kube-")


def test_requests_and_limits_are_taken_where_they_are_stated() -> None:
    found = inventory(
        pod_requests=[InstantRow(WHO | {"resource": "cpu"}, 0.5), InstantRow(WHO | {"resource": "memory"}, 1e9)],
        pod_limits=[
            InstantRow(WHO | {"resource": "memory"}, 2e9),
            InstantRow(WHO | {"resource": "example.com/gpu"}, 1.0),
        ],
    )
    assert found.workloads[0].resources == Resources(cpu_request=0.5, memory_request=1e9, memory_limit=2e9)


def test_an_hpa_without_lower_bound_has_one_pod() -> None:
    found = inventory(hpa_scale_targets=[SCALES_WEB], hpa_max_replicas=[MOST], hpa_metric_targets=[CPU_60])
    assert found.workloads[0].autoscaler == Autoscaler("web-hpa", 1, 9, (Target("cpu", TargetType.UTILIZATION, 0.6),))
    assert not found.partly


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
def test_a_kube_state_metrics_that_drops_fractions_does_not_tell_whole_hpas(versions: list[str], *, held: bool) -> None:
    """Unless another one is newer: any pod of a tenant may tell that it were an old one."""
    """`averageValue: 500m` of a second target would be missing, and nothing says so."""
    found = inventory(
        hpa_scale_targets=[SCALES_WEB],
        hpa_max_replicas=[MOST],
        hpa_metric_targets=[CPU_60],
        state_metrics=[InstantRow({"version": version}, 1.0) for version in versions],
    )
    assert bool(found.partly) is held
    assert (found.workloads[0].autoscaler is None) is held
    assert not held or "kube-state-metrics v2.4.2 leaves them out" in found.partly[WEB]


@pytest.mark.parametrize(
    ("told", "missing"),
    [({"hpa_metric_targets": [CPU_60]}, "maxReplicas"), ({"hpa_max_replicas": [MOST]}, "metrics")],
)
def test_an_hpa_that_is_told_in_part_is_not_used_and_its_workload_is_held(
    told: dict[str, list[InstantRow]], missing: str
) -> None:
    found = inventory(hpa_scale_targets=[SCALES_WEB], **told)
    assert found.workloads[0].autoscaler is None
    assert found.partly == {WEB: f"no series has the {missing} of its HPA web-hpa"}
    assert found.faults == (f"HPA shop/web-hpa: no series has its {missing}; Deployment shop/web is held",)


def test_percent_become_ratios_and_unknown_types_are_passed_over() -> None:
    targets = [
        InstantRow(HPA | {"metric_name": "memory", "metric_target_type": "utilization"}, 80.0),
        InstantRow(HPA | {"metric_name": "cpu", "metric_target_type": "average"}, 0.5),
        InstantRow(HPA | {"metric_name": "cpu", "metric_target_type": "phase of the moon"}, 1.0),
    ]
    found = inventory(
        hpa_scale_targets=[SCALES_WEB], hpa_max_replicas=[InstantRow(HPA, 9.0)], hpa_metric_targets=targets
    )
    assert found.workloads[0].autoscaler is not None
    assert found.workloads[0].autoscaler.targets == (
        Target("cpu", TargetType.AVERAGE_VALUE, 0.5),
        Target("memory", TargetType.UTILIZATION, 0.8),
    )


def test_of_thousands_of_metrics_the_first_are_read_since_each_costs_the_whole_fleet() -> None:
    rows = [InstantRow(CPU_60.labels | {"metric_name": f"queue-{number:04}"}, 60.0) for number in range(5000)]
    found = inventory(hpa_scale_targets=[SCALES_WEB], hpa_max_replicas=[MOST], hpa_metric_targets=rows)
    assert found.workloads[0].autoscaler is not None
    assert [one.metric for one in found.workloads[0].autoscaler.targets][-2:] == ["queue-0030", "queue-0031"]
    assert found.faults == ("HPA shop/web-hpa: of its 5000 metrics the first 32 by name are read",)


def test_an_hpa_of_nobody_is_named() -> None:
    orphan = InstantRow(HPA | {"scaletargetref_kind": "Deployment", "scaletargetref_name": "gone"}, 1.0)
    found = inventory(hpa_scale_targets=[orphan], hpa_max_replicas=[MOST], hpa_metric_targets=[CPU_60])
    assert found.faults == ("HPA shop/web-hpa: scales Deployment gone, which no series describes",)

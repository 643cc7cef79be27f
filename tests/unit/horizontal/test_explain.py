"""The explanation of a decision record, line by line."""

from __future__ import annotations

from dataclasses import replace

from forecaster.domain.decision import Reason
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.workload import Resources
from forecaster.horizontal.sentences import explanation
from tests.support.builders import (
    CPU_HALF,
    GIB,
    MEMORY_HALF,
    NO_FORECAST,
    NO_SAMPLE,
    NOON,
    hpa,
    minutes,
    outlooks,
    policy,
    sized,
    sizing_of,
    workload,
)
from tests.support.horizontal import decided, recommended_before
from tests.support.recommendations import held


def test_a_raised_count_is_explained_step_by_step() -> None:
    record = decided(
        outlooks(cpu=2.0, cpu_ahead=3.0, memory=1.0),
        workload=workload(autoscaler=hpa(CPU_HALF, MEMORY_HALF, highest=8)),
        state=recommended_before((9, 2)),
        under=policy(scale_down_stabilization=minutes(5)),
    )
    assert explanation(record)[:12] == [
        "Deployment shop/web at 2026-03-01 12:00:00 UTC",
        "  replicas: 4 now, owned by HPA web-hpa",
        "  cpu: target 50 % of 1000m a pod",
        "    measured 2000m at 12:00, asks for 4",
        (
            "    forecast p85 of the peak between 12:03 and 12:06 is 3000m"
            " (1500m to 3600m, median 2400m; ridge), asks for 6"
        ),
        "  memory: target 50 % of 1Gi a pod",
        "    measured 1Gi at 12:00, asks for 2",
        f"    note: {NO_FORECAST.note}",
        "  forecast acting",
        "  lead time 3m: assumed; 0 of 5 scale-ups seen",
        "  1. forecast: 4 → 6 (the p90 of the coming peak raises what the measured demand asks for)",
        "  2. stabilization: 6 → 9 (highest recommendation of the last 300 s)",
    ]


def test_the_number_comes_after_the_last_step() -> None:
    lines = explanation(decided(outlooks(cpu=9.0), workload=workload(autoscaler=hpa(highest=5))))
    assert lines[-4].startswith("  1. bounds: 18 → 5")
    assert lines[-3].startswith("  => 5 replicas (fallback): measured demand alone")


def test_one_replica_is_called_so() -> None:
    lines = explanation(decided(outlooks(cpu=0.1), workload=workload(replicas=1, autoscaler=hpa(lowest=1))))
    assert lines[-3].startswith("  => 1 replica (fallback): ")


def test_a_hold_says_where_it_stays_and_why() -> None:
    lines = explanation(decided(outlooks(cpu=NO_SAMPLE)))
    assert "  => hold at 4 (no-data): cpu: no sample" in lines


def test_a_source_that_is_down_is_the_whole_story() -> None:
    lines = explanation(held(workload(autoscaler=None), Reason.SOURCE_DOWN, "nobody answers at port 9090", NOON))
    assert lines[1] == "  replicas: 4 now, whether an HPA owns it is not known"
    assert lines[2] == "  => hold at 4 (source-down): nobody answers at port 9090"
    assert lines[-1] == "  => unchanged (source-down): nobody answers at port 9090"


def test_sizes_are_written_as_manifests_have_them() -> None:
    chosen = sizing_of(cpu=sized(0.4, limit=0.8), memory=sized(0.5 * GIB, limit=0.5 * GIB))
    record = decided(outlooks(cpu=2.0), sizing=chosen)
    *_, now, change = explanation(record)
    assert now == "  one pod (request/limit): cpu 1000m/2000m, memory 1Gi"
    assert change.startswith("  => cpu 1000m/2000m, memory 1Gi → 512Mi: cpu: unchanged, the HPA acts on")


def test_a_limit_that_falls_stands_beside_a_request_that_rises() -> None:
    resources = Resources(1.0, 2.0, 2 * GIB, 8 * GIB)
    chosen = sizing_of(cpu=sized(0.4, limit=0.8), memory=sized(4.0 * GIB, limit=4.0 * GIB))
    *_, change = explanation(decided(outlooks(cpu=2.0), workload=workload(resources=resources), sizing=chosen))
    assert "memory 2Gi/8Gi → 4Gi/4Gi" in change


def test_what_is_not_known_is_a_dash() -> None:
    record = decided(outlooks(cpu=2.0), workload=workload(resources=Resources(cpu_request=1.0)))
    assert "  one pod (request/limit): cpu 1000m/–, memory –" in explanation(record)


def test_a_metric_that_is_not_usable_is_listed_with_its_note() -> None:
    lines = explanation(decided(outlooks(cpu=2.0), workload=workload(resources=Resources())))
    assert lines[2:4] == [
        "  cpu: not usable",
        "    note: utilization needs a cpu request on every container; set one",
    ]


def test_several_containers_have_a_line_each() -> None:
    web, proxy = (
        replace(container, name=name)
        for container, name in zip(sizing_of(memory=sized(GIB / 2)) * 2, ("web", "proxy"), strict=True)
    )
    lines = explanation(decided(outlooks(cpu=2.0), workload=workload(autoscaler=None), sizing=(web, proxy)))
    assert lines[-2:] == [
        "     web: cpu 1000m/2000m, memory 1Gi/1Gi → 512Mi/–",
        "     proxy: cpu 1000m/2000m, memory 1Gi/1Gi → 512Mi/–",
    ]


def test_the_hpas_new_target_is_shown_with_the_request() -> None:
    together = policy(vertical=VerticalPolicy(beside_hpa="keep-scale-point"))
    lines = explanation(decided(outlooks(cpu=2.0), sizing=sizing_of(cpu=sized(0.8)), under=together))
    assert lines[-1] == "     with it, the HPA's target for cpu: 62 %"

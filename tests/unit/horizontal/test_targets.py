from __future__ import annotations

from dataclasses import replace

import pytest

from forecaster.domain.signal import CPU, CPU_CONTAINER, MEMORY, MEMORY_CONTAINER, REQUESTS
from forecaster.domain.workload import Autoscaler, NamedContainer, Resources, Target, TargetType
from forecaster.horizontal.targets import (
    SEVERAL_CONTAINERS,
    UNNAMED_BY_KEDA,
    AmountTarget,
    Unusable,
    UtilizationTarget,
    targets_of,
)
from tests.support.builders import CPU_HALF, GIB, MEMORY_HALF, hpa, policy, workload

HORIZONTAL = policy().horizontal


def test_the_targets_of_the_hpa_in_its_order() -> None:
    assert targets_of(workload(autoscaler=hpa(MEMORY_HALF, CPU_HALF)), HORIZONTAL) == (
        UtilizationTarget(MEMORY, 50, GIB),
        UtilizationTarget(CPU, 50, 1.0),
    )


def test_an_hpa_whose_targets_are_not_known_leaves_it_to_the_policy() -> None:
    bare = Autoscaler("web-hpa", 1, 10)
    assert targets_of(workload(autoscaler=bare), HORIZONTAL) == (UtilizationTarget(CPU, 80, 1.0),)


def test_the_policy_adds_requests_where_it_says_what_a_pod_serves() -> None:
    own = policy(requests_per_pod=50.0).horizontal
    assert targets_of(workload(autoscaler=None), own)[1:] == (AmountTarget(REQUESTS, 50.0),)


def test_without_a_request_and_without_an_hpa_there_is_no_target() -> None:
    assert targets_of(workload(autoscaler=None, resources=Resources()), HORIZONTAL) == ()


def test_what_cannot_be_computed_stays_in_the_list_with_its_reason() -> None:
    queue = Target("queue_length", TargetType.AVERAGE_VALUE, 30.0)
    (target,) = targets_of(workload(autoscaler=hpa(queue)), HORIZONTAL)
    assert isinstance(target, Unusable)
    assert target.metric == "queue_length"


def test_a_target_of_one_container_is_a_share_of_what_that_container_requests() -> None:
    app = Target("cpu", TargetType.UTILIZATION, 0.7, "app")
    meshed = replace(workload(autoscaler=hpa(app)), containers=(NamedContainer("app", Resources(cpu_request=0.5)),))
    assert targets_of(meshed, HORIZONTAL) == (UtilizationTarget(CPU_CONTAINER, 70, 0.5),)


def test_a_target_of_one_container_without_a_request_names_it() -> None:
    (target,) = targets_of(workload(autoscaler=hpa(Target("cpu", TargetType.UTILIZATION, 0.7, "app"))), HORIZONTAL)
    assert target == Unusable("cpu", "utilization needs a cpu request on container app; set one")


def test_an_amount_of_memory_of_one_container_needs_no_request() -> None:
    app = Target("memory", TargetType.AVERAGE_VALUE, GIB, "app")
    assert targets_of(workload(autoscaler=hpa(app)), HORIZONTAL) == (AmountTarget(MEMORY_CONTAINER, GIB),)


def test_of_targets_on_several_containers_none_is_taken_for_the_other() -> None:
    both = (Target("cpu", TargetType.UTILIZATION, 0.7, name) for name in ("app", "proxy"))
    targets = targets_of(workload(autoscaler=hpa(*both)), HORIZONTAL)
    assert targets == (Unusable("cpu", SEVERAL_CONTAINERS),) * 2


def test_targets_are_written_as_manifests_have_them() -> None:
    texts = [
        str(UtilizationTarget(CPU, 70, 0.25)),
        str(AmountTarget(MEMORY, 1.5 * GIB)),
        str(AmountTarget(REQUESTS, 50.0)),
    ]
    assert texts == ["70 % of 250m a pod", "1.5Gi a pod", "50/s a pod"]


def test_our_own_demand_is_a_target_like_measured_demand() -> None:
    scaler = hpa(Target("forecaster_demand", TargetType.AVERAGE_VALUE, 0.5))
    requests = policy(demand_signal="requests").horizontal
    assert targets_of(workload(autoscaler=scaler), HORIZONTAL) == (AmountTarget(CPU, 0.5),)
    assert targets_of(workload(autoscaler=scaler), requests) == (AmountTarget(REQUESTS, 0.5),)


def test_several_targets_of_our_demand_cannot_be_told_apart() -> None:
    demands = [Target("forecaster_demand", TargetType.AVERAGE_VALUE, each) for each in (0.5, 100.0)]
    by_keda = Target("s1-forecaster-requests", TargetType.AVERAGE_VALUE, 100.0)
    targets = targets_of(workload(autoscaler=hpa(*demands, CPU_HALF, by_keda)), HORIZONTAL)
    assert [isinstance(target, Unusable) for target in targets] == [True, True, False, False]


def test_several_targets_whose_selectors_are_known_are_each_their_signal() -> None:
    demands = [
        Target("forecaster_demand", TargetType.AVERAGE_VALUE, 0.5, signal="cpu"),
        Target("forecaster_demand", TargetType.AVERAGE_VALUE, 100.0, signal="requests"),
    ]
    targets = targets_of(workload(autoscaler=hpa(*demands)), HORIZONTAL)
    assert targets == (AmountTarget(CPU, 0.5), AmountTarget(REQUESTS, 100.0))


def test_a_selector_that_names_no_signal_there_is_says_so() -> None:
    wrong = Target("forecaster_demand", TargetType.AVERAGE_VALUE, 0.5, signal="cpus")
    (target,) = targets_of(workload(autoscaler=hpa(wrong)), HORIZONTAL)
    assert isinstance(target, Unusable)
    assert target.note == "its selector names signal cpus, which is not measured; mend the HPA"


def test_an_hpa_that_only_follows_our_count_leaves_what_a_pod_carries_to_the_policy() -> None:
    follower = hpa(Target("forecaster_replicas", TargetType.AVERAGE_VALUE, 1))
    answer, own = targets_of(workload(autoscaler=follower), HORIZONTAL)
    assert isinstance(answer, Unusable)
    assert own == UtilizationTarget(CPU, 80, 1.0)


@pytest.mark.parametrize(
    "metric", ["s0-forecaster-requests", "s12-forecaster-requests", "s0-metric-api-forecaster-requests"]
)
def test_a_metric_that_keda_passes_on_from_us_is_the_signal_in_its_name(metric: str) -> None:
    passed_on = Target(metric, TargetType.AVERAGE_VALUE, 100.0)
    assert targets_of(workload(autoscaler=hpa(passed_on)), HORIZONTAL) == (AmountTarget(REQUESTS, 100.0),)


def test_a_count_that_keda_passes_on_from_us_is_the_answer_itself() -> None:
    passed_on = Target("s0-forecaster-replicas", TargetType.AVERAGE_VALUE, 1.0)
    first, *_ = targets_of(workload(autoscaler=hpa(passed_on)), HORIZONTAL)
    assert isinstance(first, Unusable)


@pytest.mark.parametrize("metric", ["s0-prometheus", "s1-metric-api-value", "composite-metric"])
def test_a_metric_of_keda_without_a_name_of_ours_has_the_remedy(metric: str) -> None:
    by_keda = Target(metric, TargetType.AVERAGE_VALUE, 0.35)
    assert targets_of(workload(autoscaler=hpa(by_keda)), HORIZONTAL) == (Unusable(metric, UNNAMED_BY_KEDA),)


def test_a_cpu_trigger_beside_a_metric_without_a_name_says_what_a_pod_carries() -> None:
    by_keda = Target("s0-prometheus", TargetType.AVERAGE_VALUE, 0.35)
    _, cpu = targets_of(workload(autoscaler=hpa(by_keda, CPU_HALF)), HORIZONTAL)
    assert cpu == UtilizationTarget(CPU, 50, 1.0)

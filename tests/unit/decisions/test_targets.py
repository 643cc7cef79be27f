from __future__ import annotations

from forecaster.decisions.targets import AmountTarget, Unusable, UtilizationTarget, targets_of
from forecaster.domain.signal import Signal
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType
from tests.support.builders import CPU_HALF, GIB, MEMORY_HALF, hpa, policy, workload

HORIZONTAL = policy().horizontal


def test_the_targets_of_the_hpa_in_its_order() -> None:
    assert targets_of(workload(autoscaler=hpa(MEMORY_HALF, CPU_HALF)), HORIZONTAL) == (
        UtilizationTarget(Signal.MEMORY, 50, GIB),
        UtilizationTarget(Signal.CPU, 50, 1.0),
    )


def test_an_hpa_whose_targets_are_not_known_leaves_it_to_the_policy() -> None:
    bare = Autoscaler("web-hpa", 1, 10)
    assert targets_of(workload(autoscaler=bare), HORIZONTAL) == (UtilizationTarget(Signal.CPU, 80, 1.0),)


def test_the_policy_adds_requests_where_it_says_what_a_pod_serves() -> None:
    own = policy(requests_per_pod=50.0).horizontal
    assert targets_of(workload(autoscaler=None), own)[1:] == (AmountTarget(Signal.REQUESTS, 50.0),)


def test_without_a_request_and_without_an_hpa_there_is_no_target() -> None:
    assert targets_of(workload(autoscaler=None, resources=Resources()), HORIZONTAL) == ()


def test_what_cannot_be_computed_stays_in_the_list_with_its_reason() -> None:
    queue = Target("queue_length", TargetType.AVERAGE_VALUE, 30.0)
    (target,) = targets_of(workload(autoscaler=hpa(queue)), HORIZONTAL)
    assert isinstance(target, Unusable)
    assert target.metric == "queue_length"


def test_targets_are_spoken_as_manifests_have_them() -> None:
    spoken = [
        str(UtilizationTarget(Signal.CPU, 70, 0.25)),
        str(AmountTarget(Signal.MEMORY, 1.5 * GIB)),
        str(AmountTarget(Signal.REQUESTS, 50.0)),
    ]
    assert spoken == ["70 % of 250m a pod", "1.5Gi a pod", "50/s a pod"]

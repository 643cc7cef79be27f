"""Reading what the metrics APIs answer (docs/hpa.md, section 5)."""

from __future__ import annotations

from forecaster.hpa.numbers import MAX_INT64
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.samples import (
    ContainerUsage,
    ExternalValues,
    PodMetrics,
    PodSample,
    SampledPods,
    external_shared_total,
    external_total,
    read_external_values,
    read_pod_usage,
    read_pod_values,
)
from tests.support.hpa import NOW, seconds


def usage(name: str, *containers: tuple[str, dict[str, int]]) -> PodMetrics:
    return PodMetrics(name, NOW, seconds(30), [ContainerUsage(*container) for container in containers])


def values(answer: object) -> dict[str, int]:
    assert isinstance(answer, SampledPods)
    return {pod: sample.value_milli for pod, sample in answer.samples.items()}


def test_an_empty_list_is_no_answer() -> None:
    answers = {
        "resource": read_pod_usage([], "cpu"),
        "custom": read_pod_values([]),
        "external": read_external_values([]),
    }
    for api, answer in answers.items():
        assert answer == Unmeasured("no_samples", f"no metrics returned from {api} metrics API")


def test_a_pod_is_the_sum_of_its_containers() -> None:
    items = [usage("a", ("x", {"cpu": 1}), ("y", {"cpu": 2, "memory": 9}))]
    assert read_pod_usage(items, "cpu") == SampledPods({"a": PodSample(3, NOW, seconds(30))})


def test_a_pod_with_one_container_that_lacks_the_resource_has_no_sample() -> None:
    assert values(read_pod_usage([usage("a", ("x", {"cpu": 1}), ("y", {}))], "cpu")) == {}


def test_a_pod_without_containers_has_no_sample() -> None:
    assert values(read_pod_usage([usage("a")], "cpu")) == {}


def test_a_named_container_is_read_alone_and_may_be_absent() -> None:
    items = [usage("a", ("x", {"cpu": 1}), ("y", {"cpu": 2})), usage("b", ("x", {"cpu": 4})), usage("c", ("y", {}))]
    assert values(read_pod_usage(items, "cpu", "y")) == {"a": 2}


def test_sums_of_containers_wrap_at_64_bits() -> None:
    assert values(read_pod_usage([usage("a", ("x", {"m": MAX_INT64}), ("y", {"m": 1}))], "m")) == {"a": -(2**63)}


def test_a_custom_value_without_window_has_one_of_a_minute() -> None:
    read = read_pod_values([("a", 5, NOW, None), ("b", 6, NOW, seconds(15))])
    assert read == SampledPods({"a": PodSample(5, NOW, seconds(60)), "b": PodSample(6, NOW, seconds(15))})


def test_external_values_are_kept_as_they_come() -> None:
    assert read_external_values([1, -2]) == ExternalValues([1, -2])


def test_a_total_stops_at_the_end_of_64_bits_and_ignores_the_rest() -> None:
    assert external_total([MAX_INT64, 1, -5]) == MAX_INT64
    assert external_total([MAX_INT64 - 1, 1, -5]) == MAX_INT64 - 5
    assert external_total([-3, 2]) == -1
    assert external_total([]) == 0


def test_a_total_may_wrap_downwards() -> None:
    assert external_total([-(2**63), -1]) == MAX_INT64


def test_a_shared_total_takes_anything_below_zero_for_an_overflow() -> None:
    assert external_shared_total([5, -6, 1]) == MAX_INT64
    assert external_shared_total([MAX_INT64, 1]) == MAX_INT64
    assert external_shared_total([5, -5, 2]) == 2
    assert external_shared_total([0]) == 0

"""One metric of the spec (docs/hpa.md, section 4): which formula, which error first."""

from __future__ import annotations

import pytest

from forecaster.hpa.evaluate import (
    MetricContext,
    RequestedUsage,
    evaluate,
    missing_share,
    remaining_samples,
    requested_usage,
    total_usage,
    unready_share,
)
from forecaster.hpa.numbers import MAX_INT32, MAX_INT64
from forecaster.hpa.pods import Groups, PodContainer, ReadyCondition
from forecaster.hpa.proposals import DEFAULT_TOLERANCE, MetricProposal, Share, Unmeasured
from forecaster.hpa.samples import Answer, ExternalValues, ObjectMetric, PodSample, SampledPods
from forecaster.hpa.spec import SHIPPED, Controller, FeatureGates, HpaMetricTarget, MetricSpec
from tests.support.hpa import CPU, NOW, QUEUE, ago, pod

PODS = [pod("a"), pod("b")]
AVERAGE, TOTAL = HpaMetricTarget("AverageValue", average_value_milli=1000), HpaMetricTarget("Value", value_milli=1000)


def samples(*values: int) -> SampledPods:
    return SampledPods({name: PodSample(value, NOW) for name, value in zip("abcdef", values, strict=False)})


def ask(
    metric: MetricSpec, answer: Answer, pods: list[object] | None = None, current: int = 2
) -> MetricProposal | Unmeasured:
    matched = PODS if pods is None else pods
    situation = MetricContext(current, 4, matched, DEFAULT_TOLERANCE, NOW, SHIPPED)  # type: ignore[arg-type]
    return evaluate(metric, answer, situation)


def replicas(answer: MetricProposal | Unmeasured) -> int:
    assert isinstance(answer, MetricProposal), answer
    return answer.replicas


def cause(answer: MetricProposal | Unmeasured) -> str:
    assert isinstance(answer, Unmeasured), answer
    return answer.cause


@pytest.mark.parametrize("source", ["Resource", "ContainerResource"])
def test_of_two_targets_the_average_value_wins(source: str) -> None:
    target = HpaMetricTarget("Utilization", average_utilization_percent=1, average_value_milli=1000)
    assert replicas(ask(MetricSpec(source, "cpu", target, "app"), samples(1500, 1500))) == 3


def test_a_named_container_is_divided_by_its_own_request() -> None:
    two = (PodContainer("app", {"cpu": 500}), PodContainer("side", {"cpu": 5000}))
    metric = MetricSpec("ContainerResource", "cpu", CPU.target, "app")
    assert replicas(ask(metric, samples(500, 500), [pod("a", containers=two), pod("b", containers=two)])) == 4
    lost = MetricSpec("ContainerResource", "cpu", CPU.target, "nowhere")
    assert cause(ask(lost, samples(500, 500))) == "container_not_found"


def test_pods_metrics_have_no_readiness_rule() -> None:
    starting = [pod("a", ready=None), pod("b", ready=ReadyCondition("False", NOW))]
    assert replicas(ask(MetricSpec("Pods", "qps", AVERAGE), samples(2000, 2000), starting)) == 4


def test_an_average_of_cpu_keeps_the_readiness_rules() -> None:
    starting = [pod("a"), pod("b", ready=None)]
    assert replicas(ask(MetricSpec("Resource", "cpu", AVERAGE), samples(4000, 9000), starting)) == 4
    assert replicas(ask(MetricSpec("Resource", "memory", AVERAGE), samples(4000, 9000), starting)) == 13


def test_object_metrics_need_type_and_field_to_agree() -> None:
    assert replicas(ask(MetricSpec("Object", "q", TOTAL), ObjectMetric(2000))) == 4
    assert replicas(ask(MetricSpec("Object", "q", AVERAGE), ObjectMetric(2000))) == 2
    crossed = HpaMetricTarget("Value", average_value_milli=1000)
    assert cause(ask(MetricSpec("Object", "q", crossed), ObjectMetric(2000))) == "invalid_target"
    crossed = HpaMetricTarget("AverageValue", value_milli=1000)
    assert cause(ask(MetricSpec("Object", "q", crossed), ObjectMetric(2000))) == "invalid_target"


def test_external_metrics_look_at_the_average_first() -> None:
    both_set = HpaMetricTarget("Value", average_value_milli=1000, value_milli=1)
    assert replicas(ask(MetricSpec("External", "q", both_set), ExternalValues((1000, 2000)))) == 3
    assert replicas(ask(MetricSpec("External", "q", TOTAL), ExternalValues((1000, 2000)))) == 6


def test_a_negative_external_value_is_an_overflow_for_pods_and_none_for_totals() -> None:
    assert replicas(ask(QUEUE, ExternalValues((-1,)))) == MAX_INT32
    assert replicas(ask(MetricSpec("External", "q", TOTAL), ExternalValues((-1000,)))) == -2


@pytest.mark.parametrize(
    ("metric", "answer"),
    [
        (MetricSpec("Resource", "cpu", HpaMetricTarget("Value")), samples(1)),
        (MetricSpec("Pods", "q", HpaMetricTarget("Value", value_milli=1)), samples(1)),
        (MetricSpec("External", "q", HpaMetricTarget("Value")), ExternalValues((1,))),
    ],
)
def test_a_target_that_fits_no_formula_is_an_error(metric: MetricSpec, answer: Answer) -> None:
    result = ask(metric, answer)
    assert cause(result) == "invalid_target"
    assert isinstance(result, Unmeasured)
    assert result.message.startswith(f"invalid {metric.source} metric source: neither")


@pytest.mark.parametrize(
    ("metric", "answer"),
    [
        (CPU, ObjectMetric(1)),
        (MetricSpec("Pods", "q", AVERAGE), ObjectMetric(1)),
        (MetricSpec("Object", "q", AVERAGE), ExternalValues((1,))),
        (QUEUE, ObjectMetric(1)),
    ],
)
def test_an_answer_of_another_api_is_an_error(metric: MetricSpec, answer: Answer) -> None:
    assert cause(ask(metric, answer)) == "api_failed"


def test_errors_come_in_order() -> None:
    """The sample list, the pods, what is left of the samples, the requests."""
    bare = [pod("a", containers=(PodContainer("app"),))]
    pending = [pod("a", phase="Pending", containers=(PodContainer("app"),))]
    assert cause(ask(CPU, Unmeasured("no_samples", ""), [])) == "no_samples"
    assert cause(ask(CPU, samples(1), [])) == "no_pods"
    assert cause(ask(CPU, samples(1), pending)) == "no_samples_left"
    assert cause(ask(CPU, samples(1), bare)) == "missing_request"
    assert cause(ask(CPU, samples(1), [pod("a", containers=())])) == "no_request_for_sampled_pods"


def test_superfluous_samples_count_in_averages_and_not_in_utilization() -> None:
    three = samples(1000, 1000, 7000)
    assert replicas(ask(MetricSpec("Pods", "q", AVERAGE), three)) == 6
    assert replicas(ask(CPU, three)) == 4


def test_pods_are_needed_only_outside_the_tolerance() -> None:
    metric = MetricSpec("External", "q", TOTAL)
    assert replicas(ask(metric, ExternalValues((1000,)), [])) == 2
    assert cause(ask(metric, ExternalValues((2000,)), [])) == "no_pods"
    assert replicas(ask(metric, ExternalValues((2000,)), [], current=0)) == 2


def test_with_no_ready_pods_a_total_asks_for_none() -> None:
    down = [pod("a", ready=None)]
    assert replicas(ask(MetricSpec("External", "q", TOTAL), ExternalValues((2000,)), down)) == 0


def test_missing_pods_are_filled_in_with_their_own_requests() -> None:
    """10 % in use beside a missing pod of twice the size: 2100 of 3000 is 70 %, above the target, so no change."""
    large = pod("b", containers=(PodContainer("app", {"cpu": 2000}),))
    assert ask(CPU, samples(100), [pod("a"), large], current=3) == MetricProposal(3, 1.4, "direction", 10, 100)


def test_unready_pods_are_filled_in_with_their_own_requests() -> None:
    large = pod("b", ready=None, containers=(PodContainer("app", {"cpu": 3000}),))
    assert ask(CPU, samples(1800, 5), [pod("a"), large]) == MetricProposal(2, 0.9, "tolerance", 180, 1800)


def message(answer: MetricProposal | Unmeasured) -> str:
    assert isinstance(answer, Unmeasured), answer
    return answer.message


def test_errors_say_what_the_controller_says() -> None:
    bare = HpaMetricTarget("Value")
    neither = "a value target nor an average value target was set"
    assert message(ask(MetricSpec("Resource", "cpu", bare), samples(1))) == (
        "invalid Resource metric source: neither an average utilization target "
        "nor an average value (usage) target was set"
    )
    assert message(ask(MetricSpec("Pods", "q", bare), samples(1))) == (
        "invalid Pods metric source: neither an average value target was set"
    )
    assert (
        message(ask(MetricSpec("Object", "q", bare), ObjectMetric(1)))
        == f"invalid Object metric source: neither {neither}"
    )
    assert message(ask(MetricSpec("External", "q", bare), ExternalValues((1,)))) == (
        f"invalid External metric source: neither {neither}"
    )
    assert message(ask(MetricSpec("Cheese", "q", bare), samples(1))) == 'unknown metric source type "Cheese"'
    assert message(ask(CPU, ObjectMetric(1))) == "the answer for Resource metric cpu is of another kind of metric"


def test_an_overflown_external_sum_is_reported_whole() -> None:
    proposal = ask(QUEUE, ExternalValues((MAX_INT64, 1)))
    assert isinstance(proposal, MetricProposal)
    assert proposal.average_milli == MAX_INT64


def test_unready_and_missing_pods_reach_an_average() -> None:
    four = [pod("a"), pod("b"), pod("c", phase="Pending"), pod("d", phase="Pending")]
    metric = MetricSpec("Pods", "q", AVERAGE)
    assert ask(metric, samples(3000, 3000), four, current=4) == MetricProposal(6, 1.5, None, average_milli=3000)
    lost = [pod("a"), pod("b"), pod("c")]
    assert ask(metric, samples(100, 100), lost, current=3) == MetricProposal(2, 0.4, None, average_milli=100)


def test_the_gate_of_pod_level_requests_reaches_utilization() -> None:
    level = [pod("a", containers=(PodContainer("app"),), pod_requests_milli={"cpu": 1000})]
    off = Controller(gates=FeatureGates(pod_level_resources=False))
    on, without = (
        evaluate(CPU, samples(500), MetricContext(1, 1, level, DEFAULT_TOLERANCE, NOW, controller))
        for controller in (SHIPPED, off)
    )
    assert replicas(on) == 1
    assert cause(without) == "missing_request"


def test_samples_of_strangers_count_in_the_multiplier_but_not_in_the_average() -> None:
    """a and b are sampled, c is missing, the sample of d belongs to nobody: 300 % of 3000 over four samples."""
    three = [pod("a"), pod("b"), pod("c")]
    used = SampledPods({"a": PodSample(3000, NOW), "b": PodSample(3000, NOW), "d": PodSample(1, NOW)})
    assert ask(CPU, used, three, current=3) == MetricProposal(16, 4.0, None, 300, 3000)


def test_the_initial_readiness_delay_reaches_the_groups() -> None:
    never_ready = [pod("a"), pod("b", start_time=ago(1000), ready=ReadyCondition("False", ago(980)))]
    assert replicas(ask(CPU, samples(1000, 1000), never_ready)) == 2


def test_totals_without_ready_pods_from_zero_look_at_none() -> None:
    assert replicas(ask(MetricSpec("External", "q", TOTAL), ExternalValues((5000,)), [], current=0)) == 5


SAMPLES = {"a": PodSample(1, NOW), "b": PodSample(20, NOW), "gone": PodSample(300, NOW)}


def test_ignored_and_unready_pods_lose_their_samples_and_strangers_do_not() -> None:
    assert set(remaining_samples(SAMPLES, Groups(0, ["a"], [], []))) == {"b", "gone"}
    assert set(remaining_samples(SAMPLES, Groups(0, [], [], ["b"]))) == {"a", "gone"}
    assert set(remaining_samples(SAMPLES, Groups(0, ["a"], [], ["b"]))) == {"gone"}
    assert remaining_samples(SAMPLES, Groups(2, [], ["c"], [])) is SAMPLES


def test_utilization_counts_samples_with_a_request() -> None:
    assert requested_usage(SAMPLES, {"a": 5, "b": 6, "c": 7}) == RequestedUsage(21, 11, 2)


def test_averages_count_all_samples() -> None:
    assert total_usage(SAMPLES) == 321


def test_a_missing_pod_is_filled_in_pod_by_pod() -> None:
    assert missing_share(["a", "b"], {"a": 5, "b": 7}, 50) == Share(2, 12, 12)
    assert missing_share(["a", "b"], {"a": 5, "b": 7}, 150) == Share(2, 12, 7 + 10)


def test_a_fill_wraps_before_it_is_divided() -> None:
    assert missing_share(["a"], {"a": 2**62}, 100).fill_milli == 0


def test_an_unready_pod_brings_its_request_and_no_usage() -> None:
    assert unready_share(["a", "b"], {"a": 5, "b": 7}) == Share(2, 12, 0)

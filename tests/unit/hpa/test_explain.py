"""Explanations of a pass of the HPA controller."""

from __future__ import annotations

from forecaster.hpa.explain import PassExplanation, aims, explain
from forecaster.hpa.observation import Observation, ScaleSubresource, ScaleUnread
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.samples import PodSample, SampledPods
from forecaster.hpa.spec import HpaMetricTarget, HpaSpec, MetricSpec
from forecaster.hpa.state import HpaCondition, HpaState
from tests.support.hpa import CPU, NOW, QUEUE, both, hpa, look, moved, past, policy, queue_of, rules

CORES = MetricSpec("Resource", "cpu", HpaMetricTarget("AverageValue", average_value_milli=500))
SEEN = HpaState(history=())


def say(spec: HpaSpec, observation: Observation, state: HpaState = SEEN) -> PassExplanation:
    return explain(spec, observation, state, reconcile(spec, observation, state, NOW), NOW)


def cores(*milli: int) -> SampledPods:
    return SampledPods({f"p{number}": PodSample(value, NOW) for number, value in enumerate(milli)})


def test_a_rise_that_a_policy_clamps() -> None:
    explanation = say(hpa(CORES, behavior=both()), look(4, cores(1300, 1300, 1300, 1300)))
    assert explanation.summary == (
        "At the next sync your HPA will see 5.2 cores / 500m = 11 pods; tolerance 0.1 does not apply; "
        "scale-up policy allows 8; it will go from 4 to 8 and say ScaleUpLimit."
    )
    assert explanation.steps == (
        "Resource cpu: 5.2 cores / 500m = 11 pods",
        "recommendation: the largest proposal, 11 pods",
        "stabilization: windows 0 s up and 300 s down, nothing held back",
        "policies up: 4 pods per 15 s allows 8, 100 % per 15 s allows 8; selectPolicy Max",
        "bounds: minReplicas 1, maxReplicas 100",
        (
            "conditions: AbleToScale=True (SucceededRescale), ScalingActive=True (ValidMetricFound), "
            "ScalingLimited=True (ScaleUpLimit)"
        ),
    )


def test_policies_are_told_with_what_moved_before() -> None:
    state = HpaState(history=(), scale_ups=(moved(3, 5),))
    explanation = say(hpa(CORES, behavior=both()), look(4, cores(1300, 1300, 1300, 1300)), state)
    assert "policies up: 4 pods per 15 s allows 5, 100 % per 15 s allows 2; selectPolicy Max" in explanation.steps


def test_inside_the_tolerance_nothing_is_said_of_it_not_applying() -> None:
    assert say(hpa(), look(3, queue_of(93))).summary == (
        "At the next sync your HPA will see 93 / 30 = 3 pods (ratio 1.033 is within the tolerance: no change); "
        "it will keep 3 pods and say ReadyForNewScale."
    )


def test_stabilization_is_told_with_its_window() -> None:
    explanation = say(hpa(), look(8, queue_of(90)), HpaState(history=(past(7, 10),)))
    assert "stabilization makes it 7 (ScaleDownStabilized)" in explanation.summary
    assert (
        "stabilization: window 300 s down: recent recommendations were higher than current one, "
        "applying the highest recent recommendation, 7 pods"
    ) in explanation.steps


def test_bounds_are_told() -> None:
    assert "maxReplicas is 5; it will go from 3 to 5" in say(hpa(high=5), look(3, queue_of(900))).summary
    assert "minReplicas is 2; it will go from 3 to 2" in say(hpa(low=2), look(3, queue_of(0))).summary


def test_a_disabled_direction_is_told() -> None:
    off = both(None, rules(policy("Pods", 1), select="Disabled", window_s=0))
    explanation = say(hpa(behavior=off), look(8, queue_of(30)))
    assert "scale-down policy allows 8; it will keep 8 pods and say ScaleDownLimit" in explanation.summary
    assert "policies down: Disabled, no move in this direction" in explanation.steps


def test_without_behavior_the_growth_limit_is_told() -> None:
    explanation = say(hpa(), look(3, queue_of(900)))
    assert "growth limit allows 6" in explanation.summary
    assert "growth: without behavior at most 6 in this pass" in explanation.steps


def test_a_turned_direction_is_told() -> None:
    explanation = say(hpa(CPU), look(2, SampledPods({"p0": PodSample(400, NOW)})))
    assert explanation.steps[0] == (
        "Resource cpu: 40 % of requested cpu in use / 50 % = 2 pods "
        "(counting pods that are not ready or have no sample turns the direction around: no change)"
    )


def test_a_broken_metric_is_told() -> None:
    explanation = say(hpa(QUEUE, CPU), look(3, queue_of(30), Unmeasured("api_failed", "no answer")))
    assert explanation.summary == (
        "At the next sync your HPA keeps 3 pods: the HPA was unable to compute the replica count: no answer; "
        "it will say FailedGetResourceMetric."
    )
    assert explanation.steps[1] == "Resource cpu: no answer (no answer), which blocks scaling down"


def test_passes_that_look_at_no_metric_are_told() -> None:
    assert say(hpa(), look(0, queue_of(1))).summary == (
        "At the next sync your HPA does nothing: the target has 0 replicas, which switches scaling off; "
        "it will say ScalingDisabled."
    )
    old = HpaState(conditions=(HpaCondition("ScalingLimited", "True", "ScaleUpLimit"),))
    assert say(hpa(high=5), look(9, queue_of(1)), old).summary == (
        "At the next sync your HPA goes from 9 to maxReplicas 5 in one step, looking at no metric and no policy; "
        "it will say SucceededRescale."
    )
    assert "from 1 to minReplicas 2" in say(hpa(low=2), look(1, queue_of(1))).summary
    unread = say(hpa(), look(3, queue_of(1), scale=ScaleUnread("no such deployment")))
    assert unread.summary.endswith("unable to get the target's current scale: no such deployment.")


def test_a_selector_that_is_missing_is_told() -> None:
    explanation = say(hpa(), look(3, queue_of(1), scale=ScaleSubresource(3, 3, "")))
    assert explanation.summary.endswith("the HPA target's scale is missing a selector; it will say InvalidSelector.")


def test_aims_of_every_kind() -> None:
    memory = MetricSpec(
        "ContainerResource", "memory", HpaMetricTarget("AverageValue", average_value_milli=2**30 * 1000), "app"
    )
    percent = MetricSpec("ContainerResource", "cpu", HpaMetricTarget("Utilization", 60), "app")
    total = MetricSpec("External", "queue", HpaMetricTarget("Value", value_milli=30_000))
    assert aims(hpa(memory, percent, total, QUEUE)) == (
        "memory of container app is about 1Gi for each pod",
        "each pod uses about 60 % of its requested cpu of container app",
        "queue is about 30 in total",
        "queue is about 30 for each pod",
    )

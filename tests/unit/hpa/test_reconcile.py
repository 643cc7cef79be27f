"""Stories of single passes (docs/hpa.md, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forecaster.hpa.behavior import ScaleEvent, ScalingRules
from forecaster.hpa.limits import Growth
from forecaster.hpa.observation import Observation, ScaleSubresource, ScaleUnread
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.samples import ExternalValues, PodSample, SampledPods
from forecaster.hpa.selectors import parse_selector
from forecaster.hpa.spec import (
    Controller,
    CrossVersionObjectReference,
    FeatureGates,
    HpaMetricTarget,
    HpaSpec,
    MetricSpec,
)
from forecaster.hpa.state import HpaCondition, HpaState, MetricStatus
from tests.support.hpa import CPU, NOW, QUEUE, both, hpa, look, moved, past, policy, queue_of, rules, seconds

if TYPE_CHECKING:
    from forecaster.hpa.outcome import Pass

ZERO = Controller(gates=FeatureGates(scale_to_zero=True))
SCALED_TO_ZERO = HpaState(conditions=(HpaCondition("ScaledToZero", "True", "ScaledToZero"),))
BROKEN = Unmeasured("api_failed", "unable to get external metric")
STORED = HpaState(history=(past(3, 60),), current_replicas=3, desired_replicas=3)


def reasons(outcome: Pass) -> list[str]:
    return [condition.reason for condition in outcome.conditions]


def events(outcome: Pass) -> list[str]:
    return [event.reason for event in outcome.desired.events]


def test_a_rise_is_written_remembered_and_told() -> None:
    outcome = reconcile(hpa(), look(3, queue_of(150)), STORED, NOW)
    desired, conditions, state = outcome
    assert (desired.replicas, desired.written, desired.action, desired.error) == (5, True, "scale_up", "none")
    assert reasons(outcome) == ["SucceededRescale", "ValidMetricFound", "DesiredWithinRange"]
    assert desired.events[0].message == "New size: 5; reason: external metric queue(nil) above target"
    assert (state.current_replicas, state.desired_replicas, state.last_scale_time) == (3, 5, NOW)
    assert state.history == (past(3, 60), past(5, 0))
    assert state.current_metrics == (MetricStatus("External", "queue", average_milli=50_000),)
    assert state.scale_ups == ()
    assert conditions == state.conditions


def test_a_size_that_fits_is_left_alone() -> None:
    outcome = reconcile(hpa(), look(3, queue_of(90)), STORED, NOW)
    assert (outcome.desired.replicas, outcome.desired.written, outcome.desired.action) == (3, False, "none")
    assert reasons(outcome) == ["ReadyForNewScale", "ValidMetricFound", "DesiredWithinRange"]
    assert outcome.state.last_scale_time is None


def test_an_hpa_never_seen_is_seeded_with_its_size() -> None:
    outcome = reconcile(hpa(), look(8, queue_of(90)), HpaState(), NOW)
    assert (outcome.desired.replicas, reasons(outcome)[0]) == (8, "ScaleDownStabilized")
    assert outcome.state.history == (past(8, 0), past(3, 0))


def test_an_hpa_seen_before_is_not_seeded() -> None:
    assert reconcile(hpa(), look(8, queue_of(90)), HpaState(history=()), NOW).desired.replicas == 3


def test_a_scale_that_cannot_be_read_stops_the_pass() -> None:
    outcome = reconcile(hpa(), look(3, scale=ScaleUnread("gone")), STORED, NOW)
    assert (outcome.desired.replicas, outcome.desired.error, outcome.desired.branch) == (3, "internal", "unread")
    assert outcome.conditions[0][:4] == (
        "AbleToScale",
        "False",
        "FailedGetScale",
        "the HPA controller was unable to get the target's current scale: gone",
    )
    assert outcome.state.history == STORED.history
    assert events(outcome) == ["FailedGetScale"]


def test_an_api_version_with_two_slashes_is_the_specs_fault() -> None:
    spec = HpaSpec(CrossVersionObjectReference("Deployment", "d", "apps/v1/v2"), 5, (QUEUE,))
    outcome = reconcile(spec, look(3, queue_of(1)), STORED, NOW)
    assert (outcome.desired.error, reasons(outcome)) == ("spec", ["FailedGetScale"])


def test_above_the_maximum_everything_is_skipped() -> None:
    outcome = reconcile(hpa(high=10, behavior=both()), look(40, BROKEN), STORED, NOW)
    assert (outcome.desired.replicas, outcome.desired.written, outcome.desired.branch) == (10, True, "above_max")
    assert reasons(outcome) == ["SucceededRescale"]
    assert outcome.state.scale_downs == (ScaleEvent(30, NOW),)
    assert outcome.state.history == STORED.history
    assert outcome.state.current_metrics == ()
    assert outcome.desired.events[0].message.endswith("reason: Current number of replicas above Spec.MaxReplicas")


def test_below_the_minimum_everything_is_skipped() -> None:
    outcome = reconcile(hpa(low=4, behavior=both()), look(2, BROKEN), STORED, NOW)
    assert (outcome.desired.replicas, outcome.desired.written, outcome.desired.branch) == (4, True, "below_min")
    assert outcome.state.scale_ups == (ScaleEvent(2, NOW),)
    assert outcome.desired.events[0].message.endswith("reason: Current number of replicas below Spec.MinReplicas")


def test_an_absent_minimum_is_one() -> None:
    outcome = reconcile(hpa(low=None), look(2, queue_of(0)), HpaState(history=()), NOW)
    assert (outcome.desired.replicas, reasons(outcome)[2]) == (1, "TooFewReplicas")


def test_zero_replicas_switch_scaling_off() -> None:
    outcome = reconcile(hpa(), look(0, queue_of(90)), STORED, NOW)
    assert (outcome.desired.replicas, outcome.desired.written, outcome.desired.branch) == (0, False, "disabled")
    assert reasons(outcome) == ["SucceededGetScale", "ScalingDisabled"]
    assert outcome.state.desired_replicas == 0


def test_zero_by_hand_stays_zero_even_with_the_gate() -> None:
    outcome = reconcile(hpa(low=0), look(0, queue_of(90)), STORED, NOW, ZERO)
    assert outcome.desired.branch == "disabled"


def test_zero_by_the_hpa_comes_back() -> None:
    outcome = reconcile(hpa(low=0), look(0, queue_of(90)), SCALED_TO_ZERO, NOW, ZERO)
    assert (outcome.desired.replicas, outcome.desired.written) == (3, True)
    assert reasons(outcome)[0] == "NotScaledToZero"


def test_zero_by_the_hpa_stays_with_a_metric_that_needs_pods_and_minimum_zero() -> None:
    outcome = reconcile(hpa(CPU, low=0), look(0, BROKEN), SCALED_TO_ZERO, NOW, ZERO)
    assert outcome.desired.branch == "disabled"


def test_up_to_1_35_minimum_zero_looks_at_metrics_whoever_scaled_to_zero() -> None:
    before = Controller(gates=FeatureGates(scale_to_zero=True), minor=35)
    outcome = reconcile(hpa(low=0), look(0, queue_of(90)), STORED, NOW, before)
    assert (outcome.desired.replicas, outcome.desired.written) == (3, True)
    assert "NotScaledToZero" not in reasons(outcome)
    assert reconcile(hpa(), look(0, queue_of(90)), SCALED_TO_ZERO, NOW, before).desired.branch == "disabled"


def test_back_from_zero_policies_do_not_keep_it_below_the_minimum() -> None:
    slow = both(rules(policy("Pods", 1)))
    outcome = reconcile(hpa(low=3, behavior=slow), look(0, queue_of(300)), SCALED_TO_ZERO, NOW, ZERO)
    assert (outcome.desired.replicas, outcome.desired.limited and outcome.desired.limited.replicas) == (3, 1)
    assert outcome.desired.events[0].message == "New size: 3; reason: external metric queue(nil) above target"
    idle = reconcile(hpa(low=3, behavior=slow), look(0, queue_of(0)), SCALED_TO_ZERO, NOW, ZERO)
    assert idle.desired.events[0].message == "New size: 3; reason: Current number of replicas below Spec.MinReplicas"


def test_going_to_zero_is_told_on_the_object() -> None:
    state = HpaState(history=())
    outcome = reconcile(hpa(low=0), look(2, queue_of(0)), state, NOW, ZERO)
    assert (outcome.desired.replicas, reasons(outcome)[-1]) == (0, "ScaledToZero")


def test_going_to_zero_without_a_metric_from_outside_is_not_the_hpas_doing() -> None:
    metric = MetricSpec("Pods", "qps", HpaMetricTarget("AverageValue", average_value_milli=1000))
    idle = SampledPods({"p0": PodSample(0, NOW), "p1": PodSample(0, NOW)})
    outcome = reconcile(hpa(metric, low=0), look(2, idle), HpaState(history=()), NOW, ZERO)
    assert (outcome.desired.replicas, reasons(outcome)[-1]) == (0, "NotScaledToZero")


@pytest.mark.parametrize("replicas", [0, 3])
def test_without_the_gate_a_left_over_condition_goes(replicas: int) -> None:
    outcome = reconcile(hpa(), look(replicas, queue_of(900)), SCALED_TO_ZERO._replace(history=()), NOW)
    assert "ScaledToZero" not in [condition.type for condition in outcome.conditions]


def test_without_the_gate_a_pass_that_writes_nothing_leaves_it() -> None:
    outcome = reconcile(hpa(), look(3, queue_of(90)), SCALED_TO_ZERO, NOW)
    assert outcome.conditions[0].type == "ScaledToZero"


def test_a_broken_metric_is_a_condition_and_keeps_everything() -> None:
    outcome = reconcile(hpa(), look(3, BROKEN), STORED, NOW)
    assert (outcome.desired.replicas, outcome.desired.error) == (3, "internal")
    assert outcome.conditions[1][:4] == (
        "ScalingActive",
        "False",
        "FailedGetExternalMetric",
        "the HPA was unable to compute the replica count: unable to get external metric",
    )
    assert events(outcome) == ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"]
    assert outcome.state.history == STORED.history
    assert outcome.state.current_metrics == (None,)


def test_a_broken_metric_beside_a_rising_one_is_reported_after_scaling() -> None:
    outcome = reconcile(hpa(QUEUE, CPU), look(3, queue_of(150), BROKEN), STORED, NOW)
    assert (outcome.desired.replicas, outcome.desired.error) == (5, "internal")
    assert events(outcome) == ["FailedGetResourceMetric", "SuccessfulRescale"]


def test_an_unknown_source_is_named() -> None:
    strange = MetricSpec("Cheese", "cheddar", HpaMetricTarget())
    outcome = reconcile(hpa(strange), look(3, queue_of(1)), STORED, NOW)
    assert reasons(outcome)[1] == "InvalidMetricSourceType"


@pytest.mark.parametrize(
    ("selector", "event"), [("", "SelectorRequired"), ("app in (", "InvalidSelector")], ids=["missing", "unparsable"]
)
def test_pods_that_cannot_be_told_stop_the_metrics(selector: str, event: str) -> None:
    outcome = reconcile(hpa(), look(3, queue_of(150), scale=ScaleSubresource(3, 3, selector)), STORED, NOW)
    assert reasons(outcome) == ["SucceededGetScale", "InvalidSelector"]
    assert events(outcome) == [event, "FailedComputeMetricsReplicas"]
    assert outcome.state.current_metrics == ()


def test_pods_of_two_hpas_stop_the_metrics() -> None:
    other = (parse_selector("app=cart"), parse_selector("app=shop"))
    outcome = reconcile(hpa(), look(3, queue_of(150), other_selectors=other), STORED, NOW)
    assert reasons(outcome)[1] == "AmbiguousSelector"


def test_another_hpa_elsewhere_does_not_matter() -> None:
    other = (parse_selector("app=cart"),)
    assert reconcile(hpa(), look(3, queue_of(150), other_selectors=other), STORED, NOW).desired.replicas == 5


@pytest.mark.parametrize(
    "fault", [{"write_refused": True}, {"write_conflicts": 5}, {"write_conflicts": 6}], ids=["refused", "5", "6"]
)
def test_a_write_that_fails_keeps_the_recommendation_and_nothing_else(fault: dict[str, object]) -> None:
    outcome = reconcile(hpa(behavior=both()), look(3, queue_of(150), **fault), STORED, NOW)
    assert (outcome.desired.replicas, outcome.desired.written, outcome.desired.action) == (3, False, "none")
    assert (outcome.desired.error, reasons(outcome)[0]) == ("internal", "FailedUpdateScale")
    assert outcome.conditions[0].status == "False"
    assert events(outcome) == ["FailedRescale"]
    assert outcome.state.history == (past(3, 60), past(5, 0))
    assert outcome.state.scale_ups == ()
    assert outcome.state.last_scale_time is None


def test_four_conflicts_are_tried_again() -> None:
    assert reconcile(hpa(), look(3, queue_of(150), write_conflicts=4), STORED, NOW).desired.written


def test_with_behavior_a_fall_is_remembered_in_its_list() -> None:
    state = HpaState(history=(), scale_downs=(moved(9, 100),))
    outcome = reconcile(hpa(behavior=both()), look(6, queue_of(90)), state, NOW)
    assert outcome.state.scale_downs == (ScaleEvent(3, NOW),)
    assert (outcome.desired.action, outcome.state.scale_ups) == ("scale_down", ())
    assert outcome.desired.events[0].message == "New size: 3; reason: All metrics below target"


def test_a_rise_from_stabilisation_alone_has_no_reason() -> None:
    state = HpaState(history=(past(5, 10),))
    outcome = reconcile(hpa(), look(3, queue_of(90)), state, NOW)
    assert outcome.desired.events[0].message == "New size: 5; reason: "


def test_negative_samples_are_cut_to_zero_replicas() -> None:
    metric = MetricSpec("External", "delta", HpaMetricTarget("Value", value_milli=1000))
    outcome = reconcile(hpa(metric, low=0), look(2, ExternalValues((-5000,))), HpaState(history=()), NOW, ZERO)
    assert outcome.desired.replicas == 0
    assert outcome.state.history == (past(0, 0),)


def test_one_answer_a_metric_is_demanded() -> None:
    with pytest.raises(ValueError, match="zip"):
        reconcile(hpa(QUEUE, CPU), look(3, queue_of(1)), STORED, NOW)


def test_conditions_keep_their_time_while_their_status_stays() -> None:
    first = reconcile(hpa(), look(3, queue_of(90)), STORED, NOW)
    second = reconcile(hpa(), look(3, queue_of(150)), first.state, NOW + seconds(15))
    assert [condition.last_transition for condition in second.conditions] == [NOW, NOW, NOW]


@pytest.mark.parametrize(
    ("observation", "spec"),
    [
        (look(3, queue_of(150)), hpa(behavior=both())),
        (look(0, queue_of(150)), hpa()),
        (look(3, BROKEN), hpa()),
        (look(3, queue_of(1), scale=ScaleSubresource(3, 3, "")), hpa()),
        (look(3, queue_of(1), scale=ScaleUnread("gone")), hpa()),
        (look(3, queue_of(150), write_refused=True), hpa()),
        (look(2, queue_of(0)), hpa(low=0)),
        (look(2, queue_of(0)), HpaSpec(CrossVersionObjectReference("Deployment", "d", "a/b/c"), 5, (QUEUE,))),
    ],
)
def test_conditions_begin_now_and_are_part_of_the_state(observation: Observation, spec: HpaSpec) -> None:
    outcome = reconcile(spec, observation, HpaState(history=()), NOW, ZERO)
    assert {condition.last_transition for condition in outcome.conditions} == {NOW}
    assert outcome.state.conditions == outcome.conditions


def test_what_is_not_written_says_so() -> None:
    for observation in (look(3, BROKEN), look(3, scale=ScaleUnread("gone")), look(0, BROKEN), look(3, queue_of(90))):
        assert reconcile(hpa(), observation, STORED, NOW).desired.written is False


def test_branches_have_names() -> None:
    observations = [look(3, BROKEN), look(3, queue_of(90)), look(3, scale=ScaleUnread("gone"))]
    assert [reconcile(hpa(), observation, STORED, NOW).desired.branch for observation in observations] == [
        "metrics",
        "metrics",
        "unread",
    ]


def test_at_the_maximum_metrics_are_still_followed() -> None:
    outcome = reconcile(hpa(high=5), look(5, queue_of(900)), STORED, NOW)
    assert (outcome.desired.branch, outcome.desired.limited and outcome.desired.limited.clamp) == (
        "metrics",
        "TooManyReplicas",
    )


def test_one_pod_up_is_a_rise() -> None:
    outcome = reconcile(hpa(behavior=both()), look(3, queue_of(120)), STORED, NOW)
    assert (outcome.state.scale_ups, outcome.state.scale_downs) == ((ScaleEvent(1, NOW),), ())
    assert outcome.state.last_scale_time == NOW


def test_a_fall_with_behavior_moves_the_time_of_the_last_scale() -> None:
    outcome = reconcile(hpa(behavior=both()), look(6, queue_of(90)), HpaState(history=()), NOW)
    assert outcome.state.last_scale_time == NOW


def test_from_one_pod_to_none_is_the_hpas_doing() -> None:
    outcome = reconcile(hpa(low=0), look(1, queue_of(0)), HpaState(history=()), NOW, ZERO)
    assert reasons(outcome)[-1] == "ScaledToZero"


def test_messages_name_what_happened() -> None:
    def message_of(outcome: Pass, kind: str) -> str:
        return next(condition.message for condition in outcome.conditions if condition.type == kind)

    rise = reconcile(hpa(), look(3, queue_of(150)), STORED, NOW)
    assert message_of(rise, "ScalingActive").endswith("a replica count from external metric queue(nil)")
    assert message_of(rise, "AbleToScale").endswith("update the target scale to 5")
    missing = reconcile(hpa(), look(3, queue_of(1), scale=ScaleSubresource(3, 3, "")), STORED, NOW)
    assert missing.desired.events[0].message == "the HPA target's scale is missing a selector"
    strange = reconcile(hpa(), look(3, queue_of(1), scale=ScaleSubresource(3, 3, "app in (")), STORED, NOW)
    assert "unable to parse requirement 'app in ('" in strange.desired.events[0].message
    claimed = look(3, queue_of(1), other_selectors=(parse_selector("app=shop"),))
    ambiguous = reconcile(hpa(), claimed, STORED, NOW)
    assert ambiguous.desired.events[0].message == "pods by selector app=shop are controlled by multiple HPAs"
    newer = reconcile(hpa(), claimed, STORED, NOW, Controller(minor=37))
    assert newer.desired.events[0].message == "pods by selector app=shop are controlled by more than one HPA"
    bad = HpaSpec(CrossVersionObjectReference("Deployment", "d", "a/b/c"), 5, (QUEUE,))
    assert message_of(reconcile(bad, look(3, queue_of(1)), STORED, NOW), "AbleToScale").endswith("string: a/b/c")


def test_tolerances_of_behavior_reach_the_metrics() -> None:
    wide = both(ScalingRules((policy("Pods", 9),), tolerance=0.5), ScalingRules((policy("Pods", 9),), tolerance=0.0))
    assert reconcile(hpa(behavior=wide), look(3, queue_of(130)), STORED, NOW).desired.replicas == 3


def test_events_of_both_lists_reach_the_policies() -> None:
    slow = both(rules(policy("Pods", 4)), rules(policy("Pods", 4), window_s=0))
    state = HpaState(history=(), scale_ups=(moved(3, 10),), scale_downs=(moved(1, 10),))
    assert reconcile(hpa(behavior=slow), look(5, queue_of(900)), state, NOW).desired.replicas == 7


def test_the_status_has_every_number_of_its_metrics() -> None:
    used = SampledPods({"p0": PodSample(500, NOW)})
    total = MetricSpec("External", "total", HpaMetricTarget("Value", value_milli=1000))
    outcome = reconcile(hpa(CPU, total), look(1, used, ExternalValues((1000,))), STORED, NOW)
    assert outcome.state.current_metrics == (
        MetricStatus("Resource", "cpu", 50, 500),
        MetricStatus("External", "total", value_milli=1000),
    )
    assert (outcome.state.current_replicas, outcome.state.desired_replicas) == (1, 3)


def test_failures_are_told_in_events_and_conditions() -> None:
    refused = reconcile(hpa(), look(3, queue_of(150), write_refused=True), STORED, NOW)
    beginning = "New size: 5; reason: external metric queue(nil) above target; error:"
    assert refused.desired.events[0].message == f"{beginning} the write was refused"
    assert refused.conditions[0].message.endswith("update the target scale: the write was refused")
    conflict = reconcile(hpa(), look(3, queue_of(150), write_conflicts=5), STORED, NOW)
    assert conflict.desired.events[0].message == f"{beginning} the object kept changing"
    unread = reconcile(hpa(), look(3, scale=ScaleUnread("gone")), STORED, NOW)
    assert unread.desired.events[0].message == "gone"
    broken = reconcile(hpa(), look(3, BROKEN), STORED, NOW)
    assert [event.message for event in broken.desired.events] == ["unable to get external metric"] * 2
    missing = reconcile(hpa(), look(3, queue_of(1), scale=ScaleSubresource(3, 3, "")), STORED, NOW)
    assert len({event.message for event in missing.desired.events}) == 1


def test_settings_of_the_controller_reach_the_limits() -> None:
    slow = Controller(growth=Growth(1.5, 1), downscale_stabilization=seconds(30))
    assert reconcile(hpa(), look(4, queue_of(900)), STORED, NOW, slow).desired.replicas == 6
    state = HpaState(history=(past(9, 40),))
    assert reconcile(hpa(), look(9, queue_of(90)), state, NOW, slow).desired.replicas == 3


def test_a_status_that_equals_the_previous_one_is_not_written() -> None:
    first = reconcile(hpa(), look(3, queue_of(90)), STORED, NOW)
    assert first.desired.status_written
    again = reconcile(hpa(), look(3, queue_of(90)), first.state, NOW + seconds(15))
    assert not again.desired.status_written
    assert reconcile(hpa(), look(3, queue_of(91)), again.state, NOW + seconds(30)).desired.status_written


def test_an_error_with_other_words_is_written() -> None:
    unread = reconcile(hpa(), look(3, scale=ScaleUnread("gone")), STORED, NOW)
    same = reconcile(hpa(), look(3, scale=ScaleUnread("gone")), unread.state, NOW)
    other = reconcile(hpa(), look(3, scale=ScaleUnread("slow")), unread.state, NOW)
    assert (same.desired.status_written, other.desired.status_written) == (False, True)

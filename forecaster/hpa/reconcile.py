"""One pass of the controller over one HPA (HPA rules §3): the function that *is* the HorizontalPodAutoscaler.

Pure: the spec, what the cluster shows, what is remembered and the time go in; what the controller would do, its
conditions and the new memory come out. A write is only said, never done; `Observation.write_fails` says how it would
fare.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from forecaster.hpa import wording
from forecaster.hpa.combine import NoRecommendation, Recommendation, combine
from forecaster.hpa.conditions import Conditions, find_condition, with_condition, without_condition
from forecaster.hpa.controller import SHIPPED, Controller, tolerance_of
from forecaster.hpa.evaluate import Situation, evaluate
from forecaster.hpa.history import PastRecommendation, record_scale_event
from forecaster.hpa.limits import Limited, limit
from forecaster.hpa.observation import Observation, Scale, ScaleUnread
from forecaster.hpa.pods import Pod
from forecaster.hpa.proposals import Proposal
from forecaster.hpa.selectors import Selector, SelectorError, parse_selector
from forecaster.hpa.spec import HpaSpec
from forecaster.hpa.state import MetricStatus, ScalingState
from forecaster.hpa.unmeasured import Unmeasured
from forecaster.hpa.wording import Action, ErrorKind, Event

Branch = Literal["unread", "disabled", "above_max", "below_min", "metrics"]


class Desired(NamedTuple):
    """What the pass decided, and how.

    `replicas` is the status' desired count after the pass, `written` whether the scale was written. `branch` names the
    way taken in step 5. `proposals` belong to the metrics in order (empty where none was computed), `recommendation`
    and `limited` are None where the pass did not get that far. `error` is how the controller counts the pass.
    """

    replicas: int
    written: bool
    branch: Branch
    action: Action = "none"
    error: ErrorKind = "none"
    events: tuple[Event, ...] = ()
    proposals: tuple[Proposal | Unmeasured, ...] = ()
    recommendation: Recommendation | None = None
    limited: Limited | None = None


class Pass(NamedTuple):
    """The result of one pass; `conditions` are also part of `state`."""

    desired: Desired
    conditions: Conditions
    state: ScalingState


class _Outlook(NamedTuple):
    """What every step of one pass may look at."""

    spec: HpaSpec
    observation: Observation
    scale: Scale
    state: ScalingState
    now: datetime
    controller: Controller

    @property
    def was_scaled_to_zero(self) -> bool:
        """HPA rules §3, step 5: the gate is on and this HPA itself brought the target to zero."""
        if not self.controller.gates.scale_to_zero:
            return False
        condition = find_condition(self.state.conditions, "ScaledToZero")
        return condition is not None and condition.status == "True"


def reconcile(
    spec: HpaSpec, observation: Observation, state: ScalingState, now: datetime, controller: Controller = SHIPPED
) -> Pass:
    """HPA rules §3: one pass; whatever a cluster can show, a broken metric is a condition, not an exception."""
    scale = observation.scale
    if spec.scale_target.api_version.count("/") > 1:
        return _scale_unread(state, f"unexpected GroupVersion string: {spec.scale_target.api_version}", "spec", now)
    if isinstance(scale, ScaleUnread):
        return _scale_unread(state, scale.message, "internal", now)
    outlook = _Outlook(spec, observation, scale, _scale_read(state, scale.spec_replicas, now), now, controller)
    match choose_branch(outlook):
        case "disabled":
            return _disabled(outlook)
        case "above_max":
            return _write(outlook, Desired(spec.max_replicas, written=True, branch="above_max"))
        case "below_min":
            return _write(outlook, Desired(spec.bounds.min_replicas, written=True, branch="below_min"))
        case _:
            return _follow_metrics(outlook)


def choose_branch(outlook: _Outlook) -> Branch:
    """HPA rules §3, step 5: zero replicas switch scaling off unless this HPA did it; out of bounds skips metrics."""
    spec, current = outlook.spec, outlook.scale.spec_replicas
    if current == 0:
        may_return = spec.bounds.min_replicas != 0 or spec.has_outside_metric
        return "metrics" if outlook.was_scaled_to_zero and may_return else "disabled"
    if current > spec.max_replicas:
        return "above_max"
    return "below_min" if current < spec.bounds.min_replicas else "metrics"


def _scale_unread(state: ScalingState, message: str, error: ErrorKind, now: datetime) -> Pass:
    """HPA rules §3, steps 1 and 2: without the scale nothing else happens."""
    conditions = with_condition(state.conditions, wording.scale_unread(message), now)
    desired = Desired(
        state.desired_replicas,
        written=False,
        branch="unread",
        error=error,
        events=(Event("FailedGetScale", message),),
    )
    return Pass(desired, conditions, state._replace(conditions=conditions))


def _scale_read(state: ScalingState, current: int, now: datetime) -> ScalingState:
    """HPA rules §3, steps 2 and 3: the condition, and a first recommendation for an HPA never seen before."""
    history = (PastRecommendation(current, now),) if state.history is None else state.history
    conditions = with_condition(state.conditions, wording.GET_SCALE_SUCCEEDED, now)
    return state._replace(history=history, conditions=conditions)


def _disabled(outlook: _Outlook) -> Pass:
    """HPA rules §3, step 5: nothing computed, nothing written; with the gate off a left-over ScaledToZero goes."""
    conditions = with_condition(outlook.state.conditions, wording.SCALING_DISABLED, outlook.now)
    if not outlook.controller.gates.scale_to_zero:
        conditions = without_condition(conditions, "ScaledToZero")
    current = outlook.scale.spec_replicas
    return _close(outlook, Desired(current, written=False, branch="disabled"), conditions)


def _follow_metrics(outlook: _Outlook) -> Pass:
    """HPA rules §3, steps 6 to 10: metrics, recommendation, limits, write."""
    spec, state, now, current = outlook.spec, outlook.state, outlook.now, outlook.scale.spec_replicas
    pods = _matched_pods(outlook)
    if isinstance(pods, Event):
        return _no_recommendation(outlook, pods)
    proposals = _proposals(outlook, pods)
    recommendation = combine(proposals, current)
    if isinstance(recommendation, NoRecommendation):
        return _metrics_failed(outlook, proposals, recommendation.metric)
    credited = None if recommendation.metric is None else spec.metrics[recommendation.metric]
    limited = limit(
        max(recommendation.replicas, 0),
        current,
        spec.bounds,
        spec.behavior,
        state.history or (),
        now,
        scale_ups=state.scale_ups,
        scale_downs=state.scale_downs,
        downscale_stabilization=outlook.controller.downscale_stabilization,
        growth=outlook.controller.growth,
    )
    conditions = with_condition(state.conditions, wording.metric_found(credited), now)
    conditions = with_condition(conditions, wording.STABILIZATION[limited.stabilization], now)
    conditions = with_condition(conditions, wording.CLAMP[limited.clamp], now)
    replicas = _raised_from_zero(outlook, limited.replicas)
    desired = Desired(
        replicas,
        written=replicas != current,
        branch="metrics",
        error="internal" if recommendation.partial else "none",
        events=_failure_events(spec, proposals) if recommendation.partial else (),
        proposals=proposals,
        recommendation=recommendation,
        limited=limited,
    )
    reached = outlook._replace(state=state._replace(history=limited.history, conditions=conditions))
    return _write(reached, desired) if desired.written else _close(reached, desired, conditions)


def _raised_from_zero(outlook: _Outlook, replicas: int) -> int:
    """HPA rules §3, step 9: back from zero an HPA goes to its minimum at least, whatever the policies allow."""
    least = outlook.spec.bounds.min_replicas
    if outlook.scale.spec_replicas == 0 and replicas < least and outlook.was_scaled_to_zero:
        return least
    return replicas


def _matched_pods(outlook: _Outlook) -> Sequence[Pod] | Event:
    """HPA rules §3, selector checks: the pods of the target, or why they cannot be told."""
    text = outlook.scale.selector
    if not text:
        return Event("SelectorRequired", "the HPA target's scale is missing a selector")
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        return Event(
            "InvalidSelector", f"couldn't convert selector into a corresponding internal selector object: {error}"
        )
    pods = [pod for pod in outlook.observation.pods if selector.matches(pod.labels)]
    others = outlook.observation.other_selectors
    if others and any(_claimed(pod, others) for pod in pods):
        return Event("AmbiguousSelector", f"pods by selector {text} are controlled by multiple HPAs")
    return pods


def _claimed(pod: Pod, selectors: Sequence[Selector]) -> bool:
    return any(selector.matches(pod.labels) for selector in selectors)


def _proposals(outlook: _Outlook, pods: Sequence[Pod]) -> tuple[Proposal | Unmeasured, ...]:
    """HPA rules §9: every metric by itself, in order."""
    spec, scale, controller = outlook.spec, outlook.scale, outlook.controller
    tolerance = tolerance_of(spec.behavior, controller)
    situation = Situation(scale.spec_replicas, scale.status_replicas, pods, tolerance, outlook.now, controller)
    answers = outlook.observation.answers
    return tuple([evaluate(metric, answer, situation) for metric, answer in zip(spec.metrics, answers, strict=True)])


def _metrics_failed(outlook: _Outlook, proposals: tuple[Proposal | Unmeasured, ...], first: int) -> Pass:
    """HPA rules §9: the first failing metric gives the condition."""
    why = proposals[first]
    assert isinstance(why, Unmeasured)  # noqa: S101 - combine() names a metric that failed
    condition = wording.metric_failed(outlook.spec.metrics[first], why)
    events = _failure_events(outlook.spec, proposals)
    conditions = with_condition(outlook.state.conditions, condition, outlook.now)
    return _computed_nothing(outlook, conditions, events, why.message, proposals)


def _no_recommendation(outlook: _Outlook, event: Event) -> Pass:
    """HPA rules §3, selector checks: no metric is looked at."""
    reason = "InvalidSelector" if event.reason == "SelectorRequired" else event.reason
    condition = wording.selector_failed(reason, event.message)
    conditions = with_condition(outlook.state.conditions, condition, outlook.now)
    return _computed_nothing(outlook, conditions, (event,), event.message, ())


def _computed_nothing(
    outlook: _Outlook,
    conditions: Conditions,
    events: tuple[Event, ...],
    message: str,
    proposals: tuple[Proposal | Unmeasured, ...],
) -> Pass:
    """HPA rules §3, step 6: the old desired count stays, nothing is remembered."""
    desired = Desired(
        outlook.state.desired_replicas,
        written=False,
        branch="metrics",
        error="internal",
        events=(*events, Event("FailedComputeMetricsReplicas", message)),
        proposals=proposals,
    )
    return _close(outlook, desired, conditions)


def _failure_events(spec: HpaSpec, proposals: Sequence[Proposal | Unmeasured]) -> tuple[Event, ...]:
    return tuple(
        Event(wording.failure_reason(metric, proposal), proposal.message)
        for metric, proposal in zip(spec.metrics, proposals, strict=True)
        if isinstance(proposal, Unmeasured)
    )


def _write(outlook: _Outlook, desired: Desired) -> Pass:
    """HPA rules §3, step 10: the write, its event, its condition."""
    state, now, current = outlook.state, outlook.now, outlook.scale.spec_replicas
    if outlook.observation.write_fails:
        return _write_failed(outlook, desired)
    conditions = with_condition(state.conditions, wording.write_succeeded(desired.replicas), now)
    conditions = _zero_condition(outlook, conditions, desired.replicas)
    event = Event("SuccessfulRescale", f"New size: {desired.replicas}; reason: {_rescale_reason(outlook, desired)}")
    written = desired._replace(action=wording.action(desired.replicas, current), events=(*desired.events, event))
    return _close(outlook._replace(state=_moved(outlook, desired.replicas)), written, conditions)


def _write_failed(outlook: _Outlook, desired: Desired) -> Pass:
    """HPA rules §3, step 10: no event is remembered, the old desired count stays, the recommendation is kept."""
    message = "the write was refused" if outlook.observation.write_refused else "the object kept changing"
    event = Event("FailedRescale", f"New size: {desired.replicas}; error: {message}")
    conditions = with_condition(outlook.state.conditions, wording.write_failed(message), outlook.now)
    failed = desired._replace(
        replicas=outlook.state.desired_replicas, written=False, error="internal", events=(*desired.events, event)
    )
    return _close(outlook, failed, conditions)


def _moved(outlook: _Outlook, replicas: int) -> ScalingState:
    """HPA rules §11.4: remember the change, with `behavior` only, and when it was made."""
    state, now, behavior = outlook.state, outlook.now, outlook.spec.behavior
    change = replicas - outlook.scale.spec_replicas
    if behavior is None:
        return state._replace(last_scale_time=now)
    if change > 0:
        ups = record_scale_event(state.scale_ups, change, now, behavior.scale_up.policies)
        return state._replace(scale_ups=ups, last_scale_time=now)
    downs = record_scale_event(state.scale_downs, -change, now, behavior.scale_down.policies)
    return state._replace(scale_downs=downs, last_scale_time=now)


def _zero_condition(outlook: _Outlook, conditions: Conditions, replicas: int) -> Conditions:
    """HPA rules §3, step 10: remember on the object whether this HPA itself brought the target to zero."""
    if not outlook.controller.gates.scale_to_zero:
        return without_condition(conditions, "ScaledToZero")
    spec = outlook.spec
    own_doing = (
        outlook.scale.spec_replicas > 0 and replicas == 0 and spec.bounds.min_replicas == 0 and spec.has_outside_metric
    )
    condition = wording.SCALED_TO_ZERO if own_doing else wording.NOT_SCALED_TO_ZERO
    return with_condition(conditions, condition, outlook.now)


def _rescale_reason(outlook: _Outlook, desired: Desired) -> str:
    """HPA rules §3, steps 5 and 7: the sentence of the event."""
    if desired.branch == "above_max":
        return "Current number of replicas above Spec.MaxReplicas"
    if desired.branch == "below_min":
        return "Current number of replicas below Spec.MinReplicas"
    recommendation = desired.recommendation
    if recommendation is None or recommendation.replicas < outlook.scale.spec_replicas:
        return "All metrics below target"
    if recommendation.replicas == outlook.scale.spec_replicas or recommendation.metric is None:
        return ""
    return f"{wording.metric_name(outlook.spec.metrics[recommendation.metric])} above target"


def _close(outlook: _Outlook, desired: Desired, conditions: Conditions) -> Pass:
    """HPA rules §3, step 11: the status after the pass."""
    metrics = zip(outlook.spec.metrics, desired.proposals, strict=False)
    state = outlook.state._replace(
        conditions=conditions,
        current_replicas=outlook.scale.spec_replicas,
        desired_replicas=desired.replicas,
        current_metrics=tuple(
            [
                None if isinstance(p, Unmeasured) else MetricStatus(m.source, m.name, p[3], p[4], p[5])
                for m, p in metrics
            ]
        ),
    )
    return Pass(desired, conditions, state)

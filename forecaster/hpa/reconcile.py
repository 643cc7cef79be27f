"""One pass of the controller over one HPA (HPA rules §3): the function that *is* the HorizontalPodAutoscaler.

Pure: the spec, what the cluster shows, what is remembered and the time go in; what the controller would do, its
conditions and the new memory come out. A write is only said, never done; `Observation.write_fails` says how it would
fare.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from forecaster.hpa import wording
from forecaster.hpa.behavior import PastRecommendation
from forecaster.hpa.evaluate import MetricContext, evaluate
from forecaster.hpa.limits import Limited, limit
from forecaster.hpa.observation import (
    Observation,
    ScaleSubresource,
    ScaleUnread,
    observe_totals,
    requests_of,
    totals_of,
)
from forecaster.hpa.outcome import Branch, DesiredScale, Pass, PassInput, close, write
from forecaster.hpa.pods import HpaPod
from forecaster.hpa.proposals import CombinedProposal, MetricProposal, NoRecommendation, Unmeasured, combine
from forecaster.hpa.selectors import SelectorError, parse_selector
from forecaster.hpa.spec import SHIPPED, TELLS_ZERO, Controller, HpaSpec, tolerance_of
from forecaster.hpa.state import (
    NEW_HPA,
    Conditions,
    HpaCondition,
    HpaState,
    status_differs,
    with_condition,
    without_condition,
)
from forecaster.hpa.wording import ErrorKind, HpaEvent

LAST_MULTIPLE = 36
"""Last minor version of Kubernetes that says "multiple HPAs"; the next one names more than one of them."""


def reconcile(
    spec: HpaSpec, observation: Observation, state: HpaState, now: datetime, controller: Controller = SHIPPED
) -> Pass:
    """HPA rules §3: one pass; whatever a cluster can show, a broken metric is a condition, not an exception."""
    outcome = _pass(spec, observation, state, now, controller)
    return outcome._replace(desired=outcome.desired._replace(status_written=status_differs(state, outcome.state)))


def _pass(spec: HpaSpec, observation: Observation, state: HpaState, now: datetime, controller: Controller) -> Pass:
    scale = observation.scale
    if spec.scale_target.api_version.count("/") > 1:
        return _scale_unread(state, f"unexpected GroupVersion string: {spec.scale_target.api_version}", "spec", now)
    if isinstance(scale, ScaleUnread):
        return _scale_unread(state, scale.message, "internal", now)
    given = PassInput(spec, observation, scale, _scale_read(state, scale.spec_replicas, now), now, controller)
    match choose_branch(given):
        case "disabled":
            return _disabled(given)
        case "above_max":
            return write(given, DesiredScale(spec.max_replicas, written=True, branch="above_max"))
        case "below_min":
            return write(given, DesiredScale(spec.bounds.min_replicas, written=True, branch="below_min"))
        case _:
            return _follow_metrics(given)


def choose_branch(given: PassInput) -> Branch:
    """HPA rules §3, step 5: zero replicas switch scaling off unless this HPA did it; out of bounds skips metrics.

    Up to Kubernetes 1.35 an HPA with minReplicas 0 looks at its metrics whatever scaled the target to zero.
    """
    spec, current = given.spec, given.scale.spec_replicas
    if current == 0 and given.controller.minor < TELLS_ZERO:
        return "disabled" if spec.bounds.min_replicas else "metrics"
    if current == 0:
        may_return = spec.bounds.min_replicas != 0 or spec.has_outside_metric
        return "metrics" if given.was_scaled_to_zero and may_return else "disabled"
    if current > spec.max_replicas:
        return "above_max"
    return "below_min" if current < spec.bounds.min_replicas else "metrics"


def _scale_unread(state: HpaState, message: str, error: ErrorKind, now: datetime) -> Pass:
    """HPA rules §3, steps 1 and 2: without the scale nothing else happens."""
    conditions = with_condition(state.conditions, wording.scale_unread(message), now)
    desired = DesiredScale(
        state.desired_replicas,
        written=False,
        branch="unread",
        error=error,
        events=(HpaEvent("FailedGetScale", message),),
    )
    return Pass(desired, conditions, state._replace(conditions=conditions))


def _scale_read(state: HpaState, current: int, now: datetime) -> HpaState:
    """HPA rules §3, steps 2 and 3: the condition, and a first recommendation for an HPA never seen before."""
    history = (PastRecommendation(current, now),) if state.history is None else state.history
    conditions = with_condition(state.conditions, wording.GET_SCALE_SUCCEEDED, now)
    return state._replace(history=history, conditions=conditions)


def _disabled(given: PassInput) -> Pass:
    """HPA rules §3, step 5: nothing computed, nothing written; with the gate off a left-over ScaledToZero goes."""
    conditions = with_condition(given.state.conditions, wording.SCALING_DISABLED, given.now)
    if not given.controller.tells_zero:
        conditions = without_condition(conditions, "ScaledToZero")
    current = given.scale.spec_replicas
    return close(given, DesiredScale(current, written=False, branch="disabled"), conditions)


def _follow_metrics(given: PassInput) -> Pass:
    """HPA rules §3, steps 6 to 10: metrics, recommendation, limits, write."""
    pods = _matched_pods(given)
    if isinstance(pods, HpaEvent):
        return _no_recommendation(given, pods)
    proposals = _proposals(given, pods)
    recommendation = combine(proposals, given.scale.spec_replicas)
    if isinstance(recommendation, NoRecommendation):
        return _metrics_failed(given, proposals, recommendation.metric)
    limited = _limited(given, recommendation)
    replicas = _raised_from_zero(given, limited.replicas)
    partial = recommendation.partial
    desired = DesiredScale(
        replicas,
        written=replicas != given.scale.spec_replicas,
        branch="metrics",
        error="internal" if partial else "none",
        events=_failure_events(given.spec, proposals) if partial else (),
        proposals=proposals,
        recommendation=recommendation,
        limited=limited,
    )
    conditions = _limited_conditions(given, recommendation, limited)
    reached = given._replace(state=given.state._replace(history=limited.history, conditions=conditions))
    return write(reached, desired) if desired.written else close(reached, desired, conditions)


def _limited(given: PassInput, recommendation: CombinedProposal) -> Limited:
    """HPA rules §3, steps 7 and 8: nothing below zero, then the limits with all that is remembered."""
    spec, state, controller = given.spec, given.state, given.controller
    return limit(
        max(recommendation.replicas, 0),
        given.scale.spec_replicas,
        spec.bounds,
        spec.behavior,
        state.history or (),
        given.now,
        scale_ups=state.scale_ups,
        scale_downs=state.scale_downs,
        downscale_stabilization=controller.downscale_stabilization,
        growth=controller.growth,
    )


def _limited_conditions(given: PassInput, recommendation: CombinedProposal, limited: Limited) -> Conditions:
    """HPA rules §3: a metric was found, what stabilization did, which limit binds."""
    credited = given.spec.metrics[recommendation.metric]
    conditions = with_condition(given.state.conditions, wording.metric_found(credited), given.now)
    conditions = with_condition(conditions, wording.STABILIZATION[limited.stabilization], given.now)
    return with_condition(conditions, wording.CLAMP[limited.clamp], given.now)


def _raised_from_zero(given: PassInput, replicas: int) -> int:
    """HPA rules §3, step 9: back from zero an HPA goes to its minimum at least, whatever the policies allow."""
    least = given.spec.bounds.min_replicas
    if given.scale.spec_replicas == 0 and replicas < least and given.was_scaled_to_zero:
        return least
    return replicas


def _matched_pods(given: PassInput) -> Sequence[HpaPod] | HpaEvent:
    """HPA rules §3, selector checks: return the pods of the target, or why they are ambiguous."""
    text = given.scale.selector
    if not text:
        return HpaEvent("SelectorRequired", "the HPA target's scale is missing a selector")
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        return HpaEvent(
            "InvalidSelector", f"couldn't convert selector into a corresponding internal selector object: {error}"
        )
    pods = [pod for pod in given.observation.pods if selector.matches(pod.labels)]
    others = given.observation.other_selectors
    if any(other.matches(pod.labels) for other in others for pod in pods):
        several = "multiple HPAs" if given.controller.minor <= LAST_MULTIPLE else "more than one HPA"
        return HpaEvent("AmbiguousSelector", f"pods by selector {text} are controlled by {several}")
    return pods


def _proposals(given: PassInput, pods: Sequence[HpaPod]) -> tuple[MetricProposal | Unmeasured, ...]:
    """HPA rules §9: every metric by itself, in order."""
    spec, scale, controller = given.spec, given.scale, given.controller
    tolerance = tolerance_of(spec.behavior, controller)
    situation = MetricContext(scale.spec_replicas, scale.status_replicas, pods, tolerance, given.now, controller)
    answers = given.observation.answers
    return tuple([evaluate(metric, answer, situation) for metric, answer in zip(spec.metrics, answers, strict=True)])


def _metrics_failed(given: PassInput, proposals: tuple[MetricProposal | Unmeasured, ...], first: int) -> Pass:
    """HPA rules §9: the first failing metric gives the condition."""
    why = proposals[first]
    assert isinstance(why, Unmeasured)  # noqa: S101 - combine() names a metric that failed
    condition = wording.metric_failed(given.spec.metrics[first], why)
    events = _failure_events(given.spec, proposals)
    conditions = with_condition(given.state.conditions, condition, given.now)
    return _computed_nothing(given, conditions, events, why.message, proposals)


def _no_recommendation(given: PassInput, event: HpaEvent) -> Pass:
    """HPA rules §3, selector checks: no metric is looked at."""
    reason = "InvalidSelector" if event.reason == "SelectorRequired" else event.reason
    condition = HpaCondition("ScalingActive", "False", reason, event.message)
    conditions = with_condition(given.state.conditions, condition, given.now)
    return _computed_nothing(given, conditions, (event,), event.message, ())


def _computed_nothing(
    given: PassInput,
    conditions: Conditions,
    events: tuple[HpaEvent, ...],
    message: str,
    proposals: tuple[MetricProposal | Unmeasured, ...],
) -> Pass:
    """HPA rules §3, step 6: the old desired count stays, nothing is remembered."""
    desired = DesiredScale(
        given.state.desired_replicas,
        written=False,
        branch="metrics",
        error="internal",
        events=(*events, HpaEvent("FailedComputeMetricsReplicas", message)),
        proposals=proposals,
    )
    return close(given, desired, conditions)


def _failure_events(spec: HpaSpec, proposals: Sequence[MetricProposal | Unmeasured]) -> tuple[HpaEvent, ...]:
    return tuple(
        HpaEvent(wording.failure_reason(metric, proposal), proposal.message)
        for metric, proposal in zip(spec.metrics, proposals, strict=True)
        if isinstance(proposal, Unmeasured)
    )


class SimulatedPass(NamedTuple):
    """One pass: its time, the replicas before it, its observation, and its outcome."""

    at: datetime
    replicas: int
    observation: Observation
    before: HpaState
    outcome: Pass


def carry_on(
    spec: HpaSpec, observation: Observation, start: datetime, passes: int, controller: Controller = SHIPPED
) -> Iterator[SimulatedPass]:
    """Passes of a new HPA one sync period apart: the first over `seen` as it is, the others over its totals."""
    state, totals, requests = NEW_HPA, totals_of(spec, observation), requests_of(observation)
    at, replicas = start, observation.scale.spec_replicas if isinstance(observation.scale, ScaleSubresource) else 0
    for _ in range(passes):
        step = SimulatedPass(at, replicas, observation, state, reconcile(spec, observation, state, at, controller))
        yield step
        at, state = at + controller.sync_period, step.outcome.state
        replicas = step.outcome.desired.replicas if step.outcome.desired.written else replicas
        observation = observe_totals(spec, replicas, totals, requests, at)

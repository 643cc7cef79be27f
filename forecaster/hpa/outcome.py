"""The result of a pass, and what its steps look at (HPA rules §3)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from forecaster.hpa import wording
from forecaster.hpa.behavior import record_scale_event
from forecaster.hpa.limits import Limited
from forecaster.hpa.observation import Observation, ScaleSubresource
from forecaster.hpa.proposals import CombinedProposal, MetricProposal, Unmeasured
from forecaster.hpa.spec import Controller, HpaSpec
from forecaster.hpa.state import Conditions, HpaState, MetricStatus, find_condition, with_condition, without_condition
from forecaster.hpa.wording import Action, ErrorKind, HpaEvent

Branch = Literal["unread", "disabled", "above_max", "below_min", "metrics"]


class DesiredScale(NamedTuple):
    """Decision of the pass, and the way to it.

    `replicas` is the status' desired count after the pass, `written` whether the scale was written. `branch` names the
    way taken in step 5. `proposals` belong to the metrics in order (empty where none was computed), `recommendation`
    and `limited` are None where the pass did not get that far. `error` is how the controller counts the pass.
    """

    replicas: int
    written: bool
    branch: Branch
    action: Action = "none"
    error: ErrorKind = "none"
    events: tuple[HpaEvent, ...] = ()
    proposals: tuple[MetricProposal | Unmeasured, ...] = ()
    recommendation: CombinedProposal | None = None
    limited: Limited | None = None
    status_written: bool = True
    """False where the status after the pass equals the one before it (step 11)."""


class Pass(NamedTuple):
    """The result of one pass; `conditions` are also part of `state`."""

    desired: DesiredScale
    conditions: Conditions
    state: HpaState


class PassInput(NamedTuple):
    """Inputs of every step of one pass."""

    spec: HpaSpec
    observation: Observation
    scale: ScaleSubresource
    state: HpaState
    now: datetime
    controller: Controller

    @property
    def was_scaled_to_zero(self) -> bool:
        """HPA rules §3, step 5: the gate is on and this HPA itself brought the target to zero."""
        if not self.controller.tells_zero:
            return False
        condition = find_condition(self.state.conditions, "ScaledToZero")
        return condition is not None and condition.status == "True"


def write(given: PassInput, desired: DesiredScale) -> Pass:
    """HPA rules §3, step 10: the write, its event, its condition."""
    state, now, current = given.state, given.now, given.scale.spec_replicas
    if given.observation.write_fails:
        return _write_failed(given, desired)
    conditions = with_condition(state.conditions, wording.write_succeeded(desired.replicas), now)
    conditions = _zero_condition(given, conditions, desired.replicas)
    event = HpaEvent("SuccessfulRescale", f"New size: {desired.replicas}; reason: {_rescale_reason(given, desired)}")
    written = desired._replace(action=wording.action(desired.replicas, current), events=(*desired.events, event))
    return close(given._replace(state=_moved(given, desired.replicas)), written, conditions)


def _write_failed(given: PassInput, desired: DesiredScale) -> Pass:
    """HPA rules §3, step 10: no event is remembered, the old desired count stays, the recommendation is kept."""
    message = "the write was refused" if given.observation.write_refused else "the object kept changing"
    reason = _rescale_reason(given, desired)
    event = HpaEvent("FailedRescale", f"New size: {desired.replicas}; reason: {reason}; error: {message}")
    conditions = with_condition(given.state.conditions, wording.write_failed(message), given.now)
    failed = desired._replace(
        replicas=given.state.desired_replicas, written=False, error="internal", events=(*desired.events, event)
    )
    return close(given, failed, conditions)


def _moved(given: PassInput, replicas: int) -> HpaState:
    """HPA rules §11.4: remember the change, with `behavior` only, and when it was made."""
    state, now, behavior = given.state, given.now, given.spec.behavior
    change = replicas - given.scale.spec_replicas
    if behavior is None:
        return state._replace(last_scale_time=now)
    if change > 0:
        ups = record_scale_event(state.scale_ups, change, now, behavior.scale_up.policies)
        return state._replace(scale_ups=ups, last_scale_time=now)
    downs = record_scale_event(state.scale_downs, -change, now, behavior.scale_down.policies)
    return state._replace(scale_downs=downs, last_scale_time=now)


def _zero_condition(given: PassInput, conditions: Conditions, replicas: int) -> Conditions:
    """HPA rules §3, step 10: remember on the object whether this HPA itself brought the target to zero."""
    if not given.controller.tells_zero:
        return without_condition(conditions, "ScaledToZero")
    spec = given.spec
    own_doing = (
        given.scale.spec_replicas > 0 and replicas == 0 and spec.bounds.min_replicas == 0 and spec.has_outside_metric
    )
    condition = wording.SCALED_TO_ZERO if own_doing else wording.NOT_SCALED_TO_ZERO
    return with_condition(conditions, condition, given.now)


def _rescale_reason(given: PassInput, desired: DesiredScale) -> str:
    """HPA rules §3, steps 5, 7 and 9: the sentence of the event; empty where only the past moves the count."""
    current, recommendation, limited = given.scale.spec_replicas, desired.recommendation, desired.limited
    if desired.branch == "above_max":
        return "Current number of replicas above Spec.MaxReplicas"
    if recommendation and recommendation.replicas > current:
        return f"{wording.metric_name(given.spec.metrics[recommendation.metric])} above target"
    if recommendation and current and recommendation.replicas < current:
        return "All metrics below target"
    raised = limited is None or limited.replicas != desired.replicas
    return "Current number of replicas below Spec.MinReplicas" if raised else ""


def close(given: PassInput, desired: DesiredScale, conditions: Conditions) -> Pass:
    """HPA rules §3, step 11: the status after the pass."""
    metrics = zip(given.spec.metrics, desired.proposals, strict=False)
    state = given.state._replace(
        conditions=conditions,
        current_replicas=given.scale.spec_replicas,
        desired_replicas=desired.replicas,
        current_metrics=tuple(
            [
                None if isinstance(p, Unmeasured) else MetricStatus(m.source, m.name, p[3], p[4], p[5])
                for m, p in metrics
            ]
        ),
    )
    return Pass(desired, conditions, state)

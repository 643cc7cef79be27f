"""What is kept of one HPA from pass to pass, and its plain JSON form (HPA rules §3).

Status conditions and the vocabulary of their reasons (HPA rules §3).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from forecaster.hpa.behavior import PastRecommendation, PastRecommendations, ScaleEvent, ScaleEvents

Stabilization = Literal["ReadyForNewScale", "ScaleUpStabilized", "ScaleDownStabilized"]
Clamp = Literal["DesiredWithinRange", "TooFewReplicas", "TooManyReplicas", "ScaleUpLimit", "ScaleDownLimit"]
ConditionType = Literal["AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"]
ConditionStatus = Literal["True", "False", "Unknown"]


class HpaCondition(NamedTuple):
    """One condition as the status shows it; `last_transition` is when `status` last changed, None if never recorded."""

    type: ConditionType
    status: ConditionStatus
    reason: str
    message: str = ""
    last_transition: datetime | None = None


Conditions = tuple[HpaCondition, ...]


def with_condition(conditions: Conditions, new: HpaCondition, now: datetime) -> Conditions:
    """HPA rules §3: replace this type in its place, or append it; the transition time moves only with the status."""
    type_, status, reason, message, _ = new
    for place, old in enumerate(conditions):
        if old.type == type_:
            since = old.last_transition if old.status == status else now
            return (*conditions[:place], HpaCondition(type_, status, reason, message, since), *conditions[place + 1 :])
    return (*conditions, HpaCondition(type_, status, reason, message, now))


def without_condition(conditions: Conditions, type_: ConditionType) -> Conditions:
    """The list without this type."""
    return tuple(condition for condition in conditions if condition.type != type_)


def find_condition(conditions: Conditions, type_: ConditionType) -> HpaCondition | None:
    """The condition of this type, if the status has one."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


class MetricStatus(NamedTuple):
    """What the status reports of one metric; the numbers its kind of target does not have are None."""

    source: str
    name: str
    utilization_percent: int | None = None
    average_milli: int | None = None
    value_milli: int | None = None


class HpaState(NamedTuple):
    """Memory and status of one HPA.

    `history` None means that the controller has never seen this HPA. History and events live in the controller's
    memory only; the rest is `status` of the object. A metric that failed has None in `current_metrics`.
    """

    history: PastRecommendations | None = None
    scale_ups: ScaleEvents = ()
    scale_downs: ScaleEvents = ()
    conditions: Conditions = ()
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: tuple[MetricStatus | None, ...] = ()
    last_scale_time: datetime | None = None


NEW_HPA = HpaState()


def status_differs(before: HpaState, after: HpaState) -> bool:
    """HPA rules §3, step 11: whether the status has to be written: not where it equals the previous one.

    A message or a time of a condition that was never recorded is not compared.
    """
    if _numbers(before) != _numbers(after) or len(before.conditions) != len(after.conditions):
        return True
    return any(map(_condition_differs, before.conditions, after.conditions))


def _numbers(state: HpaState) -> tuple[object, ...]:
    return (state.current_replicas, state.desired_replicas, state.current_metrics, state.last_scale_time)


def _condition_differs(before: HpaCondition, after: HpaCondition) -> bool:
    return before[:3] != after[:3] or bool(before.message and before.message != after.message)


def state_to_json(state: HpaState) -> dict[str, Any]:
    """The state as dicts, lists, strings and numbers; instants as ISO 8601."""
    return {
        "history": None if state.history is None else [[r.replicas, r.at.isoformat()] for r in state.history],
        "scale_ups": [_event_to_json(event) for event in state.scale_ups],
        "scale_downs": [_event_to_json(event) for event in state.scale_downs],
        "conditions": [[*c[:4], _time_to_json(c.last_transition)] for c in state.conditions],
        "current_replicas": state.current_replicas,
        "desired_replicas": state.desired_replicas,
        "current_metrics": [None if metric is None else list(metric) for metric in state.current_metrics],
        "last_scale_time": _time_to_json(state.last_scale_time),
    }


def state_from_json(stored: Mapping[str, Any]) -> HpaState:
    """The inverse of `state_to_json`; KeyError, TypeError or ValueError where the form is another."""
    history = stored["history"]
    return HpaState(
        history=None if history is None else tuple(PastRecommendation(r, _time(at)) for r, at in history),
        scale_ups=_events(stored["scale_ups"]),
        scale_downs=_events(stored["scale_downs"]),
        conditions=tuple(_condition(*c) for c in stored["conditions"]),
        current_replicas=stored["current_replicas"],
        desired_replicas=stored["desired_replicas"],
        current_metrics=tuple(None if m is None else MetricStatus(*m) for m in stored["current_metrics"]),
        last_scale_time=_optional_time(stored["last_scale_time"]),
    )


def _event_to_json(event: ScaleEvent) -> list[Any]:
    return [event.change, event.at.isoformat(), event.outdated]


def _events(stored: Sequence[Sequence[Any]]) -> ScaleEvents:
    return tuple(ScaleEvent(change, _time(at), outdated) for change, at, outdated in stored)


def _condition(
    type_: ConditionType, status: ConditionStatus, reason: str, message: str, since: str | None
) -> HpaCondition:
    return HpaCondition(type_, status, reason, message, _optional_time(since))


def _time_to_json(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _optional_time(text: str | None) -> datetime | None:
    return None if text is None else _time(text)

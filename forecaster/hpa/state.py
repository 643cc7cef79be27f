"""State of one HPA from pass to pass, and the vocabulary of its conditions (HPA rules §3)."""

from datetime import datetime
from typing import Literal, NamedTuple

from forecaster.hpa.behavior import PastRecommendations, ScaleEvents

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
    return next((condition for condition in conditions if condition.type == type_), None)


class MetricStatus(NamedTuple):
    """Status of one metric; numbers that its kind of target does not have are None."""

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

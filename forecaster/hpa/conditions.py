"""Status conditions and the vocabulary of their reasons (HPA rules §3)."""

from datetime import datetime
from typing import Literal, NamedTuple

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

"""Status conditions and the vocabulary of their reasons (HPA rules §3)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Stabilization = Literal["ReadyForNewScale", "ScaleUpStabilized", "ScaleDownStabilized"]
Clamp = Literal["DesiredWithinRange", "TooFewReplicas", "TooManyReplicas", "ScaleUpLimit", "ScaleDownLimit"]
ConditionType = Literal["AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"]
ConditionStatus = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition as the status shows it; `last_transition` is when `status` last changed, None if never recorded."""

    type: ConditionType
    status: ConditionStatus
    reason: str
    message: str = ""
    last_transition: datetime | None = None


Conditions = tuple[Condition, ...]


def with_condition(conditions: Conditions, new: Condition, now: datetime) -> Conditions:
    """HPA rules §3: replace this type in its place, or append it; the transition time moves only with the status."""
    for place, old in enumerate(conditions):
        if old.type == new.type:
            since = old.last_transition if old.status == new.status else now
            return (*conditions[:place], _since(new, since), *conditions[place + 1 :])
    return (*conditions, _since(new, now))


def without_condition(conditions: Conditions, type_: ConditionType) -> Conditions:
    """The list without this type."""
    return tuple(condition for condition in conditions if condition.type != type_)


def find_condition(conditions: Conditions, type_: ConditionType) -> Condition | None:
    """The condition of this type, if the status has one."""
    return next((condition for condition in conditions if condition.type == type_), None)


def _since(condition: Condition, at: datetime | None) -> Condition:
    return Condition(condition.type, condition.status, condition.reason, condition.message, at)

"""How far an in-place resize got, by the VPA's rules (spec/vertical.md §1.15)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PENDING = "PodResizePending"
_IN_PROGRESS = "PodResizeInProgress"


class ResizeStatus(StrEnum):
    """How far the node got with a resize."""

    NONE = "None"
    DEFERRED = "Deferred"
    INFEASIBLE = "Infeasible"
    IN_PROGRESS = "InProgress"
    ERROR = "Error"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class PodCondition:
    """A condition of a pod."""

    type: str
    status: str = "True"
    reason: str = ""
    message: str = ""


def resize_status(conditions: Sequence[PodCondition]) -> ResizeStatus:
    """Return the status by a pod's conditions: none unless the first resize condition is True."""
    about = [condition for condition in conditions if condition.type in {_PENDING, _IN_PROGRESS}]
    if not about or about[0].status != "True":
        return ResizeStatus.NONE
    pending = next((condition for condition in about if condition.type == _PENDING), None)
    if pending is not None:
        reasons = {"Deferred": ResizeStatus.DEFERRED, "Infeasible": ResizeStatus.INFEASIBLE}
        return reasons.get(pending.reason, ResizeStatus.UNKNOWN)
    if about[0].reason == "Error":
        return ResizeStatus.ERROR
    return ResizeStatus.UNKNOWN if about[0].reason or about[0].message else ResizeStatus.IN_PROGRESS

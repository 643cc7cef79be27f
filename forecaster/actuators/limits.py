"""Limits of a cycle: how many workloads it may change, how many pods it may add, how far one workload may grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.actuators.settings import LimitSettings

W = TypeVar("W")

LEAST_WORKLOADS, LEAST_PODS, LEAST_GROWTH = 5, 10, 4
"""What a cycle may change whatever its shares say: in a small fleet a share would be nothing."""
MOST_WORKLOADS = 500
"""Whatever the share says: each is two requests, one after the other, and other steps of the cycle wait."""
PODS_A_WORKLOAD = 10_000
"""Pods of one workload that count for the fleet's share: any owner may state a count of two billion."""


class Move(NamedTuple, Generic[W]):
    """A write that changes a count."""

    write: W
    key: tuple[str, ...]
    asked: int
    replicas: int
    """Pods that there are."""
    written: int
    """The count that the field has now."""
    raises: bool
    measured: int = 0
    """What the measured demand alone asks for: no limit holds that back."""


@dataclass(slots=True)
class CycleLimits:
    """What is left of the limits of one cycle: workloads that may be changed, pods that may be added."""

    workloads: int
    pods: int
    most_growth: float

    @classmethod
    def of(cls, fleet: Sequence[int], rules: LimitSettings) -> CycleLimits:
        """Return the limits for a fleet, which has the pods of every workload in the mode."""
        counted = sum(min(pods, PODS_A_WORKLOAD) for pods in fleet)
        return cls(
            min(max(LEAST_WORKLOADS, int(rules.most_workloads * len(fleet))), MOST_WORKLOADS),
            max(LEAST_PODS, int(rules.most_pods * counted)),
            rules.most_growth,
        )

    def count(self, move: Move[W]) -> int | None:
        """Return the count that the limits let through, None where the move waits."""
        there, measured = _there(move), min(move.asked, move.measured)
        if self.workloads == 0:
            return measured if measured > move.written else None
        growth = max(LEAST_GROWTH, int(self.most_growth * there))
        count = max(min(move.asked, there + min(growth, self.pods)), measured)
        return None if move.raises and count <= move.written else count

    def charge(self, move: Move[W], count: int) -> None:
        """Take a move from the limits, once it is decided that it is written: a refused one costs nothing."""
        self.workloads = max(0, self.workloads - 1)
        self.pods -= max(0, count - max(_there(move), move.measured))


def _there(move: Move[W]) -> int:
    return max(move.written, move.replicas)


def by_urgency(moves: Sequence[Move[W]]) -> list[Move[W]]:
    """Return the moves in their order: raises before lowerings, the one that multiplies the most pods first."""
    return sorted(moves, key=_urgency)


def _urgency(move: Move[W]) -> tuple[float, tuple[str, ...]]:
    return -move.asked / max(1, move.replicas, move.written), move.key

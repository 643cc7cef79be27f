"""Limits of a cycle: how many workloads it may change, how many pods it may add, how far one workload may grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forecaster.actuators.settings import LimitSettings

W = TypeVar("W")

LEAST_WORKLOADS, LEAST_PODS, LEAST_GROWTH = 5, 10, 4
"""What a cycle may change whatever its shares say: in a small fleet a share would be nothing."""
MOST_WORKLOADS = 500
"""Whatever the share says: each is two requests, one after the other, and other steps of the cycle wait."""


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


def allowed(
    moves: Sequence[Move[W]], fleet: Sequence[int], rules: LimitSettings
) -> Iterator[tuple[Move[W], int | None]]:
    """Each move with the count that the limits let through, None where it waits; those that need the most first.

    `fleet` has the pods of every workload in the mode.
    """
    workloads = min(max(LEAST_WORKLOADS, int(rules.most_workloads * len(fleet))), MOST_WORKLOADS)
    pods = max(LEAST_PODS, int(rules.most_pods * sum(fleet)))
    for move in sorted(moves, key=_urgency):
        there = max(move.written, move.replicas)
        growth = max(LEAST_GROWTH, int(rules.most_growth * there))
        count = min(move.asked, there + min(growth, pods))
        if workloads == 0 or (move.raises and count <= move.written):
            yield move, None
            continue
        workloads, pods = workloads - 1, pods - max(0, count - there)
        yield move, count


def _urgency(move: Move[W]) -> tuple[float, tuple[str, ...]]:
    """Raises before lowerings, the one that multiplies the most pods first."""
    return -move.asked / max(1, move.replicas, move.written), move.key

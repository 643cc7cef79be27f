"""Limits of a cycle: how many workloads it may change, how many pods it may add, how far one may grow or shrink."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from forecaster.actuators.settings import LimitSettings
    from forecaster.domain.workload import WorkloadId

T = TypeVar("T")

LEAST_WORKLOADS, LEAST_PODS, LEAST_GROWTH = 5, 10, 4
"""What a cycle may change whatever its shares say: in a small fleet a share would be nothing."""
MOST_WORKLOADS = 500
"""Whatever the share says: each is two requests, one after the other, and other steps of the cycle wait."""
PODS_A_WORKLOAD = 10_000
"""Pods of one workload that count for the fleet's share: any owner may state a count of two billion."""
FALL = 0.2
"""Share of its count that a workload loses at least to count as going down: an evening takes single pods."""
MIN_FALLING = 10
"""Workloads that may always go down in one cycle: in a small fleet a share would be one of them."""


class Move(NamedTuple):
    """Change of a count; all zero for a change of a workload that moves no count."""

    asked: int = 0
    written: int = 0
    """The count that the field has now."""
    pods: int = 0
    """Pods that there are."""
    measured: int = 0
    """What the measured demand alone asks for: no limit holds that back."""

    @property
    def lowers(self) -> bool:
        """Whether the count goes down."""
        return self.asked < self.written

    @property
    def falls(self) -> bool:
        """Whether the workload loses a share of its count that matters."""
        return self.written - self.asked >= max(1.0, FALL * self.written)

    @property
    def multiplies(self) -> float:
        """How many times its present pods the workload is to have."""
        return self.asked / max(1, self.pods, self.written)


@dataclass(slots=True)
class CycleLimits:
    """What is left of the limits of one cycle: workloads that may be changed, pods that may be added."""

    fleet: int
    """Workloads in the mode, or with a value of ours."""
    workloads: int
    pods: int = 0
    most_growth: float = 0.0

    @classmethod
    def of(cls, fleet: Sequence[int], rules: LimitSettings) -> CycleLimits:
        """Return the limits for a fleet, which has the pods of every workload in the mode."""
        counted = sum(min(pods, PODS_A_WORKLOAD) for pods in fleet)
        workloads = most_workloads(len(fleet), rules.most_workloads)
        return cls(len(fleet), workloads, max(LEAST_PODS, int(rules.most_pods * counted)), rules.most_growth)

    def count(self, move: Move) -> int | None:
        """Return the count that the limits let through, None where the move waits."""
        there, measured = _there(move), min(move.asked, move.measured)
        if self.workloads == 0:
            return measured if measured > move.written else None
        growth = max(LEAST_GROWTH, int(self.most_growth * there))
        count = max(min(move.asked, there + min(growth, self.pods)), measured)
        return None if count <= move.written < move.asked else count

    def charge(self, move: Move) -> None:
        """Take a move from the limits, once it is written: one that failed or was refused costs nothing."""
        self.workloads = max(0, self.workloads - 1)
        self.pods -= max(0, move.asked - max(_there(move), move.measured))


def most_workloads(fleet: int, share: float) -> int:
    """Return how many workloads of a fleet one cycle may change."""
    return min(max(LEAST_WORKLOADS, int(share * fleet)), MOST_WORKLOADS)


def mass_fall(moves: Sequence[Move], fleet: int, share: float) -> int:
    """Return how many workloads go down at once, 0 where that is no more than `share` of the fleet."""
    falling = sum(move.falls for move in moves)
    return falling if falling >= MIN_FALLING and falling > share * fleet else 0


def _there(move: Move) -> int:
    return max(move.written, move.pods)


def in_turn(items: Sequence[T], turn: int, most: int = MOST_WORKLOADS) -> list[T]:
    """Return at most so many items, the next ones in each turn: those that are refused each time keep none waiting."""
    begin = turn * most % max(1, len(items))
    return [*items[begin:], *items[:begin]][:most]


def looked_at(needy: Iterable[WorkloadId], refused: Iterable[WorkloadId]) -> list[WorkloadId]:
    """Return the workloads that a cycle looks at: one of each namespace in turn, the neediest of it first.

    Those that were `refused` come last, and of them what was refused longest ago first.
    """
    places = {id_: place for place, id_ in enumerate(refused)}
    turns = namespaces_in_turn(needy, attrgetter("namespace"))
    return sorted(turns, key=lambda id_: places.get(id_, -1))[:MOST_WORKLOADS]


def namespaces_in_turn(objects: Iterable[T], namespace: Callable[[T], str]) -> list[T]:
    """Return one object of each namespace in turn, those of one namespace in the order in which they come."""
    count: Counter[str] = Counter()
    ranked: list[tuple[int, T]] = []
    for one in objects:
        ranked.append((count[namespace(one)], one))
        count[namespace(one)] += 1
    return [one for _, one in sorted(ranked, key=itemgetter(0))]


class Seen(NamedTuple):
    """One object."""

    uid: str
    since: datetime
    """Instant of the first look."""
    known_at: datetime
    """Instant when the offer last knew a count, or when this replica first looked."""
    asked: tuple[tuple[datetime, int], ...] = ()
    """Counts that were offered lately."""

    def lowest(self) -> int:
        """No lower count was good enough throughout."""
        return max(count for _, count in self.asked)


Memory: TypeAlias = "Mapping[tuple[str, ...], Seen]"


def looked(before: Seen | None, uid: str, asked: int | None, now: datetime, kept: timedelta) -> Seen:
    """What is remembered after one more look, at which `asked` was offered, None while it is not known."""
    if before is None or before.uid != uid or now < before.since:
        before = Seen(uid, now, now)
    lately = tuple((at, count) for at, count in before.asked if now - at <= kept)
    if asked is None:
        return before._replace(asked=lately)
    return before._replace(asked=(*lately, (now, asked)), known_at=now)

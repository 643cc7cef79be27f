"""Limits of a cycle: how many workloads it may change, how many pods it may add, how far one may grow or shrink."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from forecaster.actuators.settings import LimitSettings
    from forecaster.domain.workload import WorkloadId

T = TypeVar("T")

MIN_WORKLOADS, MIN_PODS, MIN_GROWTH = 5, 10, 4
"""Smallest change allowed in a cycle, whatever its shares: in a small fleet a share would round to nothing."""
MAX_WORKLOADS = 500
"""Whatever the share says: each is two requests, one after the other, and other steps of the cycle wait."""
MAX_PODS_PER_WORKLOAD = 10_000
"""Pods of one workload that count for the fleet's share: any owner may state a count of two billion."""
MIN_FALL = 0.2
"""Share of its count that a workload loses at least to count as going down: an evening takes single pods."""
MIN_FALLING = 10
"""Workloads that may always go down in one cycle: in a small fleet a share would be one of them."""


class Move(NamedTuple):
    """Change of a count; all zero for a change of a workload that moves no count."""

    desired: int = 0
    written: int = 0
    """The count that the field has now."""
    pods: int = 0
    """Pods that there are."""
    measured: int = 0
    """Count that measured demand alone needs: no limit holds that back."""

    @property
    def lowers(self) -> bool:
        """Whether the count goes down."""
        return self.desired < self.written

    @property
    def falls(self) -> bool:
        """Whether the workload loses a share of its count that matters."""
        return self.written - self.desired >= max(1.0, MIN_FALL * self.written)

    @property
    def multiplies(self) -> float:
        """Ratio of the desired to the present pods of the workload."""
        return self.desired / max(1, self.pods, self.written)


@dataclass(slots=True)
class CycleLimits:
    """Remaining limits of one cycle: workloads that may be changed, pods that may be added."""

    fleet: int
    """Workloads in the mode, or with a value of ours."""
    workloads: int
    pods: int = 0
    max_growth: float = 0.0

    @classmethod
    def of(cls, fleet: Sequence[int], rules: LimitSettings) -> CycleLimits:
        """Return the limits for a fleet, which has the pods of every workload in the mode."""
        counted = sum(min(pods, MAX_PODS_PER_WORKLOAD) for pods in fleet)
        workloads = max_changed(len(fleet), rules.most_workloads)
        return cls(len(fleet), workloads, max(MIN_PODS, int(rules.most_pods * counted)), rules.most_growth)

    def count(self, move: Move) -> int | None:
        """Return the count that the limits let through, None where the move waits."""
        there, measured = max(move.written, move.pods), min(move.desired, move.measured)
        if self.workloads == 0:
            return measured if measured > move.written else None
        growth = max(MIN_GROWTH, int(self.max_growth * there))
        count = max(min(move.desired, there + min(growth, self.pods)), measured)
        return None if count <= move.written < move.desired else count

    def charge(self, move: Move) -> None:
        """Take a move from the limits, once it is written: one that failed or was refused costs nothing."""
        self.workloads = max(0, self.workloads - 1)
        self.pods -= max(0, move.desired - max(move.written, move.pods, move.measured))


def max_changed(fleet: int, share: float) -> int:
    """Return how many workloads of a fleet one cycle may change."""
    return min(max(MIN_WORKLOADS, int(share * fleet)), MAX_WORKLOADS)


def mass_fall(moves: Sequence[Move], fleet: int, share: float) -> int:
    """Return how many workloads go down at once, 0 where that is no more than `share` of the fleet."""
    falling = sum(move.falls for move in moves)
    return falling if falling >= MIN_FALLING and falling > share * fleet else 0


def in_turn(items: Sequence[T], turn: int, limit: int = MAX_WORKLOADS) -> list[T]:
    """Return at most so many items, the next ones in each turn: those that are refused each time keep none waiting."""
    begin = turn * limit % max(1, len(items))
    return [*items[begin:], *items[:begin]][:limit]


def workloads_to_read(needy: Iterable[WorkloadId], refused: Iterable[WorkloadId]) -> list[WorkloadId]:
    """Return the workloads in the order of a cycle: one of each namespace in turn, the neediest first.

    Those that were `refused` come last, the ones refused longest ago first.
    """
    places = {id_: place for place, id_ in enumerate(refused)}
    turns = namespaces_in_turn(needy, attrgetter("namespace"))
    return sorted(turns, key=lambda id_: places.get(id_, -1))[:MAX_WORKLOADS]


def namespaces_in_turn(objects: Iterable[T], namespace: Callable[[T], str]) -> list[T]:
    """Return the objects with namespaces taking turns; within a namespace their order stays."""
    turns: defaultdict[str, count[int]] = defaultdict(count)
    ranked = [(next(turns[namespace(candidate)]), candidate) for candidate in objects]
    return [candidate for _, candidate in sorted(ranked, key=itemgetter(0))]


class RecentOffers(NamedTuple):
    """Recent offers of one object."""

    uid: str
    """Identity; offers of another one are forgotten."""
    since: datetime
    """Instant of the first look."""
    known_at: datetime
    """Instant when the offer last knew a count, or when this replica first looked."""
    offered: tuple[tuple[datetime, int], ...] = ()
    """Counts that were offered lately."""

    def lowest(self) -> int:
        """Return the lowest count that would have been enough throughout."""
        return max(count for _, count in self.offered)


Memory: TypeAlias = "Mapping[tuple[str, ...], RecentOffers]"


def with_offer(
    before: RecentOffers | None, uid: str, offered: int | None, now: datetime, window: timedelta
) -> RecentOffers:
    """Return the offers after one more observation, at which `offered` was the count, None while it is not known."""
    if before is None or before.uid != uid or now < before.since:
        before = RecentOffers(uid, now, now)
    lately = tuple((at, count) for at, count in before.offered if now - at <= window)
    if offered is None:
        return before._replace(offered=lately)
    return before._replace(offered=(*lately, (now, offered)), known_at=now)

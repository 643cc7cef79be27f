"""Replay of a recommender of requests and limits over recorded usage, point by point, with its result.

The recommender sees usage, never demand above the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]

STEP_SECONDS = 300
STEPS_A_DAY = 86400 // STEP_SECONDS
POINTS_AN_HOUR = STEPS_A_DAY // 24
BEGIN_SECONDS = 1_700_006_400
"""A midnight, in seconds since 1970; the recorded clock does not matter."""
Resource = Literal["cpu", "memory"]


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """`demand` [row, time] every five minutes, in cores or bytes; NaN where not known.

    It is what the containers needed: what they got is never more than their limit. The first `warm` columns are history
    that every recommender may read before it has to decide.
    """

    resource: Resource
    names: tuple[str, ...]
    demand: NDArray[np.float64]
    warm: int


@dataclass(slots=True, eq=False)
class SizeAccount:
    """[row] sums over the points of the replay; amounts are in the resource's unit times points."""

    points: Doubles
    used: Doubles
    idle: Doubles
    """Requested and not used."""
    over_request: Doubles
    """Number of points with demand above the request."""
    over_limit: Doubles
    """Number of points with demand above the limit: OOM kills of memory, throttled time of CPU."""
    cut: Doubles
    """Demand above the limit."""
    changes: Doubles

    @classmethod
    def empty(cls, rows: int) -> SizeAccount:
        """Return an account in which nothing happened."""
        return cls(*(np.zeros(rows) for _ in range(7)))

    def count(self, demand: Doubles, request: Doubles, limit: Doubles) -> None:
        """Count one point; NaN is no request or limit."""
        known = ~np.isnan(demand)
        value, got = np.where(known, demand, 0.0), np.where(known, np.fmin(demand, limit), 0.0)
        self.points += known
        self.used += got
        self.idle += np.where(known, np.fmax(request - got, 0.0), 0.0)
        self.over_request += known & (demand > request)
        self.over_limit += known & (demand > limit)
        self.cut += np.where(known, np.maximum(value - got, 0.0), 0.0)

    def summary(self) -> SizeSummary:
        """All rows together, each container counting the same."""
        used, points = self.used.sum(), self.points.sum()
        return SizeSummary(
            slack=_mean_ratio(self.idle, self.used),
            slack_of_total=float(self.idle.sum() / used) if used else math.nan,
            over_limit=int(self.over_limit.sum()),
            over_request_share=float(self.over_request.sum() / points) if points else math.nan,
            over_limit_share=float(self.over_limit.sum() / points) if points else math.nan,
            cut_share=_mean_ratio(self.cut, self.used + self.cut),
            changes=int(self.changes.sum()),
        )


def _mean_ratio(part: Doubles, whole: Doubles) -> float:
    """Return the mean of the containers' ratios, without those of a whole of 0; NaN where there is none."""
    known = whole > 0
    return float((part[known] / whole[known]).mean()) if known.any() else math.nan


class SizeSummary(NamedTuple):
    """Slack is requested and not used over used: the mean of the containers' ratios, and that of the totals."""

    slack: float
    slack_of_total: float
    over_limit: int
    over_request_share: float
    over_limit_share: float
    cut_share: float
    changes: int


class HeldSizes(NamedTuple):
    """[row] sizes of the containers, and for how many seconds."""

    request: Doubles
    limit: Doubles
    age: Doubles


class Sizer(Protocol):
    """A recommender and its rule of when to change."""

    every: int
    """Points between two looks."""

    def observe(self, used: Doubles, at: int) -> None:
        """[row] usage of one point, NaN where there is none; `at` in seconds since 1970."""

    def killed(self, rows: NDArray[np.intp], limit: Doubles, at: int) -> None:
        """Containers that were killed at their limit [row]."""

    def size(self, held: HeldSizes, at: int) -> tuple[Doubles, Doubles, Flags]:
        """[row] requests, limits and which containers get them now."""


def replay_sizes(load: Load, sizer: Sizer) -> SizeAccount:
    """Return the account after the warm-up. A killed container restarts with the recommendation of that time."""
    rows, points = load.demand.shape
    account, everyone = SizeAccount.empty(rows), np.ones(rows, bool)
    for column in range(load.warm):
        sizer.observe(load.demand[:, column], _at(column))
    nothing = np.full(rows, np.nan)
    held = _changed(HeldSizes(nothing, nothing, np.zeros(rows)), sizer, load.warm, everyone)
    for column in range(load.warm, points):
        demand, at = load.demand[:, column], _at(column)
        account.count(demand, held.request, held.limit)
        over = demand > held.limit
        sizer.observe(np.minimum(demand, np.fmin(held.limit, np.inf)), at)
        killed = over & (load.resource == "memory")
        if killed.any():
            sizer.killed(np.flatnonzero(killed), held.limit, at)
        due = everyone if (column - load.warm) % sizer.every == sizer.every - 1 else killed
        before = held.request
        held = _changed(held, sizer, column + 1, due, restarted=killed) if due.any() else held
        changed = (held.request != before) & ~np.isnan(held.request)
        account.changes += changed
        held = held._replace(age=np.where(changed, 0.0, held.age + STEP_SECONDS))
    return account


def _changed(held: HeldSizes, sizer: Sizer, column: int, due: Flags, restarted: Flags | None = None) -> HeldSizes:
    """Return the sizes after a review: changed where they are due and the rule differs, or on a restart."""
    request, limit, moves = sizer.size(held, _at(column - 1))
    first = np.isnan(held.request)
    moving = due & ~np.isnan(request) & (moves | first | (False if restarted is None else restarted))
    return HeldSizes(np.where(moving, request, held.request), np.where(moving, limit, held.limit), held.age)


def _at(column: int) -> int:
    return BEGIN_SECONDS + column * STEP_SECONDS


WARM_SHARE = 0.5
"""Share of the known time that is read before the first decision, at most eight days."""
MAX_WARM_UP = 8 * STEPS_A_DAY


def measured_load(resource: Resource, names: Sequence[str], usage: NDArray[np.float64]) -> Load | None:
    """Return the rows of `usage` [workload, time] with half a day known on both sides; None without any."""
    known = ~np.isnan(usage)
    begin = int(np.argmax(known.any(axis=0))) if known.any() else usage.shape[1]
    usage, known = usage[:, begin:], known[:, begin:]
    warm = min(int(usage.shape[1] * WARM_SHARE), MAX_WARM_UP)
    enough = [part.sum(axis=1) >= STEPS_A_DAY // 2 for part in (known[:, :warm], known[:, warm:])]
    rows = np.flatnonzero(enough[0] & enough[1])
    if not rows.size:
        return None
    return Load(resource, tuple(names[row] for row in rows.tolist()), usage[rows], warm)

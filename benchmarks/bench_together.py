"""Points of sweeps, decided together: they differ in numbers only, and one cycle of the service decides many rows.

The pods of a point follow from the counts that it decided before. The bench calls one point after another: the first
call at a tick decides all points. A point that has other pods than expected leaves the sweep, with its state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from forecaster.forecasting.peaks import LEVELS
from forecaster.horizontal.decide import decide
from forecaster.horizontal.events import NO_EVENTS, EventColumns
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.row import KNOWN, NO_SAMPLE
from forecaster.horizontal.state import State
from forecaster.horizontal.terms import policy_columns, target_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecaster.horizontal.inputs import PolicyColumns, Rules, TargetColumns
    from forecaster.horizontal.terms import Terms

    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]


class Known(NamedTuple):
    """Values known at a tick, in the unit of the targets; NaN where a value is not known."""

    measured: float
    peaks: tuple[float, ...] = (np.nan,) * len(LEVELS)


class PointTerms(NamedTuple):
    """Rules and numbers that one point decides by."""

    terms: Terms
    quantile: float
    acting: bool


class Point(Protocol):
    """One point of a sweep."""

    world: dict[str, Any]

    def stated(self) -> PointTerms:
        """Rules and numbers of this point; the same object until they change."""


class Columns(NamedTuple):
    """Points with the same rules, a row each."""

    rules: Rules
    policy: PolicyColumns
    targets: TargetColumns
    quantile: Floats
    acting: NDArray[np.bool_]

    @classmethod
    def of(cls, stated: Sequence[PointTerms]) -> Columns:
        terms = [point.terms for point in stated]
        quantile, acting = (np.array([getattr(point, name) for point in stated]) for name in ("quantile", "acting"))
        return cls(terms[0].rules, policy_columns(terms), target_columns(terms), quantile, acting)

    def inputs(self, measured: Floats, peaks: Floats, current: Counts, ready: Counts) -> Inputs:
        """For demand [row], quantiles of its peak [level, row], and pods [row] that are there and that are ready."""
        rows = len(current)
        return Inputs(
            rules=self.rules,
            policy=self.policy,
            targets=self.targets,
            current=current,
            ready=ready,
            measured=measured[None],
            unseen=np.where(np.isnan(measured), NO_SAMPLE, KNOWN).astype(np.int8)[None],
            age=np.full((1, rows), np.nan),
            peak=self._level(peaks)[None],
            low=peaks[:1],
            quantiles=[peaks],
            acting=self.acting,
            events=EventColumns.of([NO_EVENTS], np.zeros(rows, np.int64)),
            lost=np.zeros(rows),
            unreadable=np.zeros(rows, np.bool_),
        )

    def _level(self, peaks: Floats) -> Floats:
        """[row] the quantile that each point states, linear between two levels."""
        levels = np.array(LEVELS)
        right = np.clip(np.searchsorted(levels, self.quantile, side="right"), 1, len(levels) - 1)
        row = np.arange(peaks.shape[1])
        low, high = peaks[right - 1, row], peaks[right, row]
        within = np.clip(self.quantile, levels[0], levels[-1]) - levels[right - 1]
        return np.asarray((high - low) / (levels[right] - levels[right - 1]) * within + low)


class Sweep:
    """Points of one or of many series in step; each expects the pods that follow from its own counts."""

    def __init__(self, world: dict[str, Any]) -> None:
        self.tick, self.start_up = world["tick_seconds"], world["startup_seconds"] // world["tick_seconds"]
        self.points: list[Point] = []
        self.stated: list[PointTerms] = []
        self.groups: list[tuple[Counts, Columns]] = []
        self.at: int | None = None

    def join(self, point: Point) -> int:
        """The row of a new point."""
        self.points.append(point)
        return len(self.points) - 1

    def count(self, row: int, pods: tuple[int, int], history: Floats, now: int, known: Known) -> int | None:
        """Count that a point decides; None where it has other `pods`, ready and starting, than expected."""
        if self.at != now:
            rows = len(self.points)
            peaks = np.repeat(np.array(known.peaks)[:, None], rows, axis=1)
            self.decide(now, [history] * rows, np.full(rows, known.measured), peaks)
        ready = int(self.ready[row])
        return int(self.replicas[row]) if pods == (ready, int(self.current[row]) - ready) else None

    def remembered(self, row: int, now: int) -> State:
        """State of one point before `now`."""
        if self.at is None:
            return State.new(1)
        return (self.before if self.at == now else self.state).take(np.array([row]))

    def decide(self, now: int, histories: Sequence[Floats], measured: Floats, peaks: Floats) -> None:
        """All rows at a new tick, each by its history [row], demand [row] and quantiles of its peak [level, row]."""
        self._open(histories, now)
        groups = self._groups()
        longest = max(columns.policy.keep for _, columns in groups)
        self.state = self.state.opened(float(now), longest, groups[0][1].rules.signals)
        self.replicas = self.current.copy()
        for rows, columns in groups:
            inputs = columns.inputs(measured[rows], peaks[:, rows], self.current[rows], self.ready[rows])
            decisions, state = decide(inputs, self.state.take(rows), float(now))
            self.replicas[rows], self.state = decisions.replicas, self.state.put(rows, state)
        self.replicas = self._bounded(self.replicas)

    def _open(self, histories: Sequence[Floats], now: int) -> None:
        """Begin a new tick with the pods as the bench counts them, from the last and from the oldest count."""
        last = max(1, self.start_up)
        if self.at is None:
            self.state, self.requested = State.new(len(self.points)), [self._first(histories)] * last
        else:
            self.requested = [*self.requested, *[self.replicas] * ((now - self.at) // self.tick)][-last:]
        self.current, self.ready = self.requested[-1], np.minimum.reduce(self.requested)
        self.before, self.at = self.state, now

    def _first(self, histories: Sequence[Floats]) -> Counts:
        newest = [known[-1] if len(known := history[~np.isnan(history)]) else 0.0 for history in histories]
        filled = [point.world["pod_capacity"] * point.world["target"] for point in self.points]
        return self._bounded(np.ceil(np.array(newest) / np.array(filled)).astype(np.int64))

    def _bounded(self, counts: Counts) -> Counts:
        world = self.points[0].world
        return np.clip(counts, world["min_replicas"], world["max_replicas"])

    def _groups(self) -> list[tuple[Counts, Columns]]:
        """The rows that have the same rules, made anew when a point goes by something else."""
        stated = [point.stated() for point in self.points]
        if len(stated) != len(self.stated) or any(new is not old for new, old in zip(stated, self.stated, strict=True)):
            by: dict[Rules, list[int]] = {}
            for row, terms in enumerate(stated):
                by.setdefault(terms.terms.rules, []).append(row)
            self.groups = [(np.array(rows), Columns.of([stated[row] for row in rows])) for rows in by.values()]
            self.stated = stated
        return self.groups

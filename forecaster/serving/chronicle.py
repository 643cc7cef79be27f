"""What became of each workload lately: its last changes of mind, and how its forecasts turned out."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.decision import Scale

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import CycleReport
    from forecaster.domain.score import ForecastScore
    from forecaster.domain.workload import WorkloadId

CHANGES_KEPT = 8
HALF_LIFE = timedelta(days=1)
"""A forecast that matured a day ago counts half of one that matured now."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """A decision that differs from the one before."""

    at: datetime
    replicas: int | None
    """Recommended; null while holding."""
    verdict: str
    reason: str
    message: str


class AccuracyView(msgspec.Struct, frozen=True, gc=False):
    """How forecasts of one signal turned out, newer ones counting more. Ratios; null where nothing was measured."""

    signal: str
    forecasts: float
    """Matured ones, each counted by its age."""
    coverage: float
    """Share of peaks at or below the forecast quantile."""
    quantile: float
    """What the coverage should be."""
    error_ratio: float | None
    """Sum of absolute errors of the median by sum of peaks."""


class Past(msgspec.Struct, frozen=True):
    """Of one workload."""

    decisions: tuple[Change, ...] = ()
    accuracy: tuple[AccuracyView, ...] = ()


class Chronicle:
    """Follows all workloads from cycle to cycle, in memory: it begins anew with the process."""

    def __init__(self) -> None:
        self._changes: dict[WorkloadId, deque[Change]] = {}
        self._sums: dict[WorkloadId, dict[str, Sums]] = {}
        self._reported: datetime | None = None

    def follow(self, recommendations: Iterable[Recommendation], report: CycleReport | None) -> None:
        """Take one cycle in; workloads that are gone are forgotten. A report counts once."""
        changes = {one.id: self._changes.get(one.id) or deque(maxlen=CHANGES_KEPT) for one in recommendations}
        for one in recommendations:
            _note(changes[one.id], one)
        self._changes = changes
        if report is not None and report.at != self._reported:
            self._reported = report.at
            self._score(report.scores)
        self._sums = {id_: sums for id_, sums in self._sums.items() if id_ in changes}

    def of(self, id_: WorkloadId) -> Past:
        """What is remembered of a workload, the newest change first."""
        sums = self._sums.get(id_, {})
        views = tuple(one.view(signal) for signal, one in sorted(sums.items()))
        return Past(tuple(reversed(self._changes.get(id_, ()))), views)

    def _score(self, scores: Iterable[ForecastScore]) -> None:
        for score in scores:
            self._sums.setdefault(score.id, {}).setdefault(score.signal.value, Sums()).add(score)


class Sums:
    """Sums over matured forecasts of one signal, in which the past fades."""

    __slots__ = ("_absolute_error", "_actual", "_at", "_count", "_covered", "_quantiles")

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._count = self._covered = self._quantiles = self._absolute_error = self._actual = 0.0

    def add(self, score: ForecastScore) -> None:
        """One more has matured."""
        kept = 1.0 if self._at is None else 0.5 ** max((score.matured_at - self._at) / HALF_LIFE, 0.0)
        self._at = score.matured_at
        self._count = self._count * kept + 1
        self._covered = self._covered * kept + score.covered
        self._quantiles = self._quantiles * kept + score.quantile
        self._absolute_error = self._absolute_error * kept + score.absolute_error
        self._actual = self._actual * kept + score.actual

    def view(self, signal: str) -> AccuracyView:
        """The ratios."""
        return AccuracyView(
            signal=signal,
            forecasts=round(self._count, 3),
            coverage=self._covered / self._count,
            quantile=self._quantiles / self._count,
            error_ratio=self._absolute_error / self._actual if self._actual > 0 else None,
        )


def _note(changes: deque[Change], one: Recommendation) -> None:
    decided = one.replicas
    replicas, verdict = (decided.replicas, "scale") if isinstance(decided, Scale) else (None, "hold")
    newest = changes[-1] if changes else None
    if newest is None or (newest.replicas, newest.reason) != (replicas, decided.reason.value):
        changes.append(Change(one.at, replicas, verdict, decided.reason.value, decided.message))

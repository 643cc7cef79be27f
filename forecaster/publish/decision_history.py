"""What became of each workload lately: its last changes of mind, and how its forecasts turned out."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from forecaster.domain.decision import Hold, Scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forecaster.domain.report import CycleReport, ForecastScore
    from forecaster.domain.workload import WorkloadId

CHANGES_KEPT = 8
HALF_LIFE = timedelta(days=1)
"""A forecast that matured a day ago counts half of one that matured now."""
FORGOTTEN_AFTER = timedelta(days=1)
"""A workload that failed or could not be seen for some cycles is no new one when it is back."""
LEAST_SCORED = 5.0
"""Forecasts that have to have matured before they are said to be worse than others."""


class DecisionChange(msgspec.Struct, frozen=True, gc=False):
    """A decision that differs from the one before."""

    at: datetime
    replicas: int | None
    """Recommended; null while holding."""
    verdict: str
    reason: str
    message: str

    @classmethod
    def of(cls, at: datetime, decided: Scale | Hold) -> DecisionChange:
        """What was decided at an instant."""
        replicas, verdict = (decided.replicas, "scale") if isinstance(decided, Scale) else (None, "hold")
        return cls(at, replicas, verdict, decided.reason.value, decided.message)


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


class WorkloadHistory(msgspec.Struct, frozen=True):
    """Decisions and accuracy of one workload."""

    decisions: tuple[DecisionChange, ...] = ()
    accuracy: tuple[AccuracyView, ...] = ()


class DecisionHistory:
    """Follows all workloads from cycle to cycle, in memory, from what was known of them before."""

    def __init__(self) -> None:
        self._changes: dict[WorkloadId, deque[DecisionChange]] = {}
        self._sums: dict[WorkloadId, dict[str, FadingSums]] = {}
        self._present: tuple[WorkloadId, ...] = ()
        self._present_at: datetime | None = None
        """Instant when these were present; None before the first cycle that had any."""
        self._gone: dict[WorkloadId, datetime] = {}
        """Workloads that are gone, and when they were last present."""
        self._encoded: dict[WorkloadId, bytes] = {}
        """Encoded histories of workloads with none that is newer."""
        self._reported: datetime | None = None

    def restore(
        self,
        now: datetime,
        changes: Iterable[tuple[WorkloadId, DecisionChange]],
        past: Iterable[tuple[WorkloadId, str, ScoreSums]],
    ) -> None:
        """Begin with what was seen before: changes of each workload, oldest first, and faded scores by signal."""
        self._take(changes)
        for id_, signal, amounts in past:
            self._sums.setdefault(id_, {}).setdefault(signal, FadingSums()).gather(now, amounts)
        self._present, self._present_at = tuple(dict.fromkeys((*self._changes, *self._sums))), now

    def follow(
        self,
        at: datetime,
        ids: Iterable[WorkloadId],
        changes: Iterable[tuple[WorkloadId, DecisionChange]],
        report: CycleReport | None,
    ) -> None:
        """Take one cycle in: its workloads, and what was decided about those that may be decided otherwise than before.

        Workloads that are gone for long are forgotten. A report counts once.
        """
        self._see(at, tuple(ids))
        self._take(changes)
        if report is not None and report.at != self._reported:
            self._reported = report.at
            self._score(report.scores)
        self._forget()

    def _take(self, changes: Iterable[tuple[WorkloadId, DecisionChange]]) -> None:
        """Keep the changes that differ from the last ones kept."""
        for id_, change in changes:
            kept = self._changes.setdefault(id_, deque(maxlen=CHANGES_KEPT))
            if not kept or (kept[-1].replicas, kept[-1].reason) != (change.replicas, change.reason):
                kept.append(change)
                self._encoded.pop(id_, None)

    def _see(self, at: datetime, ids: tuple[WorkloadId, ...]) -> None:
        """Note which workloads are there; a cycle that sees none says nothing of how long the others are gone."""
        if self._present_at and ids != self._present:
            here, gone = frozenset(ids), self._gone | dict.fromkeys(self._present, self._present_at)
            self._gone = {id_: left for id_, left in gone.items() if id_ not in here}
        self._present, self._present_at = ids, at if ids else self._present_at

    def _forget(self) -> None:
        if not self._gone or self._present_at is None:
            return
        least = self._present_at - FORGOTTEN_AFTER
        for id_ in [id_ for id_, at in self._gone.items() if at < least]:
            del self._gone[id_]
            self._changes.pop(id_, None)
            self._sums.pop(id_, None)

    def of(self, id_: WorkloadId) -> WorkloadHistory:
        """What is remembered of a workload, the newest change first."""
        sums = self._sums.get(id_, {})
        views = tuple(one.view(signal) for signal, one in sorted(sums.items()))
        return WorkloadHistory(tuple(reversed(self._changes.get(id_, ()))), views)

    def encoded(self, ids: Sequence[WorkloadId]) -> list[bytes]:
        """What is remembered of these workloads as it lies in the table, encoded where it has changed."""
        known = self._encoded
        self._encoded = {id_: known.get(id_) or msgspec.json.encode(self.of(id_)) for id_ in ids}
        return [*self._encoded.values()]

    def worst(self, count: int) -> list[tuple[WorkloadId, AccuracyView]]:
        """Return the signals with the largest forecast errors, relative to their peaks, without those of few scores."""
        known = ((id_, signal, one) for id_, sums in self._sums.items() for signal, one in sums.items())
        erred = nlargest(count, (one for one in known if one[2].error_ratio >= 0.0), key=lambda one: one[2].error_ratio)
        return [(id_, sums.view(signal)) for id_, signal, sums in erred]

    def _score(self, scores: Iterable[ForecastScore]) -> None:
        for score in scores:
            self._encoded.pop(score.id, None)
            self._sums.setdefault(score.id, {}).setdefault(str(score.signal), FadingSums()).add(score)


class ScoreSums(NamedTuple):
    """Sums over matured forecasts of one signal; errors and peaks in its unit."""

    forecasts: float
    covered: float
    quantiles: float
    absolute_error: float
    actual: float


class FadingSums:
    """`ScoreSums` in which the past fades."""

    __slots__ = ("_at", "_sums")

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._sums = ScoreSums(0.0, 0.0, 0.0, 0.0, 0.0)

    def add(self, score: ForecastScore) -> None:
        """One more has matured."""
        one = ScoreSums(1, score.covered, score.quantile, score.absolute_error, score.actual)
        self.gather(score.matured_at, one)

    def gather(self, at: datetime, amounts: ScoreSums) -> None:
        """Some more have, all at this time."""
        kept = 1.0 if self._at is None else 0.5 ** max((at - self._at) / HALF_LIFE, 0.0)
        self._at = at
        self._sums = ScoreSums(*(before * kept + new for before, new in zip(self._sums, amounts, strict=True)))

    @property
    def forecasts(self) -> float:
        """How many count, as far as they have not faded."""
        return self._sums.forecasts

    @property
    def error_ratio(self) -> float:
        """Sum of absolute errors by sum of peaks; negative where too little is known to speak of it."""
        sums = self._sums
        return sums.absolute_error / sums.actual if sums.actual > 0 and sums.forecasts >= LEAST_SCORED else -1.0

    def view(self, signal: str) -> AccuracyView:
        """The ratios."""
        sums = self._sums
        return AccuracyView(
            signal=signal,
            forecasts=round(sums.forecasts, 3),
            coverage=sums.covered / sums.forecasts,
            quantile=sums.quantiles / sums.forecasts,
            error_ratio=sums.absolute_error / sums.actual if sums.actual > 0 else None,
        )

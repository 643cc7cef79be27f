"""The recent past of each workload: its last changed decisions, and the outcome of its forecasts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from heapq import nlargest

import msgspec

from forecaster.domain.report import CycleReport, DecisionChange, ForecastScore, ScoreSums
from forecaster.domain.workload import WorkloadId

MAX_CHANGES = 8
HALF_LIFE = timedelta(days=1)
"""A forecast that matured a day ago counts half of one that matured now."""
FORGOTTEN_AFTER = timedelta(days=1)
"""A workload that failed or could not be seen for some cycles is no new one when it is back."""
MIN_SCORED = 5.0
"""Smallest number of matured forecasts for a comparison with others."""


class AccuracyView(msgspec.Struct, frozen=True, gc=False):
    """Outcome of the forecasts of one signal, newer ones weighing more. Ratios; null where nothing was measured."""

    signal: str
    forecasts: float
    """Matured ones, each counted by its age."""
    coverage: float
    """Share of peaks at or below the forecast quantile."""
    quantile: float
    """Nominal coverage."""
    error_ratio: float | None
    """Sum of absolute errors of the median by sum of peaks."""


class WorkloadHistory(msgspec.Struct, frozen=True):
    """Decisions and accuracy of one workload."""

    decisions: tuple[DecisionChange, ...] = ()
    accuracy: tuple[AccuracyView, ...] = ()


class DecisionHistory:
    """Follows all workloads from cycle to cycle, in memory, beginning with the decisions of an earlier process."""

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
        """Begin with changes of each workload, oldest first, and faded scores by signal, of an earlier process."""
        self._record(changes)
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
        """Add one cycle: its workloads, and the decisions that may have changed.

        Workloads that are gone for long are forgotten. A report counts once.
        """
        self._note_present(at, tuple(ids))
        self._record(changes)
        if report is not None and report.at != self._reported:
            self._reported = report.at
            self._score(report.scores)
        self._forget()

    def _record(self, changes: Iterable[tuple[WorkloadId, DecisionChange]]) -> None:
        """Record the changes that differ from the latest recorded one."""
        for id_, change in changes:
            recorded = self._changes.setdefault(id_, deque(maxlen=MAX_CHANGES))
            if not recorded or (recorded[-1].replicas, recorded[-1].reason) != (change.replicas, change.reason):
                recorded.append(change)
                self._encoded.pop(id_, None)

    def _note_present(self, at: datetime, ids: tuple[WorkloadId, ...]) -> None:
        """Note which workloads are present; a cycle without any does not count as their absence."""
        if self._present_at and ids != self._present:
            present, gone = frozenset(ids), self._gone | dict.fromkeys(self._present, self._present_at)
            self._gone = {id_: left for id_, left in gone.items() if id_ not in present}
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
        """Return the decisions and accuracy of a workload, the latest change first."""
        sums = self._sums.get(id_, {})
        views = tuple(signal_sums.view(signal) for signal, signal_sums in sorted(sums.items()))
        return WorkloadHistory(tuple(reversed(self._changes.get(id_, ()))), views)

    def encoded(self, ids: Sequence[WorkloadId]) -> list[bytes]:
        """Return the encoded histories of these workloads for the table; only changed ones are encoded again."""
        known = self._encoded
        self._encoded = {id_: known.get(id_) or msgspec.json.encode(self.of(id_)) for id_ in ids}
        return [*self._encoded.values()]

    def worst(self, count: int) -> list[tuple[WorkloadId, AccuracyView]]:
        """Return the signals with the largest relative forecast errors, without those with few scores."""
        known = ((id_, signal, sums) for id_, by_signal in self._sums.items() for signal, sums in by_signal.items())
        erred = nlargest(count, (row for row in known if row[2].error_ratio >= 0.0), key=lambda row: row[2].error_ratio)
        return [(id_, sums.view(signal)) for id_, signal, sums in erred]

    def _score(self, scores: Iterable[ForecastScore]) -> None:
        for score in scores:
            self._encoded.pop(score.id, None)
            self._sums.setdefault(score.id, {}).setdefault(str(score.signal), FadingSums()).add(score)


class FadingSums:
    """`ScoreSums` in which the past fades."""

    __slots__ = ("_at", "_sums")

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._sums = ScoreSums(0.0, 0.0, 0.0, 0.0, 0.0)

    def add(self, score: ForecastScore) -> None:
        """Add one matured score."""
        sums = ScoreSums(1, score.covered, score.quantile, score.absolute_error, score.actual)
        self.gather(score.matured_at, sums)

    def gather(self, at: datetime, amounts: ScoreSums) -> None:
        """Add sums of scores that matured at this time."""
        weight = 1.0 if self._at is None else 0.5 ** max((at - self._at) / HALF_LIFE, 0.0)
        self._at = at
        self._sums = ScoreSums(*(before * weight + new for before, new in zip(self._sums, amounts, strict=True)))

    @property
    def forecasts(self) -> float:
        """Number of scored forecasts, faded ones counting less."""
        return self._sums.forecasts

    @property
    def error_ratio(self) -> float:
        """Sum of absolute errors divided by the sum of peaks; negative where too few are known."""
        sums = self._sums
        return sums.absolute_error / sums.actual if sums.actual > 0 and sums.forecasts >= MIN_SCORED else -1.0

    def view(self, signal: str) -> AccuracyView:
        """The ratios."""
        sums = self._sums
        return AccuracyView(
            signal=signal,
            forecasts=round(sums.forecasts, 3),
            coverage=round(sums.covered / sums.forecasts, 6),
            quantile=round(sums.quantiles / sums.forecasts, 6),
            error_ratio=round(sums.absolute_error / sums.actual, 6) if sums.actual > 0 else None,
        )

"""Gate states judged by the evidence of the workloads' own past days, for the service and for replays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np

from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import Signal
from forecaster.domain.window import DAY, FIVE_MINUTES, MINUTE, MINUTES_A_POINT, Window
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.forecasting.backtest import DAYS_BEFORE, PolicyBacktest, backtests
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.forecasting.peaks import LEVELS
from forecaster.forecasting.wall_clock import series_by_clock
from forecaster.horizontal.columns import Floats
from forecaster.horizontal.gate import Evidence, judged, unjudged
from forecaster.horizontal.gate_states import FORECASTERS, NO_HISTORY, TOO_FAR, TOO_SHORT, Gates
from forecaster.horizontal.lead_time import lead_time
from forecaster.horizontal.targets import full_pod, targets_of, usable
from forecaster.replay.evidence import PastEvidence, at_stated_quantile, evidence_of

JUDGED_DAYS = 3
MAX_PAST = DAY
"""Oldest age of a forecast origin."""
MIN_HISTORY = DAYS_BEFORE + 1
"""Days: one to judge, one to look back on, and one for a rhythm."""
FORECAST_BATCH = 16
"""Targets whose past days are forecast together: with all quantiles they take some twenty megabytes."""
REPLAY_BATCH = {"quantile": 768, "newsvendor": 96}
"""Targets per replay, by sizing: the distribution of a minute takes nine times the memory of one quantile."""
SMALLEST = 1e-9


class Windows(Protocol):
    """Stored windows of all workloads."""

    def window(self, signal: Signal, step: timedelta) -> Window:
        """The latest points of one signal at this step."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One target of a workload: its demand in pods by five minutes [bin], and by the minute of the latest hours."""

    id: WorkloadId
    signal: Signal
    bins: Floats
    minutes: Floats
    """The last of them ends where the bins end; NaN where it is not known by the minute."""
    end: datetime
    span: PeakSpan
    policy: HorizontalPolicy


class Unjudged(NamedTuple):
    """Reason why a workload cannot be judged yet: a verdict of its gate, with its numbers."""

    verdict: np.int8
    days: float = np.nan
    least_days: float = float(MIN_HISTORY)
    signal: str = ""


class PastDemand:
    """Stored past demand, looked up by workload."""

    def __init__(self, history: Windows) -> None:
        self._history = history
        self._windows: dict[tuple[Signal, timedelta], Window] = {}

    def bins(self, signal: Signal, id_: WorkloadId) -> Floats:
        """Demand by five minutes since it is known."""
        values = self._values(signal, id_, FIVE_MINUTES)
        known = np.isfinite(values)
        return values[known.argmax() if known.any() else len(values) :]

    def minutes(self, signal: Signal, id_: WorkloadId) -> Floats:
        """Demand by the minute of the latest hours, up to where the five minutes end."""
        values, minutes = self._values(signal, id_, MINUTE), self._window(signal, MINUTE)
        later = (minutes.end - self.end(signal)) // MINUTE
        return values[: max(len(values) - later, 0)] if later >= 0 else np.empty(0)

    def end(self, signal: Signal) -> datetime:
        """Return where the five minutes end."""
        return self._window(signal, FIVE_MINUTES).end

    def _values(self, signal: Signal, id_: WorkloadId, step: timedelta) -> Floats:
        window = self._window(signal, step)
        if id_ not in window.row:
            return np.empty(0)
        return np.asarray(window.values[window.row[id_]], np.float64)

    def _window(self, signal: Signal, step: timedelta) -> Window:
        if (signal, step) not in self._windows:
            self._windows[signal, step] = self._history.window(signal, step)
        return self._windows[signal, step]


def cases_of(workload: Workload, policy: Policy, past: PastDemand) -> list[Case] | Unjudged:
    """The targets that a forecast could move, or why nothing can be said of them yet.

    A signal that was never measured is not forecast, either.
    """
    horizontal = policy.horizontal
    span = PeakSpan(lead_time(horizontal).value, horizontal.window)
    if span.lead_time + span.length > MAX_PAST:
        return Unjudged(TOO_FAR, least_days=MAX_PAST / DAY)
    cases = [
        Case(
            workload.id, signal, bins / pod, past.minutes(signal, workload.id) / pod, past.end(signal), span, horizontal
        )
        for signal, pod in full_pods(workload, horizontal).items()
        if len(bins := _lived(past, signal, workload.id, policy.time_zone))
    ]
    return _too_short(cases) or cases


def _lived(past: PastDemand, signal: Signal, id_: WorkloadId, zone: str) -> Floats:
    """Demand by five minutes, its days by the clock of the users as its forecasts read them."""
    lived = np.asarray(series_by_clock(past.bins(signal, id_), zone, past.end(signal), FIVE_MINUTES), np.float64)
    return lived[np.isfinite(lived).argmax() :] if len(lived) else lived


def _too_short(cases: Sequence[Case]) -> Unjudged | None:
    """Return why these cases cannot be judged; None where they can."""
    if not cases:
        return Unjudged(NO_HISTORY)
    shortest = min(cases, key=lambda case: len(case.bins))
    days = np.floor(len(shortest.bins) * FIVE_MINUTES / timedelta(days=0.1)) / 10
    return None if days >= MIN_HISTORY else Unjudged(TOO_SHORT, days, signal=shortest.signal)


def full_pods(workload: Workload, policy: HorizontalPolicy) -> dict[Signal, float]:
    """Return the full load of a pod, by signal; of two targets on one signal the tighter one counts."""
    pods: dict[Signal, float] = {}
    for target in usable(targets_of(workload, policy)):
        pod = max(full_pod(target, policy.peak_target), SMALLEST)
        pods[target.signal] = min(pod, pods.get(target.signal, pod))
    return pods


class Judgement(NamedTuple):
    """Evidence on a target of a workload: of all its judged days, and of the newer half of them."""

    case: Case
    rounds: tuple[PastEvidence, ...]
    place: int
    """The series in that evidence."""


def judgements_of(cases: Iterable[Case], model: str) -> dict[WorkloadId, list[Judgement]]:
    """Return the shortage that each forecast's decisions would have had.

    Cases with one sizing and number of days are replayed together: a minute of few takes nearly as long as one of many.
    """
    judgements: dict[WorkloadId, list[Judgement]] = defaultdict(list)
    for (sizing, _), alike in _grouped(cases, lambda case: (case.policy.sizing, _judged_days(case))):
        most = REPLAY_BATCH[sizing]
        for batch in (alike[first : first + most] for first in range(0, len(alike), most)):
            for judgement in _judgements(batch, model):
                judgements[judgement.case.id].append(judgement)
    return dict(judgements)


def _judgements(batch: Sequence[Case], model: str) -> Iterator[Judgement]:
    groups = _grouped(batch, lambda case: (case.span, len(case.bins), case.end))
    parts = [alike[i : i + FORECAST_BATCH] for _, alike in groups for i in range(0, len(alike), FORECAST_BATCH)]
    cases = [case for part in parts for case in part]
    start_ups = np.array([max(case.span.lead_time // MINUTE - 1, 0) for case in cases])
    days = _joined(len(cases), (_days(part, model) for part in parts))
    rounds = tuple(evidence_of(days, LEVELS, [case.policy for case in cases], start_ups))
    return (Judgement(case, rounds, place) for place, case in enumerate(cases))


def _joined(count: int, parts: Iterator[PolicyBacktest]) -> PolicyBacktest:
    """The days of `count` series, part by part: all lie in memory once, minute by minute as a replay reads them."""
    part, at = next(parts), 0
    days = PolicyBacktest(*(np.moveaxis(np.empty((*field.shape[1:], count)), -1, 0) for field in part))
    for each in chain([part], parts):
        for whole, field in zip(days, each, strict=True):
            whole[at : at + len(field)] = field
        at += len(each.demand)
    return days


def _grouped(
    cases: Iterable[Case], key: Callable[[Case], tuple[Any, ...]]
) -> Iterable[tuple[tuple[Any, ...], list[Case]]]:
    groups: dict[tuple[Any, ...], list[Case]] = defaultdict(list)
    for case in cases:
        groups[key(case)].append(case)
    return groups.items()


def _judged_days(case: Case) -> int:
    return min(JUDGED_DAYS, len(case.bins) * FIVE_MINUTES // DAY - DAYS_BEFORE)


def _days(batch: Sequence[Case], model: str) -> PolicyBacktest:
    """The days of cases with one span and one length of history."""
    span, bins = batch[0].span, np.stack([case.bins for case in batch])
    reach, width = (span.lead_time + span.length) // MINUTE, MINUTES_A_POINT
    days = backtests(bins, width, to_come=0, reach=reach, days=JUDGED_DAYS, model=model, end=batch[0].end)
    if days is None:
        raise ValueError(f"{batch[0].id}: {batch[0].signal} has less than {MIN_HISTORY} days")
    days = _by_minutes(days, batch)
    by_quantile = batch[0].policy.sizing == "quantile"
    return at_stated_quantile(days, LEVELS, [case.policy for case in batch]) if by_quantile else days


def _by_minutes(days: PolicyBacktest, cases: Sequence[Case]) -> PolicyBacktest:
    """Replace five-minute means of the days by minutes where they are known."""
    demand, measured = days.demand.copy(), days.measured.copy()
    for row, case in enumerate(cases):
        count = min(len(case.minutes), demand.shape[1])
        if not count:
            continue
        latest = case.minutes[-count:]
        demand[row, -count:] = np.where(np.isnan(latest), demand[row, -count:], latest)
        measured[row, 1 - count :] = np.where(np.isnan(latest[:-1]), measured[row, 1 - count :], latest[:-1])
    return days._replace(demand=demand, measured=measured)


def judged_gates(gates: Gates, cases: Sequence[list[Case] | Unjudged], now: float, model: str) -> Gates:
    """The gates [row] after their cases were judged; a row that cannot be judged is observed, with the reason.

    The evidence is that of all the days, and again of the newer half of them: what does well on both acts at once.
    """
    gates = _without_days(gates, cases, now)
    judgements = judgements_of(
        [case for row_cases in cases if isinstance(row_cases, list) for case in row_cases], model
    )
    rows = [judgements[row_cases[0].id] if isinstance(row_cases, list) else [] for row_cases in cases]
    for part in range(2):
        gates = judged(gates, _evidence(gates, rows, part), now)
    return gates


def _without_days(gates: Gates, cases: Sequence[list[Case] | Unjudged], now: float) -> Gates:
    reasons = [row_cases if isinstance(row_cases, Unjudged) else Unjudged(np.int8(-1)) for row_cases in cases]
    if all(reason.verdict < 0 for reason in reasons):
        return gates
    return unjudged(
        gates,
        np.array([reason.verdict for reason in reasons], np.int8),
        now,
        days=np.array([reason.days for reason in reasons]),
        least_days=np.array([reason.least_days for reason in reasons]),
        signal=np.array([gates.signals.index(reason.signal) if reason.signal else -1 for reason in reasons]),
    )


def _evidence(gates: Gates, judgements: Sequence[Sequence[Judgement]], part: int) -> Evidence:
    """[target, row], as many targets as any row has."""
    targets, rows = max(map(len, judgements), default=0), len(judgements)
    nothing = np.full((targets, rows), np.nan)
    evidence = Evidence(
        days=nothing.copy(),
        reactive=nothing.copy(),
        short=np.full((len(FORECASTERS), targets, rows), np.nan),
        saving=np.full((len(FORECASTERS), targets, rows), np.nan),
        noise=np.full((len(FORECASTERS), targets, rows), np.nan),
        signal=np.full((targets, rows), -1),
    )
    for row, per_target in enumerate(judgements):
        for target, judgement in enumerate(per_target):
            _fill(evidence, target, row, judgement.rounds[part], judgement.place)
            evidence.signal[target, row] = gates.signals.index(judgement.case.signal)
    return evidence


def _fill(evidence: Evidence, target: int, row: int, past: PastEvidence, place: int) -> None:
    evidence.days[target, row], evidence.reactive[target, row] = past.days, past.reactive[place]
    for forecaster, records in enumerate((past.model, past.seasonal)):
        evidence.short[forecaster, target, row] = records.short[place]
        evidence.saving[forecaster, target, row] = records.saving[place]
        evidence.noise[forecaster, target, row] = records.noise[place]

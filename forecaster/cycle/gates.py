"""The gate of each workload, judged in turn: new workloads first, each once a day.

Judging is a replay of past days, which is cheap for many workloads at once: those that are due are collected for some
minutes. Forecasts that matured are scored with measured peaks.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.cycle.forecasts import Forecasts
from forecaster.cycle.rows import Fleet
from forecaster.cycle.targets import Targets
from forecaster.demand.alignment import rows_among
from forecaster.domain.decision import FORECAST_STATES
from forecaster.domain.policies import Policies
from forecaster.domain.report import ForecastScore
from forecaster.domain.signal import Signal
from forecaster.domain.window import MINUTE, Window
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.errors import unexpected
from forecaster.forecasting.peaks import LEVELS, MEDIAN, PeakForecasts, at_quantile
from forecaster.horizontal.columns import Counts
from forecaster.horizontal.gate_states import FORECASTERS, Gate, Gates
from forecaster.ports import Histories
from forecaster.replay.judging import Case, PastDemand, Unjudged, cases_of, judged_gates

NEW_JUDGED = 120
"""Workloads judged for the first time in one batch; after a start without state there are as many batches as fit."""
JUDGING_INTERVAL = 10 * MINUTE
"""Time between two rounds of judging: a replay of few workloads takes nearly as long as one of a hundred."""
BATCH = 96
"""Smallest number of workloads judged together, if as many are due: a small fleet is judged at once, every `SOONEST`.
"""
ROUND = timedelta(hours=19)
"""Time within which each workload has its turn; with `SOONEST` still less than a day."""
SOONEST = timedelta(hours=4)
"""No workload is judged again sooner: three days are hardly others by then."""
RETRY_INTERVAL = timedelta(hours=1)
"""After which one that could not be judged is looked at again: its history may have been filled up meanwhile."""


class RenewedGates(NamedTuple):
    """One sentence for each gate that moved, and one for each workload that could not be judged."""

    moved: list[str]
    failures: list[str]


@dataclass(slots=True)
class ForecastGates:
    """Gates of the workloads that need one by their policy; a new workload starts at the beginning.

    A workload that is absent for less than a day keeps its gate state.
    """

    most_new: int = NEW_JUDGED
    first: Callable[[WorkloadId], bool] = field(default=lambda _: False)
    """The workloads that are waited for."""
    model: str = "adaptive"
    fleet: Fleet = field(default_factory=Fleet)
    """Workload of each row."""
    gates: Gates = field(default_factory=lambda: Gates.new(0))
    latest: datetime | None = None
    """Instant of the last round of judging."""
    waiting: int = 0
    """New workloads that the last round had no time to look at."""
    records: dict[WorkloadId, Gate] = field(default_factory=dict)
    """Gates requested since then."""

    def of(self, id_: WorkloadId) -> Gate:
        """Return the gate of a workload, and keep it until gates are judged again: for the thread of the cycle."""
        if id_ not in self.records:
            self.records[id_] = self.read(id_)
        return self.records[id_]

    def read(self, id_: WorkloadId) -> Gate:
        """Return the gate of a workload as it is now."""
        row = self.fleet.row.get(id_)
        return Gate() if row is None else self.gates.gate(row)

    def states(self) -> Counter[tuple[str, str]]:
        """Workloads by the state of their forecast, and by forecaster."""
        codes = self.gates.states.astype(np.intp) * len(FORECASTERS) + self.gates.forecaster
        counts = np.bincount(codes, minlength=len(FORECAST_STATES) * len(FORECASTERS)).tolist()
        names = [(state.value, forecaster.value) for state in FORECAST_STATES for forecaster in FORECASTERS]
        return Counter({name: count for name, count in zip(names, counts, strict=True) if count})

    def judged(self, id_: WorkloadId) -> datetime | None:
        """Return when this workload was judged; None before the first time."""
        row = self.fleet.row.get(id_)
        at = np.nan if row is None else float(self.gates.judged_at[row])
        return None if np.isnan(at) else datetime.fromtimestamp(at, UTC)

    def restore(self, fleet: Fleet, gates: Gates) -> None:
        """Go on where an earlier process stood."""
        self.fleet, self.gates, self.records = fleet, gates, {}

    def renew(
        self,
        history: Histories,
        policies: Policies,
        targets: Targets,
        now: datetime,
        has_time: Callable[[], bool] = lambda: False,
    ) -> RenewedGates:
        """Judge workloads in turn, every few minutes, and those never judged in each cycle as long as it `has_time`.

        After a start without state no gate is judged: 10,000 of them take some minutes, and not a day.
        """
        done = RenewedGates([], [])
        if targets.down or (self.latest is not None and timedelta() < now - self.latest < JUDGING_INTERVAL):
            return done
        workloads = targets.inventory.workloads
        gated = {workload.id: workload for workload in workloads if policies.of(workload.id).horizontal.gate}
        self.records = {}
        rows = self._rows(list(gated), policies, now)
        past = PastDemand(history)

        def load_cases(id_: WorkloadId) -> list[Case] | Unjudged:
            return cases_of(gated[id_], policies.of(id_), past)

        first, again = self._turn(gated, rows, policies, now)
        new = deque(first)
        ready = self._ready(new, load_cases, done, now, most=self.most_new)
        ready |= self._ready(deque(again), load_cases, done, now, most=len(again))
        self._judge(ready, done, now)
        while new and has_time():
            self._judge(self._ready(new, load_cases, done, now, most=self.most_new), done, now)
        self.latest, self.waiting = None if new else now, len(new)
        return done

    def _rows(self, ids: Sequence[WorkloadId], policies: Policies, now: datetime) -> Counts:
        """Return the rows of these workloads; rows of workloads absent for more than a day are freed."""
        fitted = self.fleet.fitted(self.gates, ids, now)
        self.gates = fitted.table.covering(policies.signals.demand)
        return fitted.places

    def _turn(
        self, gated: Mapping[WorkloadId, Workload], rows: Counts, policies: Policies, now: datetime
    ) -> tuple[list[WorkloadId], list[WorkloadId]]:
        """New workloads, the most urgent first, and those that were judged longest ago."""

        def urgency(id_: WorkloadId) -> tuple[bool, bool, bool, WorkloadId]:
            return not self.first(id_), policies.of(id_).mode == "observe", gated[id_].autoscaler is None, id_

        at = now.timestamp()
        latest = at + SOONEST.total_seconds()  # a clock that was ahead stated later instants
        due = [
            (id_, float(self.gates.judged_at[row]))
            for id_, row in zip(gated, rows.tolist(), strict=True)
            if not at < self.gates.due[row] <= latest
        ]
        new = sorted((id_ for id_, judged in due if np.isnan(judged)), key=urgency)
        judged = [(judged, id_) for id_, judged in due if not np.isnan(judged)]
        in_turn = max(BATCH, -(-len(gated) * JUDGING_INTERVAL // ROUND))
        return new, [id_ for _, id_ in heapq.nsmallest(in_turn, judged)]

    def _ready(
        self,
        ids: deque[WorkloadId],
        load_cases: Callable[[WorkloadId], list[Case] | Unjudged],
        done: RenewedGates,
        now: datetime,
        *,
        most: int,
    ) -> dict[WorkloadId, list[Case]]:
        """Take workloads from `ids` until enough can be judged; record the reason for the others."""
        ready: dict[WorkloadId, list[Case]] = {}
        unjudged: dict[WorkloadId, Unjudged] = {}
        while ids and len(ready) < most:
            id_ = ids.popleft()
            try:
                cases = load_cases(id_)
            except Exception as error:  # noqa: BLE001  the boundary: what is wrong with one workload stops no other
                self._failed([id_], error, done, now)
                continue
            if isinstance(cases, list):
                ready[id_] = cases
            else:
                unjudged[id_] = cases
        self._move(unjudged, done, now)
        return ready

    def _judge(self, ready: Mapping[WorkloadId, list[Case]], done: RenewedGates, now: datetime) -> None:
        """All at once; when that fails one by one, so that it is known which is at fault."""
        try:
            self._move(ready, done, now)
        except Exception:  # noqa: BLE001  the boundary, as above
            for id_, cases in ready.items():
                try:
                    self._move({id_: cases}, done, now)
                except Exception as error:  # noqa: BLE001  the boundary, as above
                    self._failed([id_], error, done, now)

    def _move(self, answers: Mapping[WorkloadId, list[Case] | Unjudged], done: RenewedGates, now: datetime) -> None:
        if not answers:
            return
        rows = rows_among(answers, self.fleet.row)
        before = self.gates.take(rows)
        at, judged = now.timestamp(), np.array([isinstance(cases, list) for cases in answers.values()])
        after = replace(
            judged_gates(before, list(answers.values()), at, self.model),
            judged_at=np.where(judged, at, np.nan),
            due=at + np.where(judged, SOONEST.total_seconds(), RETRY_INTERVAL.total_seconds()),
        )
        self.gates = self.gates.put(rows, after)
        moved = (before.standing != after.standing) | (before.forecaster != after.forecaster)
        for place, id_ in enumerate(answers):
            if moved[place]:
                gate, earlier = after.gate(place), before.gate(place)
                to = f"to {gate.state}" if gate.state is not earlier.state else f"now by {gate.forecaster}"
                done.moved.append(f"{id_}: {earlier.state} {to}, {gate.why}")

    def _failed(self, ids: Iterable[WorkloadId], error: Exception, done: RenewedGates, now: datetime) -> None:
        for id_ in ids:
            done.failures.append(f"{id_}: its decisions could not be judged: {unexpected(error)}")
            self.gates.due[self.fleet.row[id_]] = (now + RETRY_INTERVAL).timestamp()


# Scores: forecasts that matured, beside what was measured.


SCORING_ROUNDS = 10
"""One in this number of a cycle's forecasts is scored, in turn: enough to judge, cheap to hold for hours and to store.
"""
_MEDIAN = LEVELS.index(MEDIAN)
MIN_KNOWN_SHARE = 0.5
"""A peak counts as measured when at least this share of its minutes is known."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Forecasts that wait for their time."""

    made_at: datetime
    signal: Signal
    peaks: PeakForecasts


@dataclass(slots=True)
class Scoring:
    """Keeps forecasts until they mature."""

    pending: list[Pending] = field(default_factory=list)
    turn: int = 0

    def matured(
        self, history: Histories, forecasts: Forecasts, policies: Policies, now: datetime
    ) -> list[ForecastScore]:
        """Score the forecasts with a window that is over, then add this cycle's.

        Of these only those that will be scored are kept: an owner may look half a day ahead. Where the clock was set
        back, those that were made later than now are dropped: they would wait as long.
        """
        self.turn = (self.turn + 1) % SCORING_ROUNDS
        ripe = [forecast for forecast in self.pending if forecast.peaks.until <= now]
        self.pending = [forecast for forecast in self.pending if forecast.made_at <= now < forecast.peaks.until]
        self.pending += [
            Pending(now, signal, peaks.sample(self.turn, SCORING_ROUNDS))
            for signal, spans in forecasts.peaks.items()
            for peaks in spans.values()
        ]
        windows = {signal: history.window(signal, MINUTE) for signal in {forecast.signal for forecast in ripe}}
        return [score for forecast in ripe for score in self._scores(forecast, windows[forecast.signal], policies, now)]

    def _scores(self, pending: Pending, window: Window, policies: Policies, now: datetime) -> Iterator[ForecastScore]:
        peaks = pending.peaks
        chosen = [id_ for id_ in peaks.ids if id_ in window.row]
        actual = measured_peaks(window, rows_among(chosen, window.row), peaks.begin, peaks.until).tolist()
        quantiles = np.array([policies.of(id_).horizontal.quantile for id_ in chosen])
        rows = rows_among(chosen, peaks.place)
        upper = at_quantile(peaks.values[rows].T, quantiles)
        for place, (id_, row) in enumerate(zip(chosen, rows.tolist(), strict=True)):
            if not np.isnan(actual[place]):
                yield ForecastScore(
                    id=id_,
                    signal=pending.signal,
                    made_at=pending.made_at,
                    matured_at=now,
                    model=peaks.models[peaks.model[row]],
                    quantile=float(quantiles[place]),
                    median=float(peaks.values[row, _MEDIAN]),
                    upper=float(upper[place]),
                    actual=actual[place],
                )


def measured_peaks(window: Window, rows: NDArray[np.intp], begin: datetime, until: datetime) -> NDArray[np.float32]:
    """Largest value of each of these rows in (begin, until]; NaN where too few minutes are known."""
    first = (begin - window.start) // window.step + 1
    last = (until - window.start) // window.step + 1
    if first < 0 or last > window.values.shape[1] or first >= last:
        return np.full(len(rows), np.nan, np.float32)
    columns = window.values[rows, first:last]
    known = np.count_nonzero(~np.isnan(columns), axis=1)
    peaks: NDArray[np.float32] = np.fmax.reduce(columns, axis=1)
    return np.where(known >= MIN_KNOWN_SHARE * columns.shape[1], peaks, np.float32(np.nan))

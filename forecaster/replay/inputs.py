"""Inputs of the decisions of many runs, minute by minute, prepared in blocks of minutes.

Rows are runs that are decided together; what does not change is made once, and a minute is a view of a block.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from forecaster.domain.window import MINUTE
from forecaster.forecasting.peaks import LOW
from forecaster.horizontal.columns import Codes, Counts, Flags, Floats
from forecaster.horizontal.events import EventCalendar
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.lead_time import lead_time
from forecaster.horizontal.row import KNOWN, NO_SAMPLE, NOT_READ, STALE
from forecaster.horizontal.terms import Terms, policy_columns, target_columns, terms_of
from forecaster.replay.account import Run
from forecaster.replay.forecasts import ReplayForecasts
from forecaster.replay.pods import Pods
from forecaster.replay.traces import Measurements

INPUT_BLOCK = 120
"""Minutes that are prepared together: 4 MB for each column of a chunk."""


def terms_of_run(run: Run) -> Terms | None:
    """The rules and numbers that a run decides by; None without a policy."""
    if run.policy is None:
        return None
    levels = run.forecasts.levels if run.forecasts else ()
    return terms_of(run.workload, run.policy.horizontal, levels, run.policy.max_sample_age)


def rows_of(places: Sequence[int]) -> Counts | slice:
    """Places to index by; a slice, which copies nothing, where they are neighbours."""
    first = places[0]
    if list(places) == list(range(first, first + len(places))):
        return slice(first, first + len(places))
    return np.array(places, np.int64)


class DecisionInputs:
    """The inputs of some runs with the same rules."""

    def __init__(self, runs: Sequence[Run], terms: Sequence[Terms], measurements: Measurements) -> None:
        policies = [run.policy for run in runs if run.policy is not None]
        self._runs, self._measurements = runs, measurements
        self._rules, self._policy, self._targets = terms[0].rules, policy_columns(terms), target_columns(terms)
        self._series = rows_of([run.series for run in runs])
        self._parts = list(_parts(runs, self._policy["quantile"]))
        self._oldest = np.array([policy.max_sample_age // MINUTE for policy in policies])
        self._min_history = np.array([-(-policy.min_history // MINUTE) for policy in policies])
        rules = [policy.horizontal for policy in policies]
        self._calendar = EventCalendar([each.events for each in rules], [lead_time(each).value for each in rules])
        self._acting = _acting(runs, measurements.minutes)
        self._never, self._nothing_lost = np.zeros(len(runs), np.bool_), np.zeros(len(runs))
        self._first, self._block = 0, self._prepared(0)

    def at(self, minute: int, pods: Pods) -> Inputs:
        """Return the inputs of one minute with these pods; minutes come in order."""
        if minute >= self._first + INPUT_BLOCK:
            self._first, self._block = minute, self._prepared(minute)
        block, place = self._block, minute - self._first
        return Inputs(
            rules=self._rules,
            policy=self._policy,
            targets=self._targets,
            current=pods.desired,
            ready=pods.ready,
            measured=block.measured[place],
            unseen=block.unseen[place],
            age=block.age[place],
            peak=block.peak[place],
            low=block.low[place],
            quantiles=self._quantiles(minute, block.foreseeable[place]),
            acting=self._acting[minute],
            events=self._calendar.at(self._measurements.instant(minute)),
            lost=self._nothing_lost,
            unreadable=self._never,
        )

    def _prepared(self, first: int) -> InputBlock:
        span = slice(first, min(first + INPUT_BLOCK, self._measurements.minutes))
        shape = (span.stop - span.start, len(self._rules.kinds), len(self._runs))
        block = InputBlock(
            measured=np.full(shape, np.nan),
            unseen=np.full(shape, NOT_READ, np.int8),
            age=np.full(shape, np.nan),
            peak=np.full(shape, np.nan),
            low=np.full(shape, np.nan),
            foreseeable=np.zeros(shape, np.bool_),
        )
        for target, kind in enumerate(self._rules.kinds):
            if kind.signal in self._measurements.latest:
                self._measure(block, target, kind.signal, span)
            block.peak[:, target] = self._peaks(block, target, kind.signal, span)
            if "outage_hold" in self._policy.in_use:
                block.low[:, target] = self._peaks(block, target, kind.signal, span, LOW)
        return block

    def _measure(self, block: InputBlock, target: int, signal: str, span: slice) -> None:
        values, age, known = (array[span, self._series] for array in self._measurements.latest[signal])
        old, silent = age > self._oldest, np.isnan(values)
        block.measured[:, target] = np.where(old, np.nan, values)
        block.unseen[:, target] = np.where(silent, np.int8(NO_SAMPLE), np.where(old, np.int8(STALE), np.int8(KNOWN)))
        block.age[:, target] = np.where(silent, np.nan, age * MINUTE.total_seconds())
        block.foreseeable[:, target] = known >= self._min_history

    def _peaks(self, block: InputBlock, target: int, signal: str, span: slice, level: float | None = None) -> Floats:
        """[minute, row] at each row's quantile, or at one level; NaN where nothing is forecast."""
        peaks = np.full((span.stop - span.start, len(self._runs)), np.nan)
        for part in self._parts:
            peak = part.forecasts.peak(signal, part.quantile if level is None else level, span, part.series)
            if peak is not None:
                peaks[:, part.rows] = peak
        allowed = block.foreseeable[:, target]
        return peaks if allowed.all() else np.where(allowed, peaks, np.nan)

    def _quantiles(self, minute: int, foreseeable: Flags) -> list[Floats]:
        """[target][level, row]."""
        if not self._rules.levels:
            return []
        pairs = zip(self._rules.kinds, foreseeable, strict=True)
        return [self._distribution(kind.signal, minute, allowed) for kind, allowed in pairs]

    def _distribution(self, signal: str, minute: int, allowed: Flags) -> Floats:
        first = self._parts[0]
        if len(self._parts) == 1 and signal in first.forecasts.values:
            quantiles = first.forecasts.values[signal][minute][:, first.series]
        else:
            quantiles = np.full((len(self._rules.levels), len(self._runs)), np.nan)
            for part in self._parts:
                if signal in part.forecasts.values:
                    quantiles[:, part.rows] = part.forecasts.values[signal][minute][:, part.series]
        return quantiles if allowed.all() else np.where(allowed, quantiles, np.nan)


class InputBlock(NamedTuple):
    """Inputs of some minutes, [minute, target, row] each; as in `Inputs`."""

    measured: Floats
    unseen: Codes
    age: Floats
    peak: Floats
    low: Floats
    foreseeable: Flags
    """Whether there is enough history for a forecast."""


class Part(NamedTuple):
    """Rows that read one model's forecasts at one quantile, and their series."""

    forecasts: ReplayForecasts
    quantile: float
    rows: Counts | slice
    series: Counts | slice


def _parts(runs: Sequence[Run], quantiles: Floats) -> Iterator[Part]:
    groups: dict[tuple[int, float], list[int]] = defaultdict(list)
    for row, (run, quantile) in enumerate(zip(runs, quantiles.tolist(), strict=True)):
        if run.forecasts is not None:
            groups[id(run.forecasts), quantile].append(row)
    for (_, quantile), rows in groups.items():
        forecasts = runs[rows[0]].forecasts
        if forecasts is not None:
            yield Part(forecasts, quantile, rows_of(rows), rows_of([runs[row].series for row in rows]))


def _acting(runs: Sequence[Run], minutes: int) -> Flags:
    """[minute, row] whether the forecast acts: always where nothing is gated."""
    always = np.ones(minutes, np.bool_)
    if all(run.acting is None for run in runs):
        return np.broadcast_to(always[:, None], (minutes, len(runs)))
    gated = [run.acting is not None and run.policy is not None and run.policy.horizontal.gate for run in runs]
    columns = [run.acting if gate and run.acting is not None else always for gate, run in zip(gated, runs, strict=True)]
    return np.stack(columns, axis=1)

"""What is known of every signal, as columns over the rows of a cycle: latest demand, and the peak that is forecast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from forecaster.cycle.rows import corrects
from forecaster.demand.completeness import COMPLETE
from forecaster.demand.fresh import DemandContext, fresh
from forecaster.demand.latest import DayAgo, Latest, LatestBook, latest
from forecaster.domain.amounts import duration_text
from forecaster.domain.outlook import PeakForecast, SignalForecast, Unknown
from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.errors import unexpected
from forecaster.forecasting.peaks import LEVELS, LOW
from forecaster.horizontal.codes import INCOMPLETE, KNOWN, NO_SAMPLE, STALE
from forecaster.horizontal.columns import mixed
from forecaster.horizontal.quantile import Coverage, Level, stated_quantile
from forecaster.horizontal.standing import GateForecaster

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.cycle.rows import Row, Rows
    from forecaster.demand.censored import ThrottledTime
    from forecaster.demand.fresh import FreshHistory
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.forecasting.forecaster import Forecaster, PeakSpan
    from forecaster.forecasting.peaks import PeakForecasts
    from forecaster.ports import Histories

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int8]
    Positions = NDArray[np.intp]

RECENT_SPAN = timedelta(hours=3)
"""What models and decisions read by the minute; what is kept beyond is for the gate."""
NEVER: Mapping[WorkloadId, Sequence[ThrottledTime]] = MappingProxyType({})
"""Throttled times where none are known."""
UTC_ALONE: Mapping[WorkloadId, str] = MappingProxyType({})
"""Time zones of a fleet that lives by UTC."""
NO_BOOKS: Mapping[str, LatestBook] = MappingProxyType({})
"""No latest values: all that is known is history."""
_LOW = LEVELS.index(LOW)
Number = TypeVar("Number", np.float64, np.int64, np.int32, np.int8)


@dataclass(frozen=True, slots=True)
class Demands:
    """Latest demand by signal, and usage with what makes demand of it."""

    latest: Mapping[Signal, Latest] = field(default_factory=dict)
    usage: Mapping[Signal, FreshHistory] = field(default_factory=dict)


def demands_of(
    history: Histories,
    rows: Rows,
    throttled: Mapping[WorkloadId, Sequence[ThrottledTime]] = NEVER,
    books: Mapping[str, LatestBook] = NO_BOOKS,
) -> Demands:
    """What is known of the present; books know what is no history because it is incomplete."""
    usage = usage_of(history, rows.standing.driven, rows.workloads, throttled, rows.standing.zones)
    found = {one: latest(history.window(one, MINUTE).newest(RECENT_SPAN), books.get(one)) for one in history.signals}
    return Demands(found, usage)


@dataclass(frozen=True, slots=True)
class Forecasts:
    """What this cycle knows of all workloads: latest demand and forecast peaks by signal."""

    latest: Mapping[Signal, Latest] = field(default_factory=dict)
    peaks: Mapping[Signal, Mapping[PeakSpan, PeakForecasts]] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    """Why some forecasts are missing, one sentence each."""
    day_ago: Mapping[Signal, DayAgo] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    """How often earlier forecasts held."""

    def of(self, id_: WorkloadId, row: Row, forecaster: GateForecaster = GateForecaster.MODEL) -> SignalForecasts:
        """Each signal of one workload under its policy, with the forecast of the model that the gate chose."""
        return SignalForecasts(self, id_, row, forecaster)

    def series(self) -> dict[Signal, int]:
        """Workloads with history, by signal; signals of containers are absent where no HPA names any."""
        return {signal: len(seen.row) for signal, seen in self.latest.items() if seen.row or not signal.of_container}

    def ages(self) -> dict[Signal, float]:
        """Seconds since the latest sample of any workload; signals without one are absent."""
        ages = {signal: seen.age() for signal, seen in self.latest.items()}
        return {signal: age.total_seconds() for signal, age in ages.items() if age is not None}


def forecasts_of(
    forecaster: Forecaster,
    rows: Rows,
    demands: Demands,
    history: Histories,
    now: datetime,
    coverage: Coverage,
) -> Forecasts:
    """Return latest values and forecasts by the fitted models.

    A signal has no forecast, with the reason, where it fails as a whole; the others go on.
    """
    peaks, failures = {}, []
    for signal, wanted in rows.standing.driven.items():
        try:
            peaks[signal] = forecaster.peaks_by_span(signal, demands.usage[signal], wanted, now, learn=False)
        except Exception as error:  # noqa: BLE001  a boundary by signal
            failures.append(f"forecast of {signal}: {unexpected(error)}")
    zones = rows.standing.zones
    weeks = {signal: DayAgo(history.window(signal, FIVE_MINUTES), zones) for signal in peaks}
    return Forecasts(demands.latest, peaks, (*failures, *forecaster.failures()), weeks, coverage)


class Columns(NamedTuple):
    """One signal of all rows of a cycle, [row] if nothing else is said; NaN where it is not known."""

    measured: Floats
    """Latest demand that is fresh enough."""
    unseen: Codes
    """Why there is none (`horizontal.codes`)."""
    age: Floats
    """Seconds since the latest sample."""
    peak: Floats
    """The coming peak at the quantile of the policy."""
    low: Floats
    """10 % quantile of the peak."""
    quantiles: Floats
    """[level, row] its distribution."""
    words: NDArray[np.uint64]
    """A number that changes when what is said of the signal beside these numbers does (`SignalForecasts`)."""


def columns_of(
    signal: Signal, forecasts: Forecasts, rows: Rows, quantile: Floats, seasonal: Sequence[int], now: float
) -> Columns:
    """One signal as columns at `now`, in epoch seconds; rows in `seasonal` take yesterday's load for their forecast."""
    standing, seen = rows.standing, forecasts.latest[signal]
    at = positions(seen.row, rows.ids)
    measured, unseen, age = _measured(seen, at, standing.max_sample_age)
    known = np.where(at >= 0, _taken(seen.known, at) * seen.step.total_seconds(), 0.0)
    quantiles = np.full((len(LEVELS), len(rows.ids)), np.nan)
    words = _part_words(seen, at, age)
    for span, peaks in forecasts.peaks.get(signal, {}).items():
        members = standing.spans.get(span)
        if members is None:
            continue
        places = peaks.rows_of([rows.ids[row] for row in members.tolist()])
        _lay(quantiles, members, peaks.values, places)
        words[members] = mixed(words[members], _peak_words(peaks, places, now))
        chosen = [row for row in seasonal if rows.rows[row].span == span]
        _lay_day_ago(quantiles, chosen, forecasts.day_ago[signal], peaks, rows.ids)
    short = known < standing.least_history
    quantiles[:, short] = np.nan
    level, why = _levels(signal, forecasts, rows, quantile)
    words = mixed(words, (np.where(short, known, 0.0), why, np.bincount(seasonal, minlength=len(rows.ids))))
    peak = at_quantile(quantiles, level)
    return Columns(measured, unseen, age, peak, quantiles[_LOW], quantiles, words)


def positions(row: Mapping[WorkloadId, int], ids: Sequence[WorkloadId]) -> Positions:
    """Return the position of each workload; -1 where it is absent."""
    return np.fromiter((row.get(id_, -1) for id_ in ids), np.intp, len(ids))


def _taken(values: NDArray[Number], at: Positions) -> NDArray[Number]:
    return values[np.maximum(at, 0)] if len(values) else np.zeros(len(at), values.dtype)


def _measured(seen: Latest, at: Positions, limit: Floats) -> tuple[Floats, Codes, Floats]:
    silent = np.where(at >= 0, _taken(seen.silent, at), seen.columns)
    age = np.where(silent < seen.columns, silent * seen.step.total_seconds(), np.nan)
    absent, stale = np.isnan(age), age > limit
    unseen = np.where(absent, np.int8(NO_SAMPLE), np.where(stale, np.int8(STALE), np.int8(KNOWN)))
    measured = np.where(absent | stale, np.nan, _taken(seen.values, at))
    return _with_parts(seen, at, limit, (measured, unseen, age))


def _with_parts(
    seen: Latest, at: Positions, limit: Floats, whole: tuple[Floats, Codes, Floats]
) -> tuple[Floats, Codes, Floats]:
    """Add incomplete values that are later, where they are larger or nothing else is fresh (`Latest.measured`)."""
    measured, unseen, age = whole
    if seen.parts is None or not seen.parts.code.any():
        return whole
    part, silent = _taken(seen.parts.values, at), _taken(seen.parts.silent, at) * seen.step.total_seconds()
    there = (at >= 0) & (_taken(seen.parts.code, at) != COMPLETE) & (silent <= limit) & ~np.isnan(part)
    acts = there & ~(part <= measured)
    return np.where(acts, part, measured), np.where(acts, np.int8(INCOMPLETE), unseen), np.where(acts, silent, age)


def _part_words(seen: Latest, at: Positions, age: Floats) -> NDArray[np.uint64]:
    """[row] a number that changes when what is said of a measurement that is not all there is does."""
    words = np.zeros(len(at), np.uint64)
    if seen.parts is None or not seen.parts.code.any():
        return words
    there = (at >= 0) & (_taken(seen.parts.code, at) != COMPLETE)
    columns = (_taken(seen.parts.code, at), _taken(seen.parts.seen, at), _taken(seen.parts.of, at), age)
    return np.where(there, mixed(words, columns), words)


def _peak_words(peaks: PeakForecasts, at: Positions, now: float) -> Iterator[NDArray[np.generic]]:
    """Numbers [row] that change when another model speaks, something else is said of it, or of another window."""
    for names, codes in ((peaks.models, peaks.model), (peaks.notes, peaks.note)):
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        yield np.where(at >= 0, hashes[_taken(codes, at)], -1)
    for instant in (peaks.begin, peaks.until):
        yield np.full(len(at), instant.timestamp() - now)


def _lay(quantiles: Floats, members: Positions, values: Floats, at: Positions) -> None:
    there = at >= 0
    quantiles[:, members[there]] = values[at[there]].T


def _lay_day_ago(
    quantiles: Floats, chosen: Sequence[int], day_ago: DayAgo, peaks: PeakForecasts, ids: Sequence[WorkloadId]
) -> None:
    """Yesterday's load knows no spread: all quantiles are the same."""
    for row in chosen:
        peak = day_ago.peak(ids[row], peaks.begin, peaks.until)
        quantiles[:, row] = np.nan if peak is None else peak


def _levels(signal: Signal, forecasts: Forecasts, rows: Rows, quantile: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """[row] the level to ask for: the policy's quantile, corrected where the policy says so; and a number of why."""
    level, why = quantile, np.zeros(len(quantile), np.int64)
    if rows.standing.corrected:
        level = quantile.copy()
    for row in rows.standing.corrected:
        found = forecasts.coverage.level(rows.ids[row], signal, float(quantile[row]))
        level[row], why[row] = found.value, hash(found.why)
    return level, why


def at_quantile(quantiles: Floats, level: Floats) -> Floats:
    """[row] the value at each row's level: linear between the two levels around it, flat beyond the outer ones."""
    found = np.empty(quantiles.shape[1])
    for one in np.unique(level).tolist():
        rows = np.flatnonzero(level == one) if len(level) and not (level == one).all() else slice(None)
        found[rows] = _at(quantiles[:, rows], one)
    return found


def _at(quantiles: Floats, level: float) -> Floats:
    right = int(np.searchsorted(LEVELS, level))
    if right < len(LEVELS) and LEVELS[right] == level:
        return np.asarray(quantiles[right])
    if right in {0, len(LEVELS)}:
        return np.asarray(quantiles[min(right, len(LEVELS) - 1)])
    left = right - 1
    slope = (quantiles[right] - quantiles[left]) / (LEVELS[right] - LEVELS[left])
    return np.asarray(slope * (level - LEVELS[left]) + quantiles[left])


@dataclass(frozen=True, slots=True)
class SignalForecasts(Mapping[str, SignalForecast]):
    """The signals of one workload as its record shows them, each made when it is asked for."""

    forecasts: Forecasts
    id: WorkloadId
    row: Row
    forecaster: GateForecaster = GateForecaster.MODEL

    def __getitem__(self, name: str) -> SignalForecast:
        signal = next(one for one in self.forecasts.latest if one == name)
        measured = self.forecasts.latest[signal].measured(self.id, self.row.policy.max_sample_age)
        return SignalForecast(signal, measured, self._ahead(signal))

    def __iter__(self) -> Iterator[str]:
        return iter(self.forecasts.latest)

    def __len__(self) -> int:
        return len(self.forecasts.latest)

    def _ahead(self, signal: Signal) -> PeakForecast | Unknown:
        policy, span = self.row.policy, self.row.span
        known, least = self.forecasts.latest[signal].span(self.id), max(policy.min_history, self.row.lead_time)
        if known < least:
            return Unknown(f"{duration_text(known)} of history; {duration_text(least)} is the least")
        peaks = self.forecasts.peaks.get(signal, {}).get(span)
        if not peaks:
            return Unknown("no forecast was made")
        if self.forecaster is GateForecaster.SEASONAL:
            return self._day_ago(signal, peaks)
        quantile = stated_quantile(policy.horizontal)
        level = self.forecasts.coverage.level(self.id, signal, quantile) if corrects(policy) else Level(quantile)
        ahead = peaks.ahead(self.id, level.value)
        if not level.why or not isinstance(ahead, PeakForecast):
            return ahead
        return replace(ahead, quantile=quantile, note="; ".join(filter(None, (ahead.note, level.why))))

    def _day_ago(self, signal: Signal, peaks: PeakForecasts) -> PeakForecast | Unknown:
        """Return the same window a day before as a certain value: seasonal naive has no spread."""
        peak = self.forecasts.day_ago[signal].peak(self.id, peaks.begin, peaks.until)
        if peak is None:
            return Unknown("nothing is known of yesterday")
        quantile, same = stated_quantile(self.row.policy.horizontal), (peak,) * len(LEVELS)
        return PeakForecast(
            "seasonal-naive-day", quantile, peak, peak, peak, peak, peaks.begin, peaks.until, "", LEVELS, same
        )


def usage_of(
    history: Histories,
    signals: Iterable[Signal],
    workloads: Iterable[Workload],
    throttled: Mapping[WorkloadId, Sequence[ThrottledTime]],
    zones: Mapping[WorkloadId, str] = UTC_ALONE,
) -> dict[Signal, FreshHistory]:
    """Weeks up to the newest minute of these signals; `zones` has the workloads in other time zones than UTC."""
    pods, here = _cut(history, PODS), {one.id: one for one in workloads}
    cut = {signal: _cut(history, signal, DemandContext(signal, pods, here, throttled)) for signal in signals}
    return {signal: replace(fresh, zones=zones) for signal, fresh in cut.items()} if zones else cut


def _cut(history: Histories, signal: Signal, around: DemandContext | None = None) -> FreshHistory:
    return fresh(history.window(signal, FIVE_MINUTES), history.window(signal, MINUTE).newest(RECENT_SPAN), around)

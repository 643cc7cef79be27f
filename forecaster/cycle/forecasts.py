"""Columns over the rows of a cycle, by signal: latest demand, and the forecast peak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.demand.completeness import COMPLETE
from forecaster.demand.fresh import DemandContext, FreshHistory, fresh
from forecaster.demand.latest import DayAgo, Latest, LatestCache, latest
from forecaster.domain.amounts import duration_text
from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.errors import unexpected
from forecaster.forecasting.peaks import LEVELS, LOW, NO_HISTORY_YET, PeakForecasts, at_quantile
from forecaster.horizontal.row import INCOMPLETE, KNOWN, NO_SAMPLE, STALE, ForecastDetails

if TYPE_CHECKING:
    from forecaster.cycle.rows import Rows
    from forecaster.demand.censored import ThrottledTime
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.forecasting.forecaster import Forecaster, PeakSpan
    from forecaster.horizontal.columns import Names
    from forecaster.ports import Histories

    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Codes = NDArray[np.int8]
    Positions = NDArray[np.intp]

RECENT_SPAN = timedelta(hours=3)
"""Span that models and decisions read by the minute; older minutes are stored for the gate."""
NEVER: Mapping[WorkloadId, Sequence[ThrottledTime]] = MappingProxyType({})
"""Throttled times where none are known."""
UTC_ALONE: Mapping[WorkloadId, str] = MappingProxyType({})
"""Time zones of a fleet that lives by UTC."""
NO_CACHES: Mapping[str, LatestCache] = MappingProxyType({})
"""No latest values beside history."""
_LOW = LEVELS.index(LOW)
NOT_MADE, NO_DAY_AGO, SEASONAL_MODEL = "no forecast was made", "no demand of yesterday is known", "seasonal-naive-day"
_details_encoder = msgspec.msgpack.Encoder()
Number = TypeVar("Number", np.float64, np.int64, np.int32, np.int8)


@dataclass(frozen=True, slots=True)
class Demands:
    """Latest demand by signal, and usage with the context that turns it into demand."""

    latest: Mapping[Signal, Latest] = field(default_factory=dict)
    usage: Mapping[Signal, FreshHistory] = field(default_factory=dict)


def demands_of(
    history: Histories,
    rows: Rows,
    throttled: Mapping[WorkloadId, Sequence[ThrottledTime]] = NEVER,
    latest_caches: Mapping[str, LatestCache] = NO_CACHES,
) -> Demands:
    """Read the latest demand; `latest_caches` has incomplete values, which history leaves out."""
    usage = usage_of(history, rows.static.driven, rows.workloads, throttled, rows.static.zones)
    recent = {signal: history.window(signal, MINUTE).latest(RECENT_SPAN) for signal in history.signals}
    return Demands({signal: latest(window, latest_caches.get(signal)) for signal, window in recent.items()}, usage)


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Knowledge of one cycle about all workloads: latest demand and forecast peaks by signal."""

    latest: Mapping[Signal, Latest] = field(default_factory=dict)
    peaks: Mapping[Signal, Mapping[PeakSpan, PeakForecasts]] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    """Reasons for missing forecasts, one sentence each."""
    day_ago: Mapping[Signal, DayAgo] = field(default_factory=dict)

    def series(self) -> dict[Signal, int]:
        """Workloads with history, by signal; signals of containers are absent where no HPA names any."""
        rows = {signal: len(latest.row) for signal, latest in self.latest.items()}
        return {signal: count for signal, count in rows.items() if count or not signal.of_container}

    def ages(self) -> dict[Signal, float]:
        """Seconds since the latest sample of any workload, by signal; signals without samples are absent."""
        ages = {signal: latest.age() for signal, latest in self.latest.items()}
        return {signal: age.total_seconds() for signal, age in ages.items() if age is not None}


def forecasts_of(forecaster: Forecaster, rows: Rows, demands: Demands, history: Histories, now: datetime) -> Forecasts:
    """Return latest values and forecasts by the fitted models.

    A signal has no forecast, with the reason, where it fails as a whole; the others go on.
    """
    peaks, failures = {}, []
    for signal, spans in rows.static.driven.items():
        try:
            peaks[signal] = forecaster.peaks_by_span(signal, demands.usage[signal], spans, now, learn=False)
        except Exception as error:  # noqa: BLE001  a boundary by signal
            failures.append(f"forecast of {signal}: {unexpected(error)}")
    weeks = {signal: DayAgo(history.window(signal, FIVE_MINUTES), rows.static.zones) for signal in peaks}
    return Forecasts(demands.latest, peaks, (*failures, *forecaster.failures()), weeks)


class Columns(NamedTuple):
    """Columns of one signal, [row] unless stated otherwise; NaN where a value is not known."""

    measured: Floats
    """Latest demand that is fresh enough."""
    unseen: Codes
    """Code of the reason for a missing value (`horizontal.row`)."""
    age: Floats
    """Seconds since the latest sample."""
    peak: Floats
    """The coming peak at the quantile of the policy."""
    low: Floats
    """10 % quantile of the peak."""
    quantiles: Floats
    """[level, row] its distribution."""
    partly: Flags
    """Whether an incomplete measurement is known beside a complete one."""
    details: NDArray[np.int32]
    """Position of the encoded `ForecastDetails`, the description of the forecast, in the names of the cycle."""


class ColumnRequest(NamedTuple):
    """Quantiles, rows and instant of the forecasts of a cycle, and the names to which their texts go."""

    quantile: Floats
    """[row] quantile of the policy."""
    seasonal: Sequence[int]
    """Rows that take yesterday's load for their forecast."""
    now: float
    """Epoch seconds."""
    names: Names


def columns_of(signal: Signal, forecasts: Forecasts, rows: Rows, request: ColumnRequest) -> Columns:
    """Return one signal as columns."""
    static, latest = rows.static, forecasts.latest[signal]
    at = static.aligned[signal].of(rows.ids, latest.row)
    measured, unseen, age = _measured(latest, at, static.max_sample_age)
    known = np.where(at >= 0, _taken(latest.known, at) * latest.step.total_seconds(), 0.0)
    quantiles = np.full((len(LEVELS), len(rows.ids)), np.nan)
    details = ForecastDetailCodes(request.names, len(rows.ids), request.now)
    spans = [
        (static.spans[span], static.aligned[signal, span].of(static.members[span], peaks.place), peaks)
        for span, peaks in forecasts.peaks.get(signal, {}).items()
        if span in static.spans
    ]
    within = _lay(quantiles, details, spans)
    for row in request.seasonal:
        if within[row] >= 0:
            peaks = spans[within[row]][-1]
            _lay_day_ago(quantiles, row, forecasts.day_ago[signal], peaks, rows.ids)
            details.of_day_ago(row, np.isnan(quantiles[0, row]), peaks)
    short = known < static.least_history
    quantiles[:, short] = np.nan
    details.of_short(np.flatnonzero(short), known, static.least_history)
    peak = at_quantile(quantiles, request.quantile)
    return Columns(measured, unseen, age, peak, quantiles[_LOW], quantiles, _partly(latest, at), details.codes)


def _taken(values: NDArray[Number], at: Positions) -> NDArray[Number]:
    return values[np.maximum(at, 0)] if len(values) else np.zeros(len(at), values.dtype)


def _measured(latest: Latest, at: Positions, limit: Floats) -> tuple[Floats, Codes, Floats]:
    silent = np.where(at >= 0, _taken(latest.silent, at), latest.columns)
    age = np.where(silent < latest.columns, silent * latest.step.total_seconds(), np.nan)
    absent, stale = np.isnan(age), age > limit
    unseen = np.where(absent, np.int8(NO_SAMPLE), np.where(stale, np.int8(STALE), np.int8(KNOWN)))
    return _with_parts(latest, at, limit, (np.where(absent | stale, np.nan, _taken(latest.values, at)), unseen, age))


def _with_parts(
    latest: Latest, at: Positions, limit: Floats, whole: tuple[Floats, Codes, Floats]
) -> tuple[Floats, Codes, Floats]:
    """Add later incomplete values where they are larger or no other value is fresh (`Latest.measured`)."""
    measured, unseen, age = whole
    if latest.parts is None or not latest.parts.code.any():
        return whole
    part, silent = (_taken(latest.parts.values, at), _taken(latest.parts.silent, at) * latest.step.total_seconds())
    there = (at >= 0) & (_taken(latest.parts.code, at) != COMPLETE) & (silent <= limit) & ~np.isnan(part)
    acts = there & ~(part <= measured)
    return np.where(acts, part, measured), np.where(acts, np.int8(INCOMPLETE), unseen), np.where(acts, silent, age)


def _partly(latest: Latest, at: Positions) -> Flags:
    """[row] whether anything incomplete is known."""
    if latest.parts is None:
        return np.zeros(len(at), np.bool_)
    return np.asarray((at >= 0) & (_taken(latest.parts.code, at) != COMPLETE))


class ForecastDetailCodes:
    """Descriptions of the forecasts of one signal [row], as positions in the names of the cycle."""

    def __init__(self, names: Names, rows: int, now: float) -> None:
        self._names, self._now = names, now
        self.codes = np.full(rows, self._code(ForecastDetails(NOT_MADE)), np.int32)

    def _code(self, details: ForecastDetails) -> int:
        return self._names[_details_encoder.encode(details)]

    def _window(self, peaks: PeakForecasts) -> tuple[float, float]:
        return peaks.begin.timestamp() - self._now, peaks.until.timestamp() - self._now

    def of_peaks(self, made: Sequence[PeakForecasts], within: Positions, note: Positions, model: Positions) -> None:
        """Name model, window and note of forecasts, or the reason why there is none; equal rows are named together.

        `within` has the position of each row's forecasts among `made`, -1 for none.
        """
        rows = np.flatnonzero(within >= 0)
        width, notes = int(model.max(initial=0)) + 1, int(note.max(initial=0)) + 2
        each, inverse = np.unique((within[rows] * notes + note[rows] + 1) * width + model[rows], return_inverse=True)
        named = []
        for key in each.tolist():
            (place, noted), by = divmod(key // width, notes), key % width
            named.append(self._code(_details_of(made[place], noted - 1, by, self._window(made[place]))))
        self.codes[rows] = np.array(named, np.int32)[inverse]

    def of_day_ago(self, row: int, unknown: np.bool_, peaks: PeakForecasts) -> None:
        """Name yesterday's load as the forecast of a row."""
        details = ForecastDetails(NO_DAY_AGO) if unknown else ForecastDetails("", SEASONAL_MODEL, *self._window(peaks))
        self.codes[row] = self._code(details)

    def of_short(self, rows: Positions, known: Floats, least: Floats) -> None:
        """Name rows with too short a history; seconds that are known, and that are needed [row]."""
        for row, *seconds in zip(rows.tolist(), known[rows].tolist(), least[rows].tolist(), strict=True):
            self.codes[row] = self._names[_too_short(*seconds)]


@lru_cache(maxsize=1 << 12)
def _too_short(known: float, least: float) -> bytes:
    """Encode why there is no forecast with so many seconds of history."""
    there, needed = (duration_text(timedelta(seconds=seconds)) for seconds in (known, least))
    return _details_encoder.encode(ForecastDetails(f"{there} of history; {needed} is the least"))


def _details_of(peaks: PeakForecasts, note: int, model: int, window: tuple[float, float]) -> ForecastDetails:
    """Describe a forecast by the positions of its note and, from 1, its model; a negative note means no forecast."""
    if note < 0:
        return ForecastDetails(NO_HISTORY_YET)
    if not model:
        return ForecastDetails(peaks.notes[note])
    return ForecastDetails("", peaks.models[model - 1], *window, peaks.notes[note])


def _lay(
    quantiles: Floats, details: ForecastDetailCodes, spans: Sequence[tuple[Positions, Positions, PeakForecasts]]
) -> Positions:
    """Put the forecasts of all spans into columns, and name them; the position of each row's span, -1 for none.

    Each span comes as its rows, the rows that they have among its forecasts, and these forecasts.
    """
    within, note, model = (np.full(quantiles.shape[1], start, np.intp) for start in (-1, -1, 0))
    for place, (members, among, peaks) in enumerate(spans):
        there, at = members[among >= 0], among[among >= 0]
        within[members], quantiles[:, there] = place, peaks.values[at].T
        note[there], model[there] = peaks.note[at], peaks.model[at] + 1
    model[np.isnan(quantiles[0])] = 0
    details.of_peaks([peaks for *_, peaks in spans], within, note, model)
    return within


def _lay_day_ago(quantiles: Floats, row: int, day_ago: DayAgo, peaks: PeakForecasts, ids: Sequence[WorkloadId]) -> None:
    """Yesterday's load knows no spread: all quantiles are the same."""
    peak = day_ago.peak(ids[row], peaks.begin, peaks.until)
    quantiles[:, row] = np.nan if peak is None else peak


def usage_of(
    history: Histories,
    signals: Iterable[Signal],
    workloads: Iterable[Workload],
    throttled: Mapping[WorkloadId, Sequence[ThrottledTime]],
    zones: Mapping[WorkloadId, str] = UTC_ALONE,
) -> dict[Signal, FreshHistory]:
    """Return weeks of usage up to the latest minute; `zones` has the workloads in other time zones than UTC."""
    pods, by_id = _cut(history, PODS), {workload.id: workload for workload in workloads}
    cut = {signal: _cut(history, signal, DemandContext(signal, pods, by_id, throttled)) for signal in signals}
    return {signal: replace(fresh, zones=zones) for signal, fresh in cut.items()} if zones else cut


def _cut(history: Histories, signal: Signal, context: DemandContext | None = None) -> FreshHistory:
    return fresh(history.window(signal, FIVE_MINUTES), history.window(signal, MINUTE).latest(RECENT_SPAN), context)

"""Forecasts of a model at every minute of a replay, made as the service makes them: fitted in rotation, up to date.

This is the expensive part of a replay, so it is done once for each model and span, and can be stored (`ForecastCache`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import rows_among
from forecaster.demand.fresh import DemandContext, FreshHistory, fresh, point_means
from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import EPOCH, FIVE_MINUTES, MINUTE, MINUTES_A_POINT, Window, last_multiple
from forecaster.domain.workload import WorkloadId
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.forecasting.peaks import LEVELS, PeakForecasts
from forecaster.horizontal.columns import Counts, Floats
from forecaster.replay.traces import ALL_MINUTES, RECENT, Measurements

WEEKS = timedelta(days=14)
"""Span of history that the service gives to its models."""
ALL_AT_ONCE = 1_000_000


class ForecastCache(Protocol):
    """Store of forecasts between replays: arrays by the hash of all that they were made of."""

    def get(self, key: str) -> Mapping[str, NDArray[np.float64]] | None:
        """Return the stored forecasts; None when there are none that can be used."""

    def put(self, key: str, arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Keep this, if it can be kept."""


@dataclass(frozen=True, slots=True, eq=False)
class ReplayForecasts:
    """Quantiles of the largest demand within `span` after each minute."""

    name: str
    span: PeakSpan
    levels: tuple[float, ...]
    values: Mapping[str, Floats]
    """Forecasts by signal: [minute, level, series], ascending with the level; NaN where there is none."""
    failures: tuple[str, ...] = ()
    """Errors of the model, each once."""

    def peak(
        self, signal: str, quantile: float, minutes: slice = ALL_MINUTES, series: Counts | slice = ALL_MINUTES
    ) -> Floats | None:
        """[minute, series] at one quantile, linear between two levels; None for a signal without forecasts."""
        if signal not in self.values:
            return None
        values = self.values[signal][minutes]
        right = min(int(np.searchsorted(self.levels, quantile)), len(self.levels) - 1)
        left = right if self.levels[right] <= quantile else max(right - 1, 0)
        lower = values[:, left, series]
        if left == right:
            return lower
        low, high = self.levels[left], self.levels[right]
        return np.asarray((values[:, right, series] - lower) / (high - low) * (quantile - low) + lower)


@dataclass(frozen=True, slots=True)
class ForecastRequest:
    """Model and span of forecasts, and the intervals of fits and forecasts."""

    model: str
    span: PeakSpan
    refit_after: timedelta = timedelta(hours=6)
    every: int = 1
    """Minutes between two forecasts; the latest holds in between."""


def forecast_minutes(
    measurements: Measurements, signals: Sequence[Signal], request: ForecastRequest
) -> ReplayForecasts:
    """The forecasts of a whole replay."""
    forecaster = Forecaster(request.model, request.refit_after, ALL_AT_ONCE)
    shape = (measurements.minutes, len(LEVELS), len(measurements.traces.workloads))
    values: dict[str, Floats] = {signal: np.full(shape, np.nan) for signal in signals}
    histories = {signal: ServiceHistory.of(measurements, signal) for signal in (*signals, PODS)}
    failures: dict[str, None] = {}
    for minute in range(measurements.minutes):
        for signal in signals:
            values[signal][minute] = (
                _peaks(forecaster, histories, signal, request.span, measurements.instant(minute))
                if minute % request.every == 0
                else values[signal][minute - 1]
            )
        failures |= dict.fromkeys(forecaster.failures())
    return ReplayForecasts(request.model, request.span, LEVELS, values, tuple(failures))


def cached_or_forecast(
    measurements: Measurements, signals: Sequence[Signal], request: ForecastRequest, cache: ForecastCache, version: str
) -> ReplayForecasts:
    """Return forecasts from the cache, if the same version computed them from the same history."""
    key = key_of(measurements, signals, request, version)
    cached = cache.get(key)
    shape = (measurements.minutes, len(LEVELS), len(measurements.traces.workloads))
    if cached is not None and all(signal in cached and cached[signal].shape == shape for signal in signals):
        return ReplayForecasts(request.model, request.span, LEVELS, {signal: cached[signal] for signal in signals})
    made = forecast_minutes(measurements, signals, request)
    cache.put(key, {str(signal): values for signal, values in made.values.items()})
    return made


def key_of(measurements: Measurements, signals: Sequence[Signal], request: ForecastRequest, version: str) -> str:
    """Hash of everything that a forecast depends on."""
    traces = measurements.traces
    rules = tuple((str(signal), signal.properties()) for signal in signals)
    question = (request, rules, measurements.begin, measurements.minutes, LEVELS, version, traces.start)
    workloads = tuple((workload.id, workload.resources, workload.autoscaler) for workload in traces.workloads)
    zones = [sorted(measurements.zones.items())] if measurements.zones else []
    digest = hashlib.sha256(repr((question, workloads, *zones)).encode())
    for signal in (*signals, PODS):
        digest.update(np.ascontiguousarray(traces.of(signal)).data)
    return digest.hexdigest()


def _peaks(
    forecaster: Forecaster, histories: Mapping[Signal, ServiceHistory], signal: Signal, span: PeakSpan, now: datetime
) -> Floats:
    """[level, series]."""
    history, pods = histories[signal], histories[PODS]
    workloads = history.measurements.traces.workloads
    context = DemandContext(signal, pods.cut(now), {workload.id: workload for workload in workloads})
    peaks: PeakForecasts = forecaster.peaks(signal, history.cut(now, context), [span], now)[span]
    values = np.full((len(LEVELS), len(workloads)), np.nan)
    rows = rows_among([workload.id for workload in workloads], peaks.row)
    values[:, rows >= 0] = peaks.values[rows[rows >= 0]].T
    return values


@dataclass(frozen=True, slots=True, eq=False)
class ServiceHistory:
    """One signal as the service keeps it: [series, column] by minutes and by five minutes, gaps before the first."""

    measurements: Measurements
    by_minute: NDArray[np.float32]
    by_five: NDArray[np.float32]
    first_five: datetime

    @classmethod
    def of(cls, measurements: Measurements, signal: Signal) -> ServiceHistory:
        """Return the history with gaps for as long as the service looks back."""
        traces = measurements.traces
        values = traces.of(signal).astype(np.float32)
        lead = (traces.start - EPOCH - MINUTE) % FIVE_MINUTES // MINUTE
        rest = -(values.shape[1] + lead) % MINUTES_A_POINT
        whole = np.pad(values, ((0, 0), (lead, rest)), constant_values=np.nan)
        points = point_means(whole.reshape(len(whole), -1, MINUTES_A_POINT))
        padded = np.pad(points, ((0, 0), (WEEKS // FIVE_MINUTES, 0)), constant_values=np.nan)
        ends = traces.start - lead * MINUTE + FIVE_MINUTES - MINUTE
        minutes = np.pad(values, ((0, 0), (RECENT // MINUTE, 0)), constant_values=np.nan)
        return cls(measurements, minutes, padded, ends)

    def cut(self, now: datetime, context: DemandContext | None = None) -> FreshHistory:
        """The latest weeks up to the minute."""
        return replace(fresh(self.weeks(now), self.minutes(now), context), zones=self.measurements.zones)

    def minutes(self, now: datetime) -> Window:
        """The latest hours by the minute, ending at `now`."""
        count = RECENT // MINUTE
        last = self.measurements.traces.column(now) + count + 1
        return Window(self._ids, now - (count - 1) * MINUTE, MINUTE, self.by_minute[:, last - count : last])

    def weeks(self, now: datetime) -> Window:
        """The latest weeks by five minutes, ending with the last that are over."""
        count = WEEKS // FIVE_MINUTES
        end = last_multiple(now, FIVE_MINUTES)
        last = (end - self.first_five) // FIVE_MINUTES + count + 1
        return Window(self._ids, end - (count - 1) * FIVE_MINUTES, FIVE_MINUTES, self.by_five[:, last - count : last])

    @property
    def _ids(self) -> tuple[WorkloadId, ...]:
        return tuple(workload.id for workload in self.measurements.traces.workloads)

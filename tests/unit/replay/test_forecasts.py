"""A replay makes the forecasts of the service, and makes each once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.signal import CPU, PODS
from forecaster.domain.window import MINUTE
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay.forecasts import ForecastRequest, cached_or_forecast, forecast_minutes
from forecaster.replay.traces import Measurements, Traces, measurements_of
from forecaster.store.history import HistorySettings
from tests.support.builders import NOON, minutes, workload
from tests.support.fakes import CycleOnFakes, Load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

SPAN = PeakSpan(minutes(3), minutes(3))
BEGIN = NOON + minutes(2)
"""An instant off the grid of five minutes, so that points are cut anew."""


def wave(at: datetime) -> float:
    minute = (at - NOON) / MINUTE
    return float(np.float32(4.0 + np.sin(minute / 40.0) + 0.3 * np.sin(minute * 1.7)))


def measured(length: int) -> Measurements:
    history = timedelta(days=15) // MINUTE
    start = BEGIN - (history - 1) * MINUTE
    values = np.array([[wave(start + i * MINUTE) for i in range(history + length)]])
    return measurements_of(Traces((workload("web"),), start, {CPU: values}), BEGIN, length)


@pytest.mark.parametrize("model", ["last-value", "seasonal-naive-day", "adaptive"])
def test_a_replay_forecasts_what_the_service_forecasts(model: str) -> None:
    settings = HistorySettings(minutes_kept=timedelta(hours=3), weeks_kept=timedelta(days=14))
    service = CycleOnFakes(
        Load(workload("web"), {CPU: wave, PODS: lambda at: 4.0}),
        model=model,
        settings=settings,
        start=BEGIN,
    )
    measurements, length = measured(7), 7
    peaks = forecast_minutes(measurements, [CPU], ForecastRequest(model, SPAN)).peak(CPU, 0.9)
    assert peaks is not None
    for minute in range(length):
        (record,) = service.run(BEGIN + minute * MINUTE).recommendations
        forecast = record.signals[0].forecast
        assert forecast is not None
        assert peaks[minute, 0] == pytest.approx(forecast.peak, rel=1e-6)


def held_down(at: datetime) -> float:
    """Usage when, since yesterday, two pods with a limit of two cores each replace four pods."""
    return min(wave(at), 2.0 * pods(at))


def pods(at: datetime) -> float:
    return 2.0 if at > NOON - timedelta(days=1) else 4.0


def test_the_replay_learns_from_demand_as_the_service_does() -> None:
    settings = HistorySettings(minutes_kept=timedelta(hours=3), weeks_kept=timedelta(days=14))
    load = {CPU: held_down, PODS: pods}
    service = CycleOnFakes(Load(workload("web"), load), model="seasonal-naive-day", settings=settings, start=BEGIN)
    start, columns = BEGIN - timedelta(days=15) + MINUTE, timedelta(days=15) // MINUTE + 2
    values = {signal: np.array([[curve(start + i * MINUTE) for i in range(columns)]]) for signal, curve in load.items()}
    measurements = measurements_of(Traces((workload("web"),), start, values), BEGIN, 2)
    peaks = forecast_minutes(measurements, [CPU], ForecastRequest("seasonal-naive-day", SPAN)).peak(CPU, 0.9)
    assert peaks is not None
    for minute in range(2):
        outcome = service.run(BEGIN + minute * MINUTE)
        forecast = outcome.recommendations[0].signals[0].forecast
        assert forecast is not None
        assert peaks[minute, 0] == pytest.approx(forecast.peak, rel=1e-6)
        assert "at the CPU limit" in forecast.note
        assert [share.reason for share in outcome.report.masked] == ["limit"]


class Memory:
    """A cache in memory that counts its hits."""

    def __init__(self) -> None:
        self.entries: dict[str, Mapping[str, np.ndarray]] = {}
        self.hits = 0

    def get(self, key: str) -> Mapping[str, np.ndarray] | None:
        self.hits += key in self.entries
        return self.entries.get(key)

    def put(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        self.entries[key] = arrays


def test_the_same_forecast_of_the_same_history_is_made_once() -> None:
    cache, measurements, request = Memory(), measured(5), ForecastRequest("last-value", SPAN)
    first = cached_or_forecast(measurements, [CPU], request, cache, "1")
    again = cached_or_forecast(measurements, [CPU], request, cache, "1")
    assert cache.hits == 1
    assert np.array_equal(first.values[CPU], again.values[CPU])
    cached_or_forecast(measurements, [CPU], request, cache, "2")
    cached_or_forecast(measurements, [CPU], ForecastRequest("last-value", PeakSpan(minutes(5), minutes(3))), cache, "1")
    measurements.traces.values[CPU][0, 0] += 1.0
    cached_or_forecast(measurements, [CPU], request, cache, "1")
    assert cache.hits == 1
    assert len(cache.entries) == 4


def test_between_two_forecasts_the_latest_holds() -> None:
    values = forecast_minutes(measured(6), [CPU], ForecastRequest("last-value", SPAN, every=3)).values[CPU]
    assert np.array_equal(values[0], values[2])
    assert not np.array_equal(values[2], values[3])

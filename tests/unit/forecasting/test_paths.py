"""Forecasts of the coming hour step by step, for some workloads in each cycle."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.demand.fresh import FreshHistory
from forecaster.domain.signal import CPU, PeakForecast
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.forecasting.peaks import PATH_ROUNDS, STEPS, Paths
from forecaster.forecasting.shards import ROWS, Shards
from models import LastValue
from tests.support.builders import NOON, minutes
from tests.support.recommendations import ahead_of, workload_id

if TYPE_CHECKING:
    from models import Fitted, Panel

SOON = PeakSpan(minutes(3), minutes(3))


def history_of(count: int, value: float = 1.23456) -> FreshHistory:
    """A day of equal five-minute points, for `count` workloads."""
    ids = tuple(workload_id(f"web-{i}") for i in range(count))
    weeks = Window(ids, NOON - 287 * FIVE_MINUTES, FIVE_MINUTES, np.full((count, 288), value, np.float32))
    return FreshHistory(weeks, np.empty((count, 0), np.float32), weeks.end)


def test_a_path_is_an_hour_by_five_minutes() -> None:
    forecaster = Forecaster("last-value", paths=Paths())
    forecaster.peaks(CPU, history_of(1), [SOON], NOON)
    path = forecaster.paths.by_workload[workload_id("web-0")][CPU]
    assert (path.made_at, path.begin, path.step, path.model) == (NOON, NOON, FIVE_MINUTES, "last-value")
    assert len(path.values) == STEPS
    assert all(list(step) == sorted(step) for step in path.values)
    assert path.values[0][path.levels.index(0.5)] == pytest.approx(1.235)


def test_many_workloads_take_turns() -> None:
    forecaster = Forecaster("last-value", paths=Paths())
    history = history_of(12 * ROWS)
    known = []
    for cycle in range(PATH_ROUNDS + 1):
        forecaster.peaks(CPU, history, [SOON], NOON + cycle * minutes(1))
        known.append(len(forecaster.paths.by_workload) // ROWS)
    assert known[0] == 2
    assert known[PATH_ROUNDS - 1] == 12
    assert {path[CPU].made_at for path in forecaster.paths.by_workload.values()} >= {NOON + PATH_ROUNDS * minutes(1)}


def test_a_workload_that_is_gone_has_no_path_left() -> None:
    forecaster = Forecaster("last-value", paths=Paths())
    forecaster.peaks(CPU, history_of(2), [SOON], NOON)
    forecaster.peaks(CPU, history_of(1), [SOON], NOON + minutes(1))
    assert list(forecaster.paths.by_workload) == [workload_id("web-0")]


@dataclass
class Shortsighted:
    """A model that forecasts peaks and fails at paths."""

    fitted: Fitted | None = None
    name: str = "shortsighted"

    def fit(self, panel: Panel) -> Shortsighted:
        return Shortsighted(LastValue().fit(panel))

    def update(self, panel: Panel) -> Shortsighted:
        return Shortsighted(self.fitted.update(panel))

    def forecast_peak(self, window: object, quantiles: object) -> object:
        return self.fitted.forecast_peak(window, quantiles)

    def forecast(self, steps: int, quantiles: object) -> object:
        raise ArithmeticError("too far")


def test_a_model_that_knows_no_path_keeps_its_forecasts() -> None:
    forecaster = Forecaster("last-value", signals={CPU: Shards(Shortsighted())}, paths=Paths())
    for cycle in range(2):
        peaks = forecaster.peaks(CPU, history_of(1), [SOON], NOON + cycle * minutes(1))[SOON]
        assert isinstance(ahead_of(peaks, workload_id("web-0"), 0.5), PeakForecast)
    assert forecaster.paths.by_workload == {}
    assert forecaster.failures() == []


def test_a_forecaster_without_paths_makes_none() -> None:
    forecaster = Forecaster("last-value", refit_after=timedelta(hours=1))
    forecaster.peaks(CPU, history_of(1), [SOON], NOON)
    assert forecaster.paths is None

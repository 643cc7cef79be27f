"""Shards whose models can be stacked are forecast together, with the results that each has alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.demand.fresh import FreshHistory
from forecaster.domain.signal import CPU, PeakForecast
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.forecasting import shards, stacks
from forecaster.forecasting.forecaster import Forecaster, PeakSpan, further_peaks
from forecaster.forecasting.shards import Shards
from models import Adaptive
from tests.support.builders import NOON, minutes
from tests.support.recommendations import ahead_of, workload_id

if TYPE_CHECKING:
    from models import Panel
    from models.adaptive import AdaptiveState
    from models.fitted import FittedRule

SOON, LATER = PeakSpan(minutes(3), minutes(3)), PeakSpan(minutes(20), minutes(10))
COUNT, DAYS = 11, 4
IDS = tuple(workload_id(f"web-{i}") for i in range(COUNT))
WAVES = np.random.default_rng(5).gamma(20.0, size=(COUNT, DAYS * 288)).astype(np.float32)
WAVES *= (2 + np.sin(np.arange(DAYS * 288) / 288 * 2 * np.pi)).astype(np.float32)


@pytest.fixture(autouse=True)
def of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make shards of three workloads, so that a few workloads are several shards."""
    monkeypatch.setattr(shards, "ROWS", 3)


def history_after(passed: int = 0) -> FreshHistory:
    """Three days that end `passed` columns after noon."""
    columns = 3 * 288
    weeks = Window(IDS, NOON + (passed - columns + 1) * FIVE_MINUTES, FIVE_MINUTES, WAVES[:, passed : passed + columns])
    return FreshHistory(weeks, np.empty((COUNT, 0), np.float32), weeks.end)


@dataclass
class Broken:
    """The adaptive model, whose arithmetic overflows for the workload named in `broken`."""

    broken: str = ""
    spec: Adaptive = field(default_factory=lambda: Adaptive(replays=4))
    name: str = "broken"

    def fit(self, panel: Panel) -> FittedRule[AdaptiveState]:
        return replace(self.spec.fit(panel), rule=Overflows(self))


@dataclass(frozen=True)
class Overflows(Adaptive):
    model: Broken = field(default_factory=Broken)

    def __init__(self, model: Broken) -> None:
        super().__init__(replays=4)
        object.__setattr__(self, "model", model)

    def several_peaks(self, history: Panel, *rest: object) -> object:
        if self.model.broken in history.keys:
            raise OverflowError("too many samples")
        return super().several_peaks(history, *rest)


def forecasts_with(together: int, monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Forecasts of two spans in four cycles, with `together` shards in a stack."""
    monkeypatch.setattr(stacks, "STACKED_SHARDS", together)
    forecaster = Forecaster("adaptive", timedelta(minutes=40), signals={CPU: Shards(Adaptive(replays=4))})
    ids_by_span = {SOON: IDS[:7], LATER: IDS[5:]}
    rounds = []
    for passed in (0, 1, 9, 10):
        peaks = forecaster.peaks_by_span(CPU, history_after(passed), ids_by_span, NOON + passed * FIVE_MINUTES)
        rounds.append(np.concatenate([peaks[span].values for span in ids_by_span]))
    return rounds


def test_shards_forecast_together_as_each_does_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards are fitted in the first cycle, renewed one by one, and updated in between."""
    for together, alone in zip(forecasts_with(8, monkeypatch), forecasts_with(1, monkeypatch), strict=True):
        assert np.isfinite(together).all()
        np.testing.assert_allclose(together, alone, rtol=1e-4)


def test_a_model_that_fails_costs_its_own_shard_the_forecast() -> None:
    model = Broken()
    forecaster = Forecaster("adaptive", timedelta(hours=1), signals={CPU: Shards(model)})
    before = forecaster.peaks(CPU, history_after(), [SOON], NOON)[SOON]
    assert len(forecaster.signals[CPU].stacks) == 1
    model.broken = "/".join(IDS[4])
    after = forecaster.peaks(CPU, history_after(), [SOON], NOON + minutes(1))[SOON]
    assert [id_ for id_ in IDS if id_ not in after.row] == list(IDS[3:6])
    assert "OverflowError" in ahead_of(after, IDS[4], 0.5).note
    others = [row for row in range(COUNT) if row not in {3, 4, 5}]
    np.testing.assert_allclose(after.values[others], before.values[others], rtol=1e-5)
    model.broken = ""
    again = forecaster.peaks(CPU, history_after(), [SOON], NOON + minutes(2))[SOON]
    assert all(isinstance(ahead_of(again, id_, 0.5), PeakForecast) for id_ in IDS)


def test_a_further_window_is_forecast_for_the_workloads_that_ask_for_it() -> None:
    forecaster = Forecaster("adaptive", timedelta(hours=1), signals={CPU: Shards(Adaptive(replays=4))})
    whole = forecaster.peaks(CPU, history_after(), [LATER], NOON)[LATER]
    peaks = further_peaks(forecaster, CPU, history_after(), LATER, [IDS[1], IDS[7], workload_id("new")], NOON)
    assert list(peaks) == [IDS[1], IDS[7]]
    np.testing.assert_allclose(np.stack([*peaks.values()]), whole.values[[1, 7]], rtol=1e-5)


def test_a_window_of_few_workloads_is_forecast_for_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    forecaster = Forecaster("adaptive", timedelta(hours=1), signals={CPU: Shards(Adaptive(replays=4))})
    whole = forecaster.peaks(CPU, history_after(), [SOON, LATER], NOON)
    questions, several = [], Adaptive.several_peaks

    def noted(rule: Adaptive, history: Panel, learned: AdaptiveState, windows: list[object], levels: object) -> object:
        questions.append((len(history), len(windows)))
        return several(rule, history, learned, windows, levels)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Adaptive, "several_peaks", noted)
    peaks = forecaster.peaks_by_span(CPU, history_after(), {SOON: IDS, LATER: IDS[5:6]}, NOON)
    assert questions == [(COUNT, 1), (1, 1)]
    np.testing.assert_allclose(peaks[SOON].values, whole[SOON].values, rtol=1e-5)
    np.testing.assert_allclose(peaks[LATER].values, whole[LATER].values[5:6], rtol=1e-5)


def test_workloads_with_windows_of_their_own_are_forecast_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for all at once would take minutes and gigabytes for a namespace of 5,000 such workloads."""
    monkeypatch.setattr(stacks, "MAX_WINDOWS_AT_ONCE", 2)
    forecaster = Forecaster("adaptive", timedelta(hours=1), signals={CPU: Shards(Adaptive(replays=4))})
    own = {PeakSpan(minutes(3 + 5 * row), minutes(3)): IDS[row : row + 1] for row in range(COUNT)}
    whole = forecaster.peaks(CPU, history_after(), own, NOON)
    questions, several = [], Adaptive.several_peaks

    def noted(rule: Adaptive, history: Panel, learned: AdaptiveState, windows: list[object], levels: object) -> object:
        questions.append((len(history), len(windows)))
        return several(rule, history, learned, windows, levels)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Adaptive, "several_peaks", noted)
    peaks = forecaster.peaks_by_span(CPU, history_after(), own, NOON)
    assert questions == [(2, 2)] * 5 + [(1, 1)]
    for row, span in enumerate(own):
        assert peaks[span].ids == IDS[row : row + 1]
        np.testing.assert_allclose(peaks[span].values, whole[span].values[row : row + 1], rtol=1e-5)

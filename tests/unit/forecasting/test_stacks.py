"""Shards are asked together where their models can be, and say what each says alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.demand.fresh import FreshHistory
from forecaster.domain.forecast import PeakForecast
from forecaster.domain.signal import CPU
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
    """Shards of three workloads, so that a few are several shards."""
    monkeypatch.setattr(shards, "ROWS", 3)


def seen(passed: int = 0) -> FreshHistory:
    """Three days that end so many columns after noon."""
    columns = 3 * 288
    weeks = Window(IDS, NOON + (passed - columns + 1) * FIVE_MINUTES, FIVE_MINUTES, WAVES[:, passed : passed + columns])
    return FreshHistory(weeks, np.empty((COUNT, 0), np.float32), weeks.end)


@dataclass
class Broken:
    """Adaptive, in which the arithmetic of one workload overflows once it is told to."""

    broken: str = ""
    spec: Adaptive = field(default_factory=lambda: Adaptive(replays=4))
    name: str = "broken"

    def fit(self, panel: Panel) -> FittedRule[AdaptiveState]:
        return replace(self.spec.fit(panel), rule=Overflows(self))


@dataclass(frozen=True)
class Overflows(Adaptive):
    told: Broken = field(default_factory=Broken)

    def __init__(self, told: Broken) -> None:
        super().__init__(replays=4)
        object.__setattr__(self, "told", told)

    def several_peaks(self, history: Panel, *rest: object) -> object:
        if self.told.broken in history.keys:
            raise OverflowError("too many samples")
        return super().several_peaks(history, *rest)


def asked(together: int, monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Forecasts of two spans, in the four cycles after the first."""
    monkeypatch.setattr(stacks, "STACKED_SHARDS", together)
    one = Forecaster("adaptive", timedelta(minutes=40), signals={CPU: Shards(Adaptive(replays=4))})
    wanted = {SOON: IDS[:7], LATER: IDS[5:]}
    said = []
    for passed in (0, 1, 9, 10):
        peaks = one.peaks_by_span(CPU, seen(passed), wanted, NOON + passed * FIVE_MINUTES)
        said.append(np.concatenate([peaks[span].values for span in wanted]))
    return said


def test_shards_say_together_what_each_says_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fitted in one cycle, renewed one by one, and followed in between."""
    for together, alone in zip(asked(8, monkeypatch), asked(1, monkeypatch), strict=True):
        assert np.isfinite(together).all()
        np.testing.assert_allclose(together, alone, rtol=1e-4)


def test_a_model_that_fails_costs_its_own_shard_the_forecast() -> None:
    model = Broken()
    one = Forecaster("adaptive", timedelta(hours=1), signals={CPU: Shards(model)})
    before = one.peaks(CPU, seen(), [SOON], NOON)[SOON]
    assert len(one.signals[CPU].stacks) == 1
    model.broken = "/".join(IDS[4])
    after = one.peaks(CPU, seen(), [SOON], NOON + minutes(1))[SOON]
    assert [id_ for id_ in IDS if id_ not in after.row] == list(IDS[3:6])
    assert "OverflowError" in ahead_of(after, IDS[4], 0.5).note
    others = [row for row in range(COUNT) if row not in {3, 4, 5}]
    np.testing.assert_allclose(after.values[others], before.values[others], rtol=1e-5)
    model.broken = ""
    again = one.peaks(CPU, seen(), [SOON], NOON + minutes(2))[SOON]
    assert all(isinstance(ahead_of(again, id_, 0.5), PeakForecast) for id_ in IDS)


def test_a_further_window_is_asked_of_the_workloads_that_want_it() -> None:
    one = Forecaster("adaptive", timedelta(hours=1), signals={CPU: Shards(Adaptive(replays=4))})
    whole = one.peaks(CPU, seen(), [LATER], NOON)[LATER]
    found = further_peaks(one, CPU, seen(), LATER, [IDS[1], IDS[7], workload_id("new")], NOON)
    assert list(found) == [IDS[1], IDS[7]]
    np.testing.assert_allclose(np.stack([*found.values()]), whole.values[[1, 7]], rtol=1e-5)


def test_a_window_that_few_want_is_asked_for_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Forecaster("adaptive", timedelta(hours=1), signals={CPU: Shards(Adaptive(replays=4))})
    whole = one.peaks(CPU, seen(), [SOON, LATER], NOON)
    questions, several = [], Adaptive.several_peaks

    def noted(rule: Adaptive, history: Panel, learned: AdaptiveState, windows: list[object], levels: object) -> object:
        questions.append((len(history), len(windows)))
        return several(rule, history, learned, windows, levels)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Adaptive, "several_peaks", noted)
    found = one.peaks_by_span(CPU, seen(), {SOON: IDS, LATER: IDS[5:6]}, NOON)
    assert questions == [(COUNT, 1), (1, 1)]
    np.testing.assert_allclose(found[SOON].values, whole[SOON].values, rtol=1e-5)
    np.testing.assert_allclose(found[LATER].values, whole[LATER].values[5:6], rtol=1e-5)


def test_workloads_with_windows_of_their_own_are_asked_for_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked of all at once, a namespace of 5,000 such workloads would take the service minutes and gigabytes."""
    monkeypatch.setattr(stacks, "MAX_WINDOWS_AT_ONCE", 2)
    one = Forecaster("adaptive", timedelta(hours=1), signals={CPU: Shards(Adaptive(replays=4))})
    own = {PeakSpan(minutes(3 + 5 * row), minutes(3)): IDS[row : row + 1] for row in range(COUNT)}
    whole = one.peaks(CPU, seen(), own, NOON)
    questions, several = [], Adaptive.several_peaks

    def noted(rule: Adaptive, history: Panel, learned: AdaptiveState, windows: list[object], levels: object) -> object:
        questions.append((len(history), len(windows)))
        return several(rule, history, learned, windows, levels)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Adaptive, "several_peaks", noted)
    found = one.peaks_by_span(CPU, seen(), own, NOON)
    assert questions == [(2, 2)] * 5 + [(1, 1)]
    for row, span in enumerate(own):
        assert found[span].ids == IDS[row : row + 1]
        np.testing.assert_allclose(found[span].values, whole[span].values[row : row + 1], rtol=1e-5)

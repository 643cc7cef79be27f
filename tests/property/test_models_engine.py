"""Promises for any demand, of the models that decide and of their fallbacks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import Adaptive, LastValue, Panel, Prior, Ridge, SeasonalNaive, StepWindow
from models.adaptive import TURN
from tests.support.panels import HOUR, MONDAY

if TYPE_CHECKING:
    from models import Fitted, Model

LEVELS = (0.05, 0.5, 0.9, 0.99)
MODELS = (Adaptive(replays=16), LastValue(), Prior(), Ridge(), SeasonalNaive())


@st.composite
def histories(draw: st.DrawFn) -> Panel:
    """A few series of up to ten days: waves, noise, steps, zeros and gaps in any mixture and of any size."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bins = np.arange(draw(st.integers(30, 240)))
    size = 10.0 ** draw(st.integers(-6, 9))
    wave = 1 + draw(st.floats(0, 1)) * np.sin(2 * np.pi * bins / 24)
    values = wave * rng.gamma(draw(st.sampled_from((0.1, 1.0, 20.0))), size=(2, len(bins)))
    values = np.where(bins > draw(st.integers(0, 240)), values * draw(st.floats(0, 10)), values)
    values = np.where(rng.random(values.shape) < draw(st.floats(0, 0.3)), np.nan, values)
    return Panel(values * size, MONDAY, HOUR, ("a", "b"))


def forecast(model: Model, panel: Panel) -> np.ndarray:
    """[series, quantile, steps and peak], NaN for unknown series."""
    return forecast_of(model.fit(panel), panel)


def forecast_of(fitted: Fitted, panel: Panel) -> np.ndarray:
    """Forecast of a model that has learned: its path, and its peak."""
    path, peak = fitted.forecast(6, LEVELS), fitted.forecast_peak(StepWindow(2, 5), LEVELS)
    out = np.full((len(panel), len(LEVELS), 7), np.nan)
    rows = path.provenance.rows(panel.keys)
    out[rows >= 0] = np.concatenate([path.values, peak.values[:, :, None]], axis=2)[rows[rows >= 0]]
    return out


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
class TestAnyDemand:
    @given(history=histories())
    @settings(max_examples=25, deadline=None)
    def test_quantiles_are_finite_ordered_and_not_negative(self, model: Model, history: Panel) -> None:
        quantiles = forecast(model, history)
        known = quantiles[~np.isnan(quantiles).any(axis=(1, 2))]
        assert np.isfinite(known).all()
        assert (known >= 0).all()
        assert (np.diff(known, axis=1) >= 0).all()

    @given(history=histories(), exponent=st.integers(-20, 20))
    @settings(max_examples=15, deadline=None)
    def test_demand_in_other_units_gives_the_forecast_in_other_units(
        self, model: Model, history: Panel, exponent: int
    ) -> None:
        factor = 2.0**exponent
        scaled = forecast(model, replace(history, values=history.values * factor))
        largest = np.nanmax(history.values, initial=0.0)
        np.testing.assert_allclose(scaled / factor, forecast(model, history), rtol=2e-3, atol=2e-3 * largest)

    @given(history=histories(), weeks=st.integers(1, 60))
    @settings(max_examples=10, deadline=None)
    def test_whole_weeks_later_nothing_changes(self, model: Model, history: Panel, weeks: int) -> None:
        later = replace(history, start=history.start + timedelta(weeks=weeks))
        np.testing.assert_array_equal(forecast(model, later), forecast(model, history))

    @given(history=histories(), share=st.floats(0.3, 0.9))
    @settings(max_examples=10, deadline=None)
    def test_another_future_changes_nothing(self, model: Model, history: Panel, share: float) -> None:
        origin = history.start + int(share * history.length) * history.step
        known = history.until(origin)
        other = history.values.copy()
        other[:, known.length :] = 3 * np.nan_to_num(other[:, known.length :]) + 1
        cut = replace(history, values=other).until(origin)
        np.testing.assert_array_equal(forecast(model, cut), forecast(model, known))

    @given(history=histories(), at=st.integers(25, 239), width=st.integers(1, 20))
    @settings(max_examples=10, deadline=None)
    def test_a_gap_changes_only_what_follows_it(self, model: Model, history: Panel, at: int, width: int) -> None:
        gappy = history.values.copy()
        gappy[:, at : at + width] = np.nan
        origin = history.start + min(at, history.length) * history.step
        before = (panel.until(origin) for panel in (history, replace(history, values=gappy)))
        first, second = (forecast(model, panel) for panel in before)
        np.testing.assert_array_equal(first, second)

    @given(history=histories(), bins=st.integers(1, TURN))
    @settings(max_examples=10, deadline=None)
    def test_new_bins_one_by_one_and_the_whole_window_give_the_same(
        self, model: Model, history: Panel, bins: int
    ) -> None:
        at_fit = model.fit(history.until(history.end - bins * HOUR))
        one_by_one = at_fit
        for back in range(bins, 0, -1):
            one_by_one = one_by_one.update(history.until(history.end - (back - 1) * HOUR).last(HOUR))
        np.testing.assert_allclose(
            forecast_of(one_by_one, history),
            forecast_of(at_fit.update(history), history),
            rtol=1e-4,
            atol=1e-4 * np.nanmax(history.values, initial=0.0),
        )

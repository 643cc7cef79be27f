"""Pooled models: what one series has not shown, the others teach."""

from functools import cache

import numpy as np
import pytest

from models import Fitted, Panel, StepWindow, create
from models.evaluate import coverage, pinball
from models.regressions import HORIZON
from tests.support.panels import FIVE_MINUTES, MONDAY, daily_waves

DAY = 288
LEVELS = (0.5, 0.9, 0.95)
NAMES = ("boosting", "pooled-linear")
WAVES = daily_waves(12, days=9, step=FIVE_MINUTES, noise=0.2)
ORIGIN = 8 * DAY


@cache
def fitted_to_waves(name: str) -> Fitted:
    """Fit a model to eight of the nine days."""
    return create(name).fit(WAVES.until(MONDAY + ORIGIN * FIVE_MINUTES))


@pytest.mark.parametrize("name", NAMES)
def test_an_hour_of_day_waves_is_forecast_with_true_quantiles(name: str) -> None:
    fitted, hits = fitted_to_waves(name), []
    for origin in range(ORIGIN, WAVES.length - 12, 23):
        forecast = fitted.update(WAVES.until(MONDAY + origin * FIVE_MINUTES)).forecast(12, LEVELS)
        assert set(forecast.provenance.models) == {name}
        hits.append(coverage(WAVES.values[:, origin : origin + 12], forecast.values))
    np.testing.assert_allclose(np.mean(hits, axis=(0, 1)), LEVELS, atol=0.07)


@pytest.mark.parametrize("name", NAMES)
def test_a_young_series_gains_from_the_others(name: str) -> None:
    values = WAVES.values.copy()
    values[0, : ORIGIN - 2 * DAY] = np.nan
    until = MONDAY + ORIGIN * FIVE_MINUTES
    panel = Panel(values, MONDAY, FIVE_MINUTES, WAVES.keys)
    actual = WAVES.values[:1, ORIGIN : ORIGIN + 12]
    pooled = create(name).fit(panel.until(until)).forecast(12, LEVELS).values[:1]
    held = create("last-value").fit(panel.until(until)).forecast(12, LEVELS).values[:1]
    assert pinball(actual, pooled, LEVELS).mean() < pinball(actual, held, LEVELS).mean()


@pytest.mark.parametrize("name", NAMES)
def test_the_peak_of_a_window_lies_above_each_of_its_steps(name: str) -> None:
    fitted = fitted_to_waves(name).update(WAVES)
    path, peak = fitted.forecast(6, (0.8,)).values, fitted.forecast_peak(StepWindow(1, 6), (0.8,)).values
    assert (peak[:, 0] >= 0.97 * path[:, 0].max(axis=1)).all()


def test_beyond_an_hour_the_last_value_is_held_with_the_reason() -> None:
    forecast = create("pooled-linear").fit(WAVES.take([0])).forecast(HORIZON + 1, LEVELS)
    assert forecast.provenance.models == ("last-value",)
    assert forecast.provenance.reasons == ("pooled-linear looks 60 min ahead, not 65 min; the last value is held",)


def test_a_panel_of_an_hour_teaches_nothing() -> None:
    forecast = create("pooled-linear").fit(WAVES.last(12 * FIVE_MINUTES)).forecast(3, LEVELS)
    assert set(forecast.provenance.models) == {"last-value"}


def test_models_of_the_same_fit_are_asked_as_one_and_others_are_not() -> None:
    fitted = create("pooled-linear").fit(WAVES)
    first, second = fitted.part(slice(0, 5)), fitted.part(slice(5, 12))
    together = first.stacked([second]).update(WAVES).forecast(3, LEVELS)
    np.testing.assert_allclose(together.values, fitted.forecast(3, LEVELS).values)
    assert first.stacked([create("pooled-linear").fit(WAVES.take([5]))]) is None

"""The ridge finds the equation behind a series, alone or among thousands, and says when it cannot."""

from datetime import timedelta

import numpy as np
import pytest

from models import Panel, Ridge, StepWindow, create
from models.evaluate import coverage
from tests.support.panels import HOUR, MONDAY, daily_waves, panel


def persistent(days: int = 30, seed: int = 4) -> np.ndarray:
    """An autoregression of 0.8 around 50."""
    rng = np.random.default_rng(seed)
    values = np.full(days * 24, 50.0)
    for t in range(1, len(values)):
        values[t] = 50 + 0.8 * (values[t - 1] - 50) + rng.standard_normal()
    return values


def test_an_autoregression_is_forecast_by_its_own_equation() -> None:
    values = persistent()
    forecast = Ridge(days=30).fit(panel(values.tolist())).forecast(3, (0.5,)).quantile(0.5)[0]
    expected = 50 + 0.8 ** np.arange(1, 4) * (values[-1] - 50)
    np.testing.assert_allclose(forecast, expected, atol=0.8)


def test_a_wave_is_continued() -> None:
    history = daily_waves(1, days=12, noise=0.01)
    past = history.until(MONDAY + 11 * 24 * HOUR)
    forecast = Ridge().fit(past).forecast(12, (0.5,)).quantile(0.5)[0]
    np.testing.assert_allclose(forecast, history.values[0, 264:276], atol=0.1)


def test_quantiles_cover_what_they_say() -> None:
    hits = []
    for seed in range(40):
        values = persistent(days=16, seed=seed)
        forecast = Ridge().fit(panel(values[:-6].tolist())).forecast(6, (0.5, 0.9))
        hits.append(coverage(values[-6:], forecast.values[0]))
    np.testing.assert_allclose(np.mean(hits, axis=0), (0.5, 0.9), atol=0.1)


def test_the_peak_exceeds_the_steps_of_its_window() -> None:
    fitted = Ridge().fit(panel(persistent().tolist()))
    peak = fitted.forecast_peak(StepWindow(1, 6), (0.5,)).values[0, 0]
    assert peak >= fitted.forecast(6, (0.5,)).values.max()


def test_more_steps_than_learned_are_left_to_the_last_value() -> None:
    answer = Ridge(horizon=3).fit(daily_waves(1)).forecast(4, (0.5,))
    assert answer.provenance.models == ("last-value",)


def test_a_series_younger_than_its_season_is_left_to_the_last_value_and_the_others_are_not() -> None:
    values = daily_waves(2, days=12).values.copy()
    values[1, :-30] = np.nan
    answer = Ridge().fit(panel(*values.tolist())).forecast(2, (0.5,))
    assert answer.provenance.models == ("ridge", "last-value")


def test_what_was_something_long_ago_and_nothing_for_a_week_is_expected_to_stay_nothing() -> None:
    gone = np.concatenate([persistent(days=3), np.zeros(8 * 24)])
    fitted = Ridge().fit(panel(gone.tolist()))
    assert not fitted.forecast(3, (0.5, 0.9)).values.any()
    assert not fitted.forecast_peak(StepWindow(1, 10), (0.9,)).values.any()


@pytest.mark.parametrize("model", ["adaptive", "ridge", "ridge(lags=48)"])
@pytest.mark.parametrize("hours", [1, 3, 5, 12, 48])
def test_steps_that_hold_too_few_bins_of_a_day_are_no_error(model: str, hours: int) -> None:
    values = daily_waves(1, days=4).values[:, ::2]
    for length in (3, 8, 30, values.shape[1]):
        history = Panel(values[:, :length], MONDAY, timedelta(hours=hours), ("a",))
        answer = create(model).fit(history).forecast(3, (0.5, 0.9))
        assert np.isfinite(answer.values).all()

"""Seasonal naive repeats the last period and knows how much periods differ."""

import numpy as np

from models import SeasonalNaive, StepWindow
from models.panel import DAY
from tests.support.panels import daily_waves, panel


def test_the_median_is_the_value_one_day_ago() -> None:
    history = daily_waves(2, days=4)
    forecast = SeasonalNaive().fit(history).forecast(30, (0.5,))
    expected = np.concatenate([history.values[:, -24:], history.values[:, -24:-18]], axis=1)
    np.testing.assert_allclose(forecast.quantile(0.5), expected)


def test_the_spread_is_that_of_changes_over_a_day() -> None:
    rng = np.random.default_rng(0)
    history = panel((100 + rng.standard_normal(24 * 40)).tolist())
    forecast = SeasonalNaive().fit(history).forecast(1, (0.5, 0.9)).values[0, :, 0]
    assert 1.2 < forecast[1] - forecast[0] < 2.4


def test_a_week_is_another_period() -> None:
    history = daily_waves(1, days=21)
    forecast = SeasonalNaive(7 * DAY).fit(history).forecast(3, (0.5,))
    np.testing.assert_allclose(forecast.quantile(0.5)[0], history.values[0, -168:-165])


def test_the_peak_is_that_of_the_same_window_a_day_ago() -> None:
    history = daily_waves(1, days=4, noise=0.0)
    peak = SeasonalNaive().fit(history).forecast_peak(StepWindow(2, 5), (0.5,))
    np.testing.assert_allclose(peak.values[0, 0], history.values[0, -23:-19].max())


def test_a_gap_a_day_ago_is_what_was_known_before_it() -> None:
    values = daily_waves(1, days=4, noise=0.0).values[0].copy()
    values[-24] = np.nan
    forecast = SeasonalNaive().fit(panel(values.tolist())).forecast(1, (0.5,))
    assert np.isfinite(forecast.values).all()

"""Hour of the week: quantiles of the same local hour."""

from datetime import UTC, datetime, timedelta

import numpy as np

from models import HourOfWeek, Panel, StepWindow
from models.calendar import Calendar
from tests.support.panels import HOUR, MONDAY, daily_waves


def test_a_day_off_is_read_from_days_off() -> None:
    hours = np.arange(14 * 24)
    weekend = hours // 24 % 7 >= 5
    history = Panel(np.where(weekend, 1.0, 9.0)[None], MONDAY, HOUR, ("a",)).last(timedelta(days=14))
    friday = history.until(MONDAY + timedelta(days=12))
    assert HourOfWeek().fit(friday).forecast(3, (0.5,)).values.tolist() == [[[1.0, 1.0, 1.0]]]
    assert HourOfWeek().fit(history).forecast(3, (0.5,)).values.tolist() == [[[9.0, 9.0, 9.0]]]


def test_the_hour_moves_with_the_clock_when_summer_time_begins() -> None:
    """Work begins at 9 in Berlin: 8 UTC in winter, 7 UTC from 2026-03-29 on."""
    start = datetime(2026, 3, 16, tzinfo=UTC)
    local_nine = np.where(np.arange(14 * 24) % 24 == 8, 5.0, 0.0)
    history = Panel(local_nine[None], start, HOUR, ("a",)).until(datetime(2026, 3, 28, tzinfo=UTC))
    monday = Panel(np.full((1, 48), 0.0), history.end, HOUR, ("a",))
    berlin = HourOfWeek(Calendar("Europe/Berlin")).fit(history).update(monday).forecast(9, (0.5,)).values[0, 0]
    assert np.flatnonzero(berlin > 1).tolist() == [7]


def test_the_spread_is_that_of_the_hour() -> None:
    history = daily_waves(1, days=14, noise=0.2)
    low, high = HourOfWeek().fit(history).forecast(1, (0.1, 0.9)).values[0, :, 0]
    assert 1.5 < low < 2 < high < 2.5


def test_peaks_lie_above_steps() -> None:
    fitted = HourOfWeek().fit(daily_waves(1, days=14, noise=0.3))
    peak = fitted.forecast_peak(StepWindow(1, 6), (0.9,)).values[0, 0]
    assert peak >= fitted.forecast(6, (0.9,)).values[0, 0].max() - 0.1


def test_bins_of_a_day_are_read_from_all_days_after_the_clocks_changed() -> None:
    days = Panel(np.arange(28.0)[None] % 7 + 1, datetime(2026, 3, 2, tzinfo=UTC), timedelta(days=1), ("web",))
    forecast = HourOfWeek(Calendar("Europe/Berlin")).fit(days).forecast(3, (0.5,))
    assert forecast.provenance.models == ("hour-of-week",)

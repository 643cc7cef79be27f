"""Harmonic regression continues waves, with gaps and without, and keeps what remains of a deviation."""

from datetime import timedelta

import numpy as np

from models import Harmonic, Panel
from tests.support.panels import HOUR, daily_waves


def test_a_week_with_a_quiet_weekend_is_continued() -> None:
    hours = np.arange(14 * 24)
    quiet = np.where(hours // 24 % 7 >= 5, 0.3, 1.0)
    history = Panel((quiet * (3 + np.sin(2 * np.pi * hours / 24)))[None], daily_waves().start, HOUR, ("a",))
    (monday_noon,) = Harmonic().fit(history).forecast(12, (0.5,)).values[:, 0, -1]
    saturday = history.until(history.start + timedelta(days=12))
    (saturday_noon,) = Harmonic().fit(saturday).forecast(12, (0.5,)).values[:, 0, -1]
    assert saturday_noon < 0.75 * monday_noon


def test_a_gap_of_days_leaves_the_wave_where_it_is() -> None:
    whole = daily_waves(1, days=10, noise=0.01)
    holed = whole.values.copy()
    holed[:, 100:150] = np.nan
    with_gap = Harmonic().fit(Panel(holed, whole.start, HOUR, whole.keys)).forecast(24, (0.5,)).values
    np.testing.assert_allclose(with_gap, Harmonic().fit(whole).forecast(24, (0.5,)).values, atol=0.05)


def test_a_deviation_that_lingers_is_carried_on() -> None:
    rng, lingering = np.random.default_rng(1), np.zeros(14 * 24)
    for i in range(1, len(lingering)):
        lingering[i] = 0.9 * lingering[i - 1] + 0.2 * rng.standard_normal()
    history = daily_waves(1, days=14, noise=0.0)
    fitted = Harmonic().fit(Panel(history.values + 5 + lingering, history.start, HOUR, history.keys))
    usual = fitted.forecast(12, (0.5,)).values[0, 0]
    newest = Panel(usual[None, :1] + 2, history.end, HOUR, history.keys)
    after = fitted.update(newest).forecast(11, (0.5,)).values[0, 0]
    assert after[0] > usual[1] + 1
    assert after[-1] < usual[-1] + 1

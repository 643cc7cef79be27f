"""Theta: level and half the drift around a season."""

import numpy as np

from models import Panel, Theta
from tests.support.panels import HOUR, daily_waves


def test_the_season_is_continued() -> None:
    history = daily_waves(1, days=7, noise=0.01)
    ahead = np.arange(7 * 24, 7 * 24 + 12)
    expected = 2 + np.sin(2 * np.pi * ahead / 24)
    np.testing.assert_allclose(Theta().fit(history).forecast(12, (0.5,)).values[0, 0], expected, atol=0.1)


def test_new_bins_move_the_level_and_gaps_do_not() -> None:
    history = daily_waves(1, days=7)
    fitted = Theta().fit(history)
    higher = Panel(history.values[:, -24:] + 4, history.end, HOUR, history.keys)
    gap = Panel(np.full((1, 24), np.nan), history.end, HOUR, history.keys)
    usual = fitted.forecast(24, (0.5,)).values
    assert (fitted.update(higher).forecast(24, (0.5,)).values > usual + 2).all()
    np.testing.assert_allclose(fitted.update(gap).forecast(24, (0.5,)).values, usual, atol=0.05)


def test_theta_one_leaves_the_drift_out() -> None:
    rising = daily_waves(1, days=7, noise=0.0).values + np.arange(7 * 24) / 24
    history = Panel(rising, daily_waves().start, HOUR, ("a",))
    without, usual = (Theta(theta=t).fit(history).learned.expects.expected(history, 24)[0] for t in (1.0, 2.0))
    assert (usual > without).all()

"""Days that are over, by the minute where minutes are known: each minute is forecast from what was known before it."""

from __future__ import annotations

import numpy as np

from forecaster.forecasting.backtest import PolicyBacktest, backtests

DAY, LATEST, JUMP = 1440, 180, 100


def test_what_is_forecast_of_a_minute_knows_nothing_of_it() -> None:
    """A jump within five minutes is in their mean, and in no forecast made before it."""
    calm = 2.0 + np.random.default_rng(0).random((1, 4 * DAY))
    jumps = calm.copy()
    jumps[:, -JUMP:] *= 3.0
    before, after = (_judged(one) for one in (calm, jumps))
    known = DAY - JUMP
    np.testing.assert_allclose(after.peaks[:, : known + 1], before.peaks[:, : known + 1], rtol=1e-4)
    assert after.peaks[0, known + 1, -1] > 1.05 * before.peaks[0, known + 1, -1]


def test_what_is_known_by_the_minute_stands_in_place_of_the_mean() -> None:
    load = 2.0 + np.random.default_rng(1).random((1, 4 * DAY))
    unknown = load[:, -LATEST:].copy()
    unknown[:, :5] = np.nan
    days = backtests(_means(load), 5, to_come=0, reach=6, days=1, latest=unknown)
    assert days is not None
    np.testing.assert_array_equal(days.demand[:, 5 - LATEST :], load[:, 5 - LATEST :])
    np.testing.assert_allclose(days.demand[:, -LATEST : 5 - LATEST], _means(load)[:, [-LATEST // 5]].repeat(5, axis=1))


def _judged(load: np.ndarray) -> PolicyBacktest:
    days = backtests(_means(load), 5, to_come=0, reach=6, days=1, latest=load[:, -LATEST:])
    assert days is not None
    return days


def _means(load: np.ndarray) -> np.ndarray:
    means: np.ndarray = load.reshape(len(load), -1, 5).mean(axis=2)
    return means

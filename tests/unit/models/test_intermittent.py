"""Intermittent demand: schedules are kept, pauses are possible, work that stopped fades."""

import numpy as np

from models import Intermittent, StepWindow
from tests.support.panels import FIVE_MINUTES, panel

WEEK = 7 * 288


def every(bins: int, size: float = 4.0) -> np.ndarray:
    return np.where(np.arange(WEEK) % bins == 0, size, 0.1)


def test_a_batch_every_twenty_minutes_is_expected_at_its_minute_only() -> None:
    path = Intermittent().fit(panel(every(4), step=FIVE_MINUTES)).forecast(8, (0.5, 0.95)).values[0]
    np.testing.assert_allclose(path, [[4, 0.1, 0.1, 0.1] * 2] * 2, atol=1e-6)


def test_the_peak_of_a_window_without_a_batch_is_low() -> None:
    fitted = Intermittent().fit(panel(every(12), step=FIVE_MINUTES))
    before, with_batch = (
        fitted.forecast_peak(window, (0.95,)).values[0, 0] for window in (StepWindow(2, 6), StepWindow(10, 14))
    )
    assert before < 0.2
    assert with_batch > 3.9


def test_work_by_chance_has_a_median_of_nothing_and_a_high_quantile_of_work() -> None:
    chance = np.where(np.random.default_rng(5).random(WEEK) < 0.2, 3.0, 0.0)
    path = Intermittent().fit(panel(chance, step=FIVE_MINUTES)).forecast(6, (0.5, 0.95)).values[0]
    assert (path[0] < 0.5).all()
    assert (path[1] > 2.5).all()


def test_work_that_stopped_fades() -> None:
    chance = np.where(np.random.default_rng(5).random(WEEK) < 0.5, 3.0, 0.0)
    stopped = np.concatenate([chance[:-100], np.zeros(100)])
    before, after = (Intermittent().fit(panel(x, step=FIVE_MINUTES)).learned.expects for x in (chance, stopped))
    newest = np.array([WEEK - 1])
    assert after.at(stopped[None], newest, newest[:, None] + 1)[0, 0, 0] < 0.02
    assert before.at(chance[None], newest, newest[:, None] + 1)[0, 0, 0] > 0.5

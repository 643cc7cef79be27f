"""What is replayed: many recent moments, at all minutes of the clock."""

import numpy as np
import pytest

from models.backtest import FAR, NEAR_MANY, NEAR_ONE, NEAR_PEAK, kind, origins_of, replay
from models.forecast import StepWindow
from models.training import TABLE_LEVELS
from tests.support.panels import FIVE_MINUTES, daily_waves

DAY = 288
HOUR_AHEAD = (StepWindow(12, 12),)


def test_the_newest_day_has_twice_as_many_origins_as_the_one_a_week_ago() -> None:
    origins = origins_of(14 * DAY, HOUR_AHEAD, DAY, 640)
    newest, oldest = (origins > 13 * DAY).sum(), (origins < 8 * DAY).sum()
    assert origins.min() > 6.9 * DAY
    assert 1.6 < newest / oldest < 2.2


def test_all_windows_are_over_at_the_newest_origin() -> None:
    origins = origins_of(14 * DAY, HOUR_AHEAD, DAY, 64)
    assert origins.max() + 12 <= 14 * DAY - 1


def test_a_job_by_the_clock_is_met_at_all_its_minutes() -> None:
    origins = origins_of(14 * DAY, HOUR_AHEAD, DAY, 64)
    assert set((origins % 12).tolist()) == set(range(12))


def test_a_day_of_history_is_too_short_to_replay() -> None:
    assert not len(origins_of(DAY, HOUR_AHEAD, DAY, 64))


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (StepWindow(1, 1), NEAR_ONE),
        (StepWindow(12, 12), NEAR_MANY),
        (StepWindow(2, 8), NEAR_PEAK),
        (StepWindow(24, 24), FAR),
    ],
)
def test_a_window_has_replays_that_stand_for_it(window: StepWindow, expected: int) -> None:
    assert kind(window) == expected


def test_errors_of_higher_levels_of_a_wave_with_noise_are_those_of_each_level() -> None:
    values = daily_waves(2, days=10, step=FIVE_MINUTES, noise=0.3).values.astype(np.float32)
    replayed = replay(values, DAY, 48)
    assert replayed.errors.shape == (2, FAR + 1, len(TABLE_LEVELS))
    assert replayed.loss.shape == (2, len(replayed.ages), 6)
    assert np.abs(replayed.errors).max() < 1

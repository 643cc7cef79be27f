"""Moments that are replayed: many recent ones, at all minutes of the clock."""

import pytest

from models.backtest import origins_of
from models.experts import FAR, ONE, PEAK, reach_of
from models.forecast import StepWindow

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
        (StepWindow(1, 1), ONE),
        (StepWindow(12, 12), ONE),
        (StepWindow(2, 8), PEAK),
        (StepWindow(24, 24), FAR),
    ],
)
def test_a_window_has_replays_that_stand_for_it(window: StepWindow, expected: int) -> None:
    assert reach_of(window) == expected

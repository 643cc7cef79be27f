"""A series that moved to another level for good is known at the level of today."""

import numpy as np
import pytest

from models import Adaptive, Panel, Ridge
from models.evaluate import pinball
from models.shift import levelled, shifts
from tests.support.panels import FIVE_MINUTES, MONDAY, daily_waves

DAY = 288
LEVELS = (0.5, 0.9, 0.95)
CALM = daily_waves(3, days=12, step=FIVE_MINUTES)


def moved(days_ago: float, factor: float) -> Panel:
    """Day waves that cost `factor` times as much since then."""
    values = CALM.values.copy()
    values[:, -round(days_ago * DAY) :] *= factor
    return Panel(values, CALM.start, CALM.step, CALM.keys)


def loss(past: Panel, actual: np.ndarray) -> float:
    return float(pinball(actual, Ridge().fit(past).forecast(12, LEVELS).values, LEVELS).mean())


@pytest.mark.parametrize("days_ago", [0.25, 0.5, 1.5, 4.0])
@pytest.mark.parametrize("factor", [0.4, 1.8, 6.0])
def test_a_shift_is_found_with_its_time_and_factor(days_ago: float, factor: float) -> None:
    shift = shifts(moved(days_ago, factor))
    np.testing.assert_allclose(shift.factor, factor, rtol=0.1)
    np.testing.assert_allclose(shift.bin, (12 - days_ago) * DAY, atol=DAY / 4)


def test_a_series_that_was_nothing_rises_by_no_more_than_a_thousand() -> None:
    values = CALM.values.copy()
    values[:, :-DAY] = 0
    factors = shifts(Panel(values, CALM.start, CALM.step, CALM.keys)).factor
    assert ((factors > 10) & (factors <= 1000)).all()


def test_the_past_is_brought_to_the_level_of_today() -> None:
    panel = moved(1.5, 1.8)
    past = levelled(panel, shifts(panel))
    np.testing.assert_allclose(past.values[:, :DAY].mean(), 1.8 * CALM.values[:, :DAY].mean(), rtol=0.1)
    np.testing.assert_array_equal(past.values[:, -DAY:], panel.values[:, -DAY:])


def test_a_calm_series_stays_as_it_is() -> None:
    assert levelled(CALM, shifts(CALM)) is CALM


def test_a_weekend_is_no_shift() -> None:
    bins = np.arange(13 * DAY + DAY // 2)
    quiet = np.where(bins // DAY % 7 >= 5, 0.4, 1.0)
    wave = daily_waves(1, days=14, step=FIVE_MINUTES).values[:, : len(bins)]
    assert shifts(Panel(wave * quiet, MONDAY, FIVE_MINUTES, ("one",))).factor.tolist() == [1.0]


def test_a_spike_is_no_shift() -> None:
    values = CALM.values.copy()
    values[:, -40:-20] *= 8
    assert shifts(Panel(values, CALM.start, CALM.step, CALM.keys)).factor.tolist() == [1.0] * 3


def test_newer_bins_do_not_move_the_place_of_a_shift() -> None:
    panel = moved(1.0, 2.0)
    earlier = shifts(panel.until(panel.end - 60 * FIVE_MINUTES))
    later = levelled(panel.last(8 * DAY * FIVE_MINUTES), earlier)
    np.testing.assert_allclose(
        later.values[:, : 6 * DAY].mean(), 2 * CALM.values[:, 4 * DAY : 10 * DAY].mean(), rtol=0.05
    )


def test_a_day_of_history_shows_no_shift() -> None:
    short = moved(0.25, 3.0).last(DAY * FIVE_MINUTES)
    assert shifts(short).factor.tolist() == [1.0] * 3


def test_after_a_release_that_costs_twice_as_much_a_ridge_at_the_level_of_today_loses_less() -> None:
    whole = moved(2.0, 2.0)
    raw = at_level = 0.0
    for hours in (7, 12, 18, 24):
        past = whole.until(whole.end - (48 - hours) * 12 * FIVE_MINUTES)
        actual = whole.values[:, past.length : past.length + 12]
        raw += loss(past, actual)
        at_level += loss(levelled(past, shifts(past)), actual)
    assert at_level < 0.8 * raw


def test_a_rhythm_that_moved_three_days_ago_is_followed_and_the_old_one_forgotten() -> None:
    bins = np.arange(12 * DAY)
    rng = np.random.default_rng(4)
    at = np.where(bins < 9 * DAY, 12, 18) * 12
    busy = (bins % DAY >= at) & (bins % DAY < at + 24)
    values = 1 + 9 * busy + 0.05 * rng.random((1, len(bins)))
    before_noon = Panel(values[:, : 11 * DAY + 143], MONDAY, FIVE_MINUTES, ("batch",))
    before_six = Panel(values[:, : 11 * DAY + 215], MONDAY, FIVE_MINUTES, ("batch",))
    old, new = (Adaptive().fit(past).forecast(6, (0.5,)).values[0, 0, -1] for past in (before_noon, before_six))
    assert old < 3 < new

"""Coarse weeks end at the newest minute."""

from datetime import timedelta

import numpy as np
import pytest

from models import Panel, PanelError, create, freshened
from tests.support.panels import FIVE_MINUTES, MONDAY, daily_waves

MINUTE = timedelta(minutes=1)
WEEKS = daily_waves(2, days=9, step=FIVE_MINUTES)


def minutes(count: int, *, late: int = 0, value: float = 5.0) -> Panel:
    """So many minutes that end `late` minutes after the weeks."""
    end = WEEKS.end + late * MINUTE
    return Panel(np.full((2, count), value), end - count * MINUTE, MINUTE, WEEKS.keys)


@pytest.mark.parametrize("late", range(5))
def test_the_newest_bin_ends_with_the_newest_minute_and_holds_five(late: int) -> None:
    found = freshened(WEEKS, minutes(60, late=late))
    assert found.end == WEEKS.end + late * MINUTE
    assert (found.length, found.step) == (WEEKS.length, FIVE_MINUTES)
    np.testing.assert_array_equal(found.values[:, -12:], 5.0)


def test_older_bins_keep_their_values() -> None:
    found = freshened(WEEKS, minutes(60, late=3))
    np.testing.assert_array_equal(found.values[:, :-12], WEEKS.values[:, :-12])


def test_minutes_reach_the_forecast() -> None:
    calm, risen = (freshened(WEEKS, minutes(30, late=4, value=value)) for value in (1.0, 9.0))
    low, high = (create("prior").fit(panel).forecast(1, (0.5,)).values for panel in (calm, risen))
    assert (high > 2 * low).all()


def test_minutes_of_other_series_are_refused() -> None:
    with pytest.raises(PanelError, match="differ in series"):
        freshened(WEEKS, Panel(np.ones((1, 60)), WEEKS.end, MINUTE, ("other",)))


def test_minutes_that_do_not_carry_on_are_refused() -> None:
    before = Panel(np.ones((2, 60)), MONDAY, MINUTE, WEEKS.keys)
    with pytest.raises(PanelError, match="do not carry on"):
        freshened(WEEKS, before)

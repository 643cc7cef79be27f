"""New bins are written behind the known ones, and nobody who holds an older panel notices."""

import numpy as np
import pytest

from models import LastValue, Panel, PanelError
from models.rule import continued
from tests.support.panels import HOUR, MONDAY, panel

KNOWN = panel(range(32))


def bin_at(hour: int, value: float = 7.0) -> Panel:
    return panel([value], start=MONDAY + hour * HOUR)


def test_the_second_bin_needs_no_copy() -> None:
    first, room = continued(KNOWN, bin_at(32), None)
    second, _ = continued(first, bin_at(33), room)
    assert np.shares_memory(first.values, second.values)
    assert second.values.tolist() == [[*range(32), 7, 7]]


def test_two_futures_of_one_panel_do_not_see_each_other() -> None:
    first, room = continued(KNOWN, bin_at(32), None)
    low, _ = continued(first, bin_at(33, 1.0), room)
    high, _ = continued(first, bin_at(33, 2.0), room)
    assert (low.values[0, -1], high.values[0, -1]) == (1.0, 2.0)


def test_when_the_room_is_used_up_there_is_another() -> None:
    panel, room = KNOWN, None
    for hour in range(32, 48):
        panel, room = continued(panel, bin_at(hour, hour), room)
    assert panel.values.tolist() == [list(range(48))]


def test_a_bin_that_corrects_a_known_one_leaves_the_older_panel_alone() -> None:
    first, room = continued(KNOWN, bin_at(32), None)
    corrected, _ = continued(first, bin_at(32, 9.0), room)
    assert (first.values[0, -1], corrected.values[0, -1]) == (7.0, 9.0)


def test_a_hole_is_refused() -> None:
    with pytest.raises(PanelError, match="pass the gap as NaN"):
        continued(KNOWN, bin_at(40), None)


def test_a_fitted_model_that_gets_bin_after_bin_remembers_its_two_weeks_and_no_more() -> None:
    fitted = LastValue().fit(panel(range(14 * 24)))
    for hour in range(14 * 24, 14 * 24 + 50):
        fitted = fitted.update(bin_at(hour, hour))
    assert fitted.history.values.tolist() == [list(range(50, 14 * 24 + 50))]


def test_an_update_with_more_new_bins_than_are_known_forgets_none() -> None:
    """They were taken for a window of everything."""
    fitted = LastValue().fit(panel(range(4))).update(panel(range(4, 10), start=MONDAY + 4 * HOUR))
    assert fitted.history.values.tolist() == [list(range(10))]

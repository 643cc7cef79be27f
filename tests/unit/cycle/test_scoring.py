from __future__ import annotations

import numpy as np
import pytest

from forecaster.cycle.gates import measured_peaks
from forecaster.domain.window import MINUTE, Window
from tests.support.builders import after
from tests.support.recommendations import workload_id

GAP = np.nan


def peak(values: list[float], begin: int, until: int) -> float:
    """Peak between two minutes after noon, of values for the minutes that end at noon, one later and so on."""
    window = Window((workload_id(),), after(0), MINUTE, np.array([values], np.float32))
    return float(measured_peaks(window, np.array([0]), after(begin), after(until))[0])


def test_the_minute_that_ends_with_the_window_counts_and_the_one_that_ends_where_it_begins_does_not() -> None:
    assert peak([9, 9, 1, 2, 9], begin=1, until=3) == 2


@pytest.mark.parametrize(("values", "expected"), [([0, 1, GAP, 3, GAP], 3), ([0, GAP, GAP, 3, GAP], GAP)])
def test_half_of_its_minutes_must_be_known(values: list[float], expected: float) -> None:
    np.testing.assert_equal(peak(values, begin=0, until=4), expected)


@pytest.mark.parametrize(("begin", "until"), [(-3, 1), (1, 9), (2, 2)], ids=["forgotten", "to come", "empty"])
def test_a_window_beyond_what_is_kept_has_no_peak(begin: int, until: int) -> None:
    assert np.isnan(peak([1, 2, 3], begin, until))

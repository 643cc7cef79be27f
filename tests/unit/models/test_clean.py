"""Cleaning looks back only, and leaves alone what it is not told to mend."""

import numpy as np

from models.calendar import Event
from models.clean import masked
from tests.support.panels import HOUR, daily_waves


def test_a_span_of_one_series_is_a_gap_in_that_series_only() -> None:
    waves = daily_waves(2, days=2)
    throttled = Event("throttled", waves.start + 3 * HOUR, waves.start + 5 * HOUR)
    gaps = np.isnan(masked(waves, {"s1": [throttled]}).values)
    assert gaps[0].sum() == 0
    assert np.flatnonzero(gaps[1]).tolist() == [3, 4]

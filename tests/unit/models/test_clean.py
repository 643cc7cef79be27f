"""Cleaning looks back only, and leaves alone what it is not told to mend."""

import numpy as np

from models import Panel, Theta
from models.calendar import Event
from models.clean import bounded, masked
from tests.support.panels import HOUR, daily_waves, panel


def test_a_span_of_one_series_is_a_gap_in_that_series_only() -> None:
    waves = daily_waves(2, days=2)
    throttled = Event("throttled", waves.start + 3 * HOUR, waves.start + 5 * HOUR)
    gaps = np.isnan(masked(waves, {"s1": [throttled]}).values)
    assert gaps[0].sum() == 0
    assert np.flatnonzero(gaps[1]).tolist() == [3, 4]


def test_a_fault_a_thousand_times_too_high_does_not_bend_a_fit() -> None:
    waves = daily_waves(1, days=14)
    faulty = waves.values.copy()
    faulty[0, 200:202] = 1e6
    path = Theta().fit(Panel(faulty, waves.start, HOUR, waves.keys)).forecast(24, (0.5,)).values
    np.testing.assert_allclose(path, Theta().fit(waves).forecast(24, (0.5,)).values, atol=3.0)


def test_a_series_that_is_nearly_always_nothing_is_left_as_it_is() -> None:
    rare = panel([0.0] * 400 + [9.0], step=HOUR)
    assert bounded(rare).values.tolist() == rare.values.tolist()

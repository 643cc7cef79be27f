"""Nearest days: today looks like some day, and goes on like it."""

import numpy as np

from models import NearestDay
from tests.support.panels import HOUR, panel

WORK = 5 + 4 * np.sin(np.arange(24) / 24 * 2 * np.pi)
OFF = np.full(24, 2.0)


def test_a_day_that_begins_like_a_day_off_goes_on_like_one() -> None:
    rng = np.random.default_rng(0)
    days = np.concatenate([WORK, WORK, OFF, WORK, OFF, WORK, WORK, OFF, WORK, OFF, WORK, WORK])
    days = days + 0.01 * rng.standard_normal(len(days))
    off = NearestDay().fit(panel([*days, *OFF[:12]], step=HOUR)).forecast(8, (0.5,)).values[0, 0]
    work = NearestDay().fit(panel([*days, *WORK[:12]], step=HOUR)).forecast(8, (0.5,)).values[0, 0]
    np.testing.assert_allclose(off, OFF[12:20], atol=0.7)
    np.testing.assert_allclose(work, WORK[12:20], atol=0.7)


def test_a_day_ahead_is_read_from_days_that_are_over() -> None:
    path = NearestDay().fit(panel(np.tile(WORK, 6), step=HOUR)).forecast(60, (0.5,)).values[0, 0]
    np.testing.assert_allclose(path, np.tile(WORK, 3)[:60], atol=1e-6)

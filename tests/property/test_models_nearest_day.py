"""Nearest days depend on the past alone, and equal days are among them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models import NearestDay
from models.nearest_day import near_days

DAY = 24


@given(seed=st.integers(0, 2**16), origin=st.integers(3 * DAY, 6 * DAY), same=st.integers(1, 2))
def test_the_day_that_was_the_same_is_nearest(seed: int, origin: int, same: int) -> None:
    known = np.random.default_rng(seed).uniform(0, 10, (1, 7 * DAY))
    width = NearestDay.hours
    known[:, origin - width + 1 : origin + 1] = known[:, origin - same * DAY - width + 1 : origin - same * DAY + 1]
    assert near_days(known, np.array([origin]), DAY, NearestDay()).back[0, 0, 0] == same


@given(seed=st.integers(0, 2**16), origin=st.integers(3 * DAY, 6 * DAY))
def test_what_came_later_changes_nothing(seed: int, origin: int) -> None:
    rng = np.random.default_rng(seed)
    known = rng.uniform(0, 10, (2, 7 * DAY))
    other = known.copy()
    other[:, origin + 1 :] = rng.uniform(0, 100, other[:, origin + 1 :].shape)
    for nearest, two in zip(
        *(near_days(x, np.array([origin]), DAY, NearestDay()) for x in (known, other)), strict=True
    ):
        np.testing.assert_allclose(nearest, two)

"""One look at a pod finds the count that bisection finds, for every distribution, price and floor."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forecaster.decisions.worth import all_worth_having
from forecaster.forecasting.peaks import LEVELS
from forecaster.replay.fast.worth import worth_having

SOME_LEVELS = st.sampled_from([LEVELS, (0.5, 0.85, 0.99), (0.5,)])
AMOUNTS = st.floats(0, 60) | st.integers(0, 60).map(float)
PRICES = st.floats(0.004, 0.99) | st.sampled_from([0.01, 0.05, 0.1, 0.15, 0.5])


@given(st.data(), SOME_LEVELS, st.lists(PRICES, min_size=1, max_size=2))
def test_one_look_finds_what_bisection_finds(
    data: st.DataObject, levels: tuple[float, ...], prices: list[float]
) -> None:
    peaks = np.sort(data.draw(st.lists(AMOUNTS, min_size=len(levels), max_size=len(levels))))
    floor = np.array([data.draw(AMOUNTS)])
    bisected = [all_worth_having(levels, peaks[None], price, at_least=floor).tolist() for price in prices]
    assert [one.tolist() for one in worth_having(levels, peaks[:, None], prices, at_least=floor)] == bisected

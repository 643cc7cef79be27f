"""How many pods are worth having, for every distribution and price."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.decisions.worth import REACH, all_worth_having, pods_worth_having

LEVELS = (0.1, 0.5, 0.9, 0.99)
PEAKS = st.lists(st.floats(0, 50), min_size=4, max_size=4).map(sorted)
PRICES = st.floats(0.01, 0.99)
FLOORS = st.floats(0, 60)


@given(PEAKS, PRICES, FLOORS)
def test_arrays_say_what_single_workloads_say(peaks: list[float], price: float, floor: float) -> None:
    one = pods_worth_having(LEVELS, peaks, price, at_least=floor)
    many = all_worth_having(LEVELS, np.array([peaks]), price, at_least=np.array([floor]))
    assert many.tolist() == [one]


@given(PEAKS, PRICES, st.lists(st.floats(0, 20), min_size=4, max_size=4))
def test_a_higher_forecast_never_asks_for_fewer(peaks: list[float], price: float, more: list[float]) -> None:
    higher = sorted(peak + step for peak, step in zip(peaks, more, strict=True))
    assert pods_worth_having(LEVELS, higher, price) >= pods_worth_having(LEVELS, peaks, price)


@given(PEAKS, PRICES, PRICES)
def test_a_dearer_pod_is_never_wanted_more(peaks: list[float], price: float, other: float) -> None:
    cheap, dear = sorted((price, other))
    assert pods_worth_having(LEVELS, peaks, cheap) >= pods_worth_having(LEVELS, peaks, dear)


@given(PEAKS, PRICES, FLOORS)
def test_what_is_measured_is_carried_but_for_a_part_of_a_pod(peaks: list[float], price: float, floor: float) -> None:
    assert pods_worth_having(LEVELS, peaks, price, at_least=floor) >= np.floor(floor)


@given(PEAKS, PRICES)
def test_nothing_is_provided_beyond_the_reach(peaks: list[float], price: float) -> None:
    assert pods_worth_having(LEVELS, peaks, price) <= np.ceil(REACH * peaks[-1])


@given(PEAKS, PRICES)
def test_the_last_pod_is_worth_its_price_and_the_next_is_not(peaks: list[float], price: float) -> None:
    """Against a plain Monte-Carlo integral over the same quantile function."""
    count = pods_worth_having(LEVELS, peaks, price)
    u = (np.arange(4000) + 0.5) / 4000
    x = np.interp(u, (0.0, *LEVELS, 1.0), (peaks[0], *peaks, REACH * peaks[-1]))
    worth = [np.clip(x - n, 0, 1).mean() for n in (count - 1, count)]
    assert worth[1] <= price + 1e-3
    assert count <= np.floor(peaks[0]) or worth[0] > price - 1e-3


@pytest.mark.parametrize(("price", "count"), [(0.4, 2), (0.2, 3)])
def test_a_certain_part_of_a_pod_is_worth_its_share(price: float, count: int) -> None:
    """2.3 pods for certain: the third is used for three tenths (and a little by what lies beyond the quantiles)."""
    assert pods_worth_having(LEVELS, [2.3] * 4, price) == count

"""Number of pods that are worth their price, for every distribution and price."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.demand.censored import AT_CAPACITY
from forecaster.horizontal.newsvendor import KEEP, REACH, cut_off, newsvendor_replicas

LEVELS = (0.1, 0.5, 0.9, 0.99)
PEAKS = st.lists(st.floats(0, 50), min_size=4, max_size=4).map(sorted)
PRICES = st.floats(0.01, 0.99)
FLOORS = st.floats(0, 60)
NEGLIGIBLE = 1e-9


def cut_off_of_one(measured: float, ready: int, capacity: float) -> bool:
    """`cut_off` of one row."""
    full = ready * capacity
    return full > 0 and abs(measured / full - 1.0) <= AT_CAPACITY


def both(peaks: list[float], price: float, at_least: float = 0.0) -> tuple[int, int]:
    """Pods to have, and pods to keep."""
    counts = newsvendor_replicas(LEVELS, np.array([peaks]).T, np.array([price]), at_least=np.array([at_least]))
    return int(counts[0][0]), int(counts[1][0])


def replicas(peaks: list[float], price: float, at_least: float = 0.0) -> int:
    return both(peaks, price, at_least)[0]


def used(peaks: list[float], pod: int) -> float:
    """The share of this pod that is expected to be used: the integral of P(X > x) over it, piece by piece."""
    ends, beyond = [*peaks, REACH * peaks[-1]], [*(1 - level for level in LEVELS), 0.0]
    grid = np.unique(np.clip([pod - 1, *ends, pod], pod - 1, pod))
    share = 0.0
    for begin, end in pairwise(grid):
        middle = (begin + end) / 2
        place = int(np.searchsorted(ends, middle))
        if place == 0:
            share += end - begin
        elif place < len(ends):
            part = (middle - ends[place - 1]) / (ends[place] - ends[place - 1])
            share += (end - begin) * (beyond[place - 1] + part * (beyond[place] - beyond[place - 1]))
    return share


@given(PEAKS, PRICES, FLOORS)
def test_the_last_pod_is_worth_its_price_and_the_next_is_not(peaks: list[float], price: float, floor: float) -> None:
    known = [max(peak, floor) for peak in peaks]
    for count, limit in zip(both(peaks, price, floor), (price, KEEP * price), strict=True):
        assert used(known, count + 1) <= limit + NEGLIGIBLE
        assert count == 0 or used(known, count) >= limit - NEGLIGIBLE


@given(PEAKS, PRICES, st.lists(st.floats(0, 20), min_size=4, max_size=4))
def test_a_higher_forecast_never_asks_for_fewer(peaks: list[float], price: float, more: list[float]) -> None:
    higher = sorted(peak + step for peak, step in zip(peaks, more, strict=True))
    assert replicas(higher, price) >= replicas(peaks, price)


@given(PEAKS, PRICES, PRICES)
def test_a_dearer_pod_is_never_asked_for_more(peaks: list[float], price: float, other: float) -> None:
    cheap, dear = sorted((price, other))
    assert replicas(peaks, cheap) >= replicas(peaks, dear)


@given(PEAKS, PRICES)
def test_what_is_worth_having_is_worth_keeping(peaks: list[float], price: float) -> None:
    have, keep = both(peaks, price)
    assert keep >= have


@given(PEAKS, PRICES, FLOORS)
def test_what_is_measured_is_carried_but_for_a_part_of_a_pod(peaks: list[float], price: float, floor: float) -> None:
    assert replicas(peaks, price, floor) >= np.floor(floor)


@given(PEAKS, PRICES)
def test_nothing_is_provided_beyond_the_reach(peaks: list[float], price: float) -> None:
    assert replicas(peaks, price) <= np.ceil(REACH * peaks[-1])


@given(st.lists(PEAKS, min_size=1, max_size=5), PRICES, FLOORS)
def test_one_price_for_all_rows_is_the_same_as_that_price_in_each(
    rows: list[list[float]], price: float, floor: float
) -> None:
    peaks, floors = np.array(rows).T, np.full(len(rows), floor)
    together = newsvendor_replicas(LEVELS, peaks, price, at_least=floors)
    each = newsvendor_replicas(LEVELS, peaks, np.full(len(rows), price), at_least=floors)
    assert [part.tolist() for part in together] == [part.tolist() for part in each]


@pytest.mark.parametrize(("price", "count"), [(0.4, 2), (0.2, 3)])
def test_a_certain_part_of_a_pod_is_worth_its_share(price: float, count: int) -> None:
    """2.3 pods for certain: the third is used for three tenths (and a little by what lies beyond the quantiles)."""
    assert replicas([2.3] * 4, price) == count


@given(st.floats(0, 100), st.integers(0, 20), st.floats(0.01, 10) | st.sampled_from((0.5, 1.0)))
def test_demand_is_cut_off_where_it_is_for_one_workload(measured: float, ready: int, capacity: float) -> None:
    demand = cut_off(np.array([measured]), np.array([ready]), np.array([capacity]))
    assert demand.tolist() == [cut_off_of_one(measured, ready, capacity)]

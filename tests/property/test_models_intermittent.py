"""Intermittent: schedules of any period are found, and the smoothing is the textbook's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.intermittent import IDLE_SHARE, MUCH, OFTEN, first_work, periods, work_rate

DAY = 96


@given(period=st.integers(3, DAY), length=st.integers(1, 30), phase=st.integers(0, DAY))
def test_the_period_of_a_schedule_is_found(period: int, length: int, phase: int) -> None:
    work = (np.arange(5 * DAY) + phase) % period < min(length, period // 2)
    assert periods(work[None], DAY)[0] == period


@given(period=st.integers(3, DAY // 8), phase=st.integers(0, DAY), missing=st.integers(0, 30))
def test_a_schedule_that_ran_often_survives_a_run_that_is_missing(period: int, phase: int, missing: int) -> None:
    work = (np.arange(5 * DAY) + phase) % period == 0
    starts = np.flatnonzero(work)
    work[starts[-1 - missing % len(starts)]] = False
    assert periods(work[None], DAY)[0] == period


@given(seed=st.integers(0, 2**16), share=st.floats(0.05, 0.95))
def test_work_that_comes_by_chance_has_no_period(seed: int, share: float) -> None:
    work = np.random.default_rng(seed).random((1, 5 * DAY)) < share
    assert periods(work, DAY)[0] == 0


@given(seed=st.integers(0, 2**16))
def test_smoothing_is_that_of_teunter_syntetos_and_babai(seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand = np.where(rng.random(200) < 0.3, rng.uniform(1, 5, 200), 0.0)
    idle = IDLE_SHARE * demand.max()
    start = first_work(demand[None], demand[None] > idle)
    often, much = start.often[0], start.much[0]
    for value in demand:
        often += OFTEN * ((value > idle) - often)
        much += MUCH * (value - much) if value > idle else 0.0

    found = work_rate(demand[None], np.array([idle]), np.array([50, 199]))
    np.testing.assert_allclose(found[0, -1], often * much)

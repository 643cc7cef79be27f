"""Demand is open-loop: what the count of pods does leaves no trace in it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forecaster.demand.warm_up import starting, warm_up, without_warm_up

PATHS = st.lists(st.integers(1, 40), min_size=2, max_size=60)


@given(PATHS, st.floats(0.1, 100), st.floats(0, 5), st.integers(1, 5))
def test_a_constant_demand_is_constant_under_any_path_of_the_count(
    path: list[int], demand: float, extra: float, minutes: int
) -> None:
    pods = np.array([path], float)
    usage = demand + extra * starting(pods, minutes)
    estimate = without_warm_up(usage, pods, minutes, np.array([extra]))
    assert np.allclose(estimate, demand)


@given(PATHS, st.floats(0.1, 100), st.floats(0, 5))
def test_what_was_learned_of_starts_is_what_they_took(path: list[int], demand: float, extra: float) -> None:
    """Each step of the path lasts long enough for its pods to settle."""
    pods = np.repeat(np.array([path], float), 4, axis=1)
    usage = demand + extra * starting(pods, 2)
    each = warm_up(usage, pods, 2)
    rises = int((np.diff(path) > 0).sum())
    assert np.allclose(each, extra if rises >= 3 else 0.0)


@given(PATHS, st.floats(0, 5), st.integers(1, 5))
def test_demand_is_never_negative_and_never_above_usage(path: list[int], each: float, minutes: int) -> None:
    pods = np.array([path], float)
    usage = pods * 0.5
    estimate = without_warm_up(usage, pods, minutes, np.array([each]))
    assert (estimate >= 0).all()
    assert (estimate <= usage).all()

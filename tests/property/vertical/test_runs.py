"""Sizes by runs: the stated chance holds for any peaks, and no size lies below a known peak."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.vertical.sizing.containers import ContainerSpec
from forecaster.vertical.sizing.runs import MIN_RUNS, Runs, run_sizes
from tests.support.builders import GIB, RESOURCES

MIB = 2.0**20


def runs(largest: float, completed: int) -> Runs:
    return Runs({}, {f"run-{i}": largest for i in range(completed)})


def memory_of(known: Runs, policy: VerticalPolicy | None = None, oom_floor: float = 0.0) -> float:
    spec = ContainerSpec(RESOURCES, oom_floor, name="app")
    (sizes,) = run_sizes([known], [spec], policy or VerticalPolicy())
    assert sizes.memory is not None
    assert sizes.memory.limit is not None
    return sizes.memory.limit


@given(st.lists(st.floats(1, 1e12), min_size=2, max_size=12, unique=True))
def test_each_of_the_runs_may_be_the_next_and_one_of_them_passes_the_others(peaks: list[float]) -> None:
    """The runs are exchangeable: each is equally likely to be next, so the share that passes the others counts."""
    passed = [next_ > max(peak for peak in peaks if peak != next_) for next_ in peaks]
    assert np.mean(passed) <= runs(max(peaks), len(peaks) - 1).chance_above + 1e-12


@given(st.floats(1 * MIB, 1e12), st.integers(MIN_RUNS, 100), st.floats(0, 1e12), st.floats(1, 1e10))
def test_no_size_is_below_a_known_peak_the_floor_of_a_kill_or_the_policy(
    largest: float, completed: int, oom_floor: float, least: float
) -> None:
    chosen = memory_of(runs(largest, completed), VerticalPolicy(min_memory=least), oom_floor)
    assert chosen >= max(largest, oom_floor, least) * (1 - 1e-9)


@given(st.floats(1 * MIB, 1e11), st.floats(1, 10))
def test_a_higher_peak_never_means_less_memory(largest: float, more: float) -> None:
    lower, higher = (memory_of(runs(peak, 9)) for peak in (largest, largest * more))
    assert higher >= lower * (1 - 1e-9) or higher == GIB, "today's size may stay"

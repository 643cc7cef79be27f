"""Each clamp on arrays against its rule for one number, at irregular times."""

from __future__ import annotations

from datetime import timedelta
from itertools import accumulate
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forecaster.horizontal.clamps import FEW, bounded, highest_since, lowered_by_event, within_radius
from forecaster.horizontal.row import UNKNOWN
from forecaster.horizontal.state import State
from forecaster.hpa.behavior import PastRecommendation
from forecaster.hpa.limits import bound, stabilize_down
from forecaster.hpa.numbers import MAX_INT32
from tests.property.hpa_strategies import NOW

if TYPE_CHECKING:
    from forecaster.horizontal.clamps import ClampContext

GAPS = st.lists(st.integers(1, 400), min_size=1, max_size=12)
"""Seconds between cycles, any of them."""
COUNTS = st.none() | st.integers(0, 30)


@st.composite
def courses(draw: st.DrawFn) -> list[tuple[float, int | None]]:
    """Ages of cycles in seconds, the oldest first, and the recommendation of each; None where there was none."""
    ages = list(accumulate(draw(GAPS)))
    return [(float(age), draw(COUNTS)) for age in reversed(ages)]


def state_of(course: list[tuple[float, int | None]]) -> State:
    state, now = State.new(1), NOW.timestamp()
    for age, count in course:
        value = np.array([UNKNOWN if count is None else count])
        state = state.opened(now - age, np.inf, ()).recommended(value)
    return state.opened(now, np.inf, ())


@given(courses(), st.integers(0, 30), st.integers(0, 3600), st.booleans())
def test_stabilization_is_that_of_the_hpa_by_time(
    course: list[tuple[float, int | None]],
    count: int,
    window: int,
    uniform: bool,  # noqa: FBT001  drawn
) -> None:
    history = tuple(
        PastRecommendation(replicas, NOW - timedelta(seconds=age)) for age, replicas in course if replicas is not None
    )
    expected, _ = stabilize_down(history, count, timedelta(seconds=window), NOW)
    width = float(window) if uniform else np.array([float(window)])
    highest = highest_since(state_of(course), width, NOW.timestamp())
    assert max(count, int(highest[0])) == expected


@given(st.integers(0, 500), st.integers(0, 200), st.none() | st.floats(0.05, 10), st.integers(0, 500))
def test_a_radius_holds_on_both_sides_and_reaches_what_is_measured(
    count: int, current: int, surge: float | None, reactive: int
) -> None:
    share = np.array([np.nan if surge is None else surge])
    near = int(within_radius(np.array([count]), np.array([current]), share, np.array([reactive]))[0])
    if surge is None:
        assert near == count
    else:
        radius = max(FEW, int(np.ceil(surge * current)))
        lowest, highest = min(current - radius, reactive), max(current + radius, reactive)
        assert near == min(max(count, lowest), highest)


BOUNDS = st.sampled_from([1, 3, 8, 20, MAX_INT32])


@given(st.integers(0, 50), st.integers(0, 50), BOUNDS, BOUNDS)
def test_the_maximum_of_an_event_takes_nothing_from_measured_demand_unless_stated(
    count: int, reactive: int, most: int, bound: int
) -> None:
    columns = SimpleNamespace(events=SimpleNamespace(most=np.array([most]), bounds=np.array([bound])))
    desired = SimpleNamespace(reactive=np.array([reactive]))
    at = cast("ClampContext", SimpleNamespace(checked=columns, desired=desired))
    (after,) = lowered_by_event(np.array([count]), at)
    assert after <= min(count, bound)
    assert after <= max(most, reactive)
    assert after >= min(count, reactive, bound)


@given(st.lists(st.integers(-300, 600), min_size=1, max_size=30), st.integers(0, 900))
def test_a_state_has_as_many_slots_as_its_window_and_one_slot_more(gaps: list[int], keep: int) -> None:
    """Whatever the clock does, instants never fall, and the stored ones reach back to the window's begin."""
    state, now = State.new(1), 0.0
    for count, gap in enumerate(gaps):
        now += gap
        state = state.opened(now, keep, ()).recommended(np.array([count]))
        assert list(state.times) == sorted(state.times)
        assert state.times[-1] == now
        assert sum(time < now - keep for time in state.times) <= 1


@given(st.integers(-5, 3000), st.integers(0, 50), st.integers(0, 2000))
def test_bounds_are_those_of_the_hpa(count: int, lowest: int, more: int) -> None:
    expected, _ = bound(count, lowest, lowest + more, growth=MAX_INT32)
    assert bounded(np.array([count]), np.array([lowest]), np.array([lowest + more])).tolist() == [expected]

"""The capacity of a pod is learned between the owner's target and the load that proved to be too much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.demand.capacity import LearnedCapacity, fullest, learned, per_pod, rolled_out, settled

CALM = np.zeros(1000, bool)


def test_loads_that_were_carried_well_raise_it() -> None:
    after = learned(LearnedCapacity(40.0), np.full(1000, 80.0), CALM, target=40.0, version="v1")
    assert 75 < after.amount < 80
    assert (after.minutes, after.version) == (1000, "v1")


def test_loads_that_strained_the_pods_lower_it_though_not_below_the_target() -> None:
    load = np.full(1000, 30.0)
    after = learned(LearnedCapacity(50.0), load, ~CALM, target=40.0, version="v1")
    assert 40 <= after.amount < 41


def test_a_few_minutes_move_it_little() -> None:
    after = learned(LearnedCapacity(40.0), np.full(6, 80.0), CALM[:6], target=40.0, version="v1")
    assert 40 < after.amount < 45


def test_nothing_seen_changes_nothing() -> None:
    assert learned(LearnedCapacity(7.0, 30), np.full(5, np.nan), CALM[:5], target=1.0, version="v2").amount == 7.0


def test_a_rollout_that_costs_as_much_keeps_what_was_learned() -> None:
    assert rolled_out(LearnedCapacity(80.0, 500, "v1", 0.010), "v2", 0.0105, 40.0) == LearnedCapacity(
        80.0, 500, "v2", 0.0105
    )


def test_a_rollout_that_costs_more_is_learned_anew() -> None:
    assert rolled_out(LearnedCapacity(80.0, 500, "v1", 0.010), "v2", 0.018, 40.0) == LearnedCapacity(
        40.0, 0, "v2", 0.018
    )


def test_loads_that_were_carried_well_raise_it_no_further_than_the_limit() -> None:
    assert (
        learned(LearnedCapacity(40.0), np.full(1000, 80.0), CALM, target=40.0, version="v1", most=50.0).amount <= 50.0
    )


def test_pods_that_came_or_went_in_a_minute_say_nothing() -> None:
    pods = np.array([2.0, 2.0, 3.0, 3.0, 0.0, 0.0])
    np.testing.assert_equal(settled(np.full(6, 6.0), pods), [np.nan, 3.0, np.nan, 2.0, np.nan, np.nan])


def test_of_a_throttled_hour_the_fullest_quarter_was_too_full() -> None:
    load = np.array([0.1, 0.2, np.nan, 0.3, 0.9])
    np.testing.assert_array_equal(fullest(load), [False, False, False, False, True])
    assert not fullest(np.full(3, np.nan)).any()


@given(st.floats(1, 100), st.floats(1, 100), st.lists(st.floats(0, 200), min_size=1, max_size=50), st.booleans())
def test_the_target_bounds_it_from_below(target: float, before: float, load: list[float], strained: bool) -> None:  # noqa: FBT001  drawn
    mask = np.full(len(load), strained)
    after = learned(LearnedCapacity(before), np.array(load), mask, target=target, version="v1")
    assert after.amount >= target - 1e-9 or after.amount == pytest.approx(target)


GAP = np.nan


def row(*values: float) -> np.ndarray:
    return np.array([values], np.float32)


def test_the_total_is_divided_by_the_pods_of_the_same_instant() -> None:
    np.testing.assert_array_equal(per_pod(row(4, 6, 8), row(2, 3, 2)), row(2, 2, 4))


def test_an_instant_without_a_ready_pod_is_a_gap() -> None:
    np.testing.assert_array_equal(per_pod(row(4, 6, 8, GAP), row(0, GAP, 2, 2)), row(GAP, GAP, 4, GAP))


def test_histories_of_different_length_meet_at_their_newest_end() -> None:
    np.testing.assert_array_equal(per_pod(row(9, 9, 4, 6), row(2, 3)), row(2, 2))


def test_without_a_common_instant_there_is_nothing() -> None:
    assert per_pod(row(1, 2), np.empty((1, 0))).shape == (1, 0)

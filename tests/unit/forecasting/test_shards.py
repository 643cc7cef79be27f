"""Workloads stay with their neighbours, so that their models are kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forecaster.forecasting.shards import ROWS, regrouped
from tests.support.recommendations import workload_id

IDS = [workload_id(f"web-{i}") for i in range(2 * ROWS + 10)]


def test_workloads_are_cut_in_their_order() -> None:
    assert [len(group) for group in regrouped([], IDS)] == [ROWS, ROWS, 10]
    assert [id_ for group in regrouped([], IDS) for id_ in group] == IDS


def test_the_same_workloads_in_another_order_change_nothing() -> None:
    groups = regrouped([], IDS)
    assert regrouped(groups, IDS[::-1]) == groups


def test_who_goes_changes_one_group() -> None:
    groups = regrouped([], IDS)
    left = regrouped(groups, IDS[1:])
    assert [len(group) for group in left] == [ROWS - 1, ROWS, 10]
    assert left[1:] == groups[1:]


def test_who_comes_takes_the_place_of_who_went() -> None:
    groups = regrouped(regrouped([], IDS), IDS[1:])
    assert [len(group) for group in regrouped(groups, [workload_id("new"), *IDS[1:]])] == [ROWS, ROWS, 10]


def test_an_empty_group_is_no_group() -> None:
    assert [len(group) for group in regrouped(regrouped([], IDS), IDS[ROWS:])] == [ROWS, 10]


@given(st.lists(st.sets(st.sampled_from(IDS)), max_size=5))
def test_everybody_has_one_place_whoever_comes_and_goes(rounds: list[set]) -> None:
    groups = []
    for ids in rounds:
        groups = regrouped(groups, sorted(ids))
        placed = [id_ for group in groups for id_ in group]
        assert sorted(placed) == sorted(ids)
        assert all(0 < len(group) <= ROWS for group in groups)

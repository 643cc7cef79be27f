"""CPU that pods use to start: measured in minutes, only where every start shows it."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.demand.warm_up import Starts, of_each, starts_of, unusual, with_starts, without_warm_up

NAN = float("nan")
TWO_TO_THREE = np.array([[2.0] * 6 + [3.0] * 12])


def test_a_start_shows_what_it_uses_above_the_level_around_it() -> None:
    usage = np.array([[4.0] * 6 + [5.0, 5.0] + [4.0] * 10])
    starts = starts_of(usage, TWO_TO_THREE)
    assert (starts.row.tolist(), starts.column.tolist(), starts.pods.tolist()) == ([0], [6], [1.0])
    assert starts.excess.tolist() == pytest.approx([0.4])


def test_load_that_goes_on_rising_is_no_warm_up() -> None:
    usage = np.arange(18.0)[None]
    assert starts_of(usage, TWO_TO_THREE).excess[0] < 0


def test_load_that_came_before_the_pods_and_went_is_no_warm_up() -> None:
    usage = np.array([[4.0] * 3 + [9.0] * 5 + [4.0] * 10])
    assert starts_of(usage, TWO_TO_THREE).excess[0] < 0


def test_starts_too_near_to_each_other_say_nothing() -> None:
    pods = np.array([[2.0] * 6 + [3.0] * 3 + [4.0] * 9])
    assert not len(starts_of(np.ones((1, 18)), pods).row)


@pytest.mark.parametrize("ready", [1, 11, 17], ids=["first minutes", "last minutes", "latest minute"])
def test_a_start_without_minutes_on_both_sides_is_not_measured_yet(ready: int) -> None:
    pods = np.array([[2.0] * ready + [3.0] * (18 - ready)])
    assert not len(starts_of(np.ones((1, 18)), pods).row)


def test_the_lower_ones_of_starts_that_are_alike_are_believed() -> None:
    assert of_each(np.array([[1.0, 1.1, 1.2, 1.3, 1.4]])).tolist() == pytest.approx([1.1])


@pytest.mark.parametrize(
    "starts",
    [
        pytest.param([1.0, 1.0, 1.0, 1.0, NAN], id="too few"),
        pytest.param([0.1, 0.2, 1.0, 2.0, 3.0], id="not alike"),
        pytest.param([-1.0, -1.0, 0.0, 1.0, 1.0], id="some show none"),
    ],
)
def test_nothing_is_learned_of_starts(starts: list[float]) -> None:
    assert of_each(np.array([starts])).tolist() == [0.0]


@pytest.mark.parametrize(
    ("usual", "stays"),
    [
        pytest.param([1.0, 1.0, 1.4, 1.0, 1.0, 1.0], False, id="a job at that time"),
        pytest.param([1.0, 1.0, 1.0, 1.4, 1.0, 1.0], False, id="a job that begins in the middle of five minutes"),
        pytest.param([1.0, 1.4, 1.0, 1.0, 1.0, 1.0], True, id="a job that is over by then"),
        pytest.param([1.0, 1.4, 1.4, 1.0, 1.0, 1.0], True, id="load that falls by then"),
        pytest.param([1.0, 1.0, 1.4, 1.4, 1.4, 1.0], True, id="load that rises and stays"),
        pytest.param([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], True, id="nothing"),
    ],
)
@pytest.mark.parametrize("minute", [10, 14], ids=["first", "last"])
def test_what_most_days_show_beside_a_start_is_demand(usual: list[float], *, stays: bool, minute: int) -> None:
    """Pods become ready in the first or the last minute of the third five; other days have the same load then."""
    starts = Starts(np.array([0]), np.array([minute]), np.array([1.0]), np.array([0.4]))
    assert bool(len(unusual(starts, np.array([usual]), 30).row)) is stays


def test_what_is_not_known_of_other_days_is_not_believed() -> None:
    starts = Starts(np.array([0]), np.array([10]), np.array([1.0]), np.array([4.0]))
    assert not len(unusual(starts, np.full((1, 4), NAN), 20).row)


def test_the_newest_starts_take_the_place_of_the_oldest() -> None:
    starts = Starts(np.array([0, 0]), np.array([10, 90]), np.array([2.0, 1.0]), np.array([4.0, 5.0]))
    assert with_starts(np.array([[7.0, 8.0, 9.0]]), starts).tolist() == [[9.0, 2.0, 5.0]]


def test_load_beyond_what_starts_explain_stays() -> None:
    usage = np.array([[4.0, 4.0, 9.0, 4.0, 4.0, 4.0]])
    pods = np.array([[2.0, 2.0, 3.0, 3.0, 3.0, 3.0]])
    assert without_warm_up(usage, pods, np.array([1.0])).tolist() == [[4.0, 4.0, 8.0, 4.0, 4.0, 4.0]]


def test_load_that_rises_with_the_pods_and_stays_is_demand() -> None:
    usage = np.array([[4.0, 4.0, 9.0, 9.0, 9.0, 9.0]])
    pods = np.array([[2.0, 2.0, 3.0, 3.0, 3.0, 3.0]])
    assert without_warm_up(usage, pods, np.array([1.0])).tolist() == usage.tolist()

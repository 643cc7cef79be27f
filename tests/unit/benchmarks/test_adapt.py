"""The shapes of ADAPT stay within what it states, and a pod serves when its own start-up is over."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.adapt.__main__ import PUBLISHED, made, ready_pods
from benchmarks.adapt.shapes import BINS, LEAST, SHAPES

MOST = {
    "smooth": 300,
    "bursty": 600,
    "bimodal": 400,
    "diurnal burst": 500,
    "flash crowd": 600,
    "slow ramp-up": 500,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_a_day_within_its_bounds_and_the_same_for_a_seed(shape: str) -> None:
    day, again, other = (SHAPES[shape](np.random.default_rng(seed)) for seed in (42, 42, 123))
    assert len(day) == BINS
    assert day.min() >= LEAST
    assert day.max() <= MOST[shape]
    np.testing.assert_array_equal(day, again)
    assert not np.array_equal(day, other)


def test_every_shape_has_its_published_figures() -> None:
    assert list(PUBLISHED) == list(SHAPES)


def test_a_crowd_comes_within_an_hour_and_stays_for_six() -> None:
    crowd = SHAPES["flash crowd"](np.random.default_rng(42))
    assert crowd[:170].max() < 100
    assert crowd[190:240].min() > 300
    assert crowd[245:].max() < 100


def test_a_pod_serves_when_the_start_up_of_its_own_scale_up_is_over() -> None:
    requested = np.array([[1.0, 3.0, 4.0, 4.0, 4.0, 4.0]])
    start_ups = np.array([1.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    assert ready_pods(requested, start_ups).tolist() == [[1, 1, 1, 2, 4, 4]]


def test_the_youngest_pods_are_given_back_first() -> None:
    requested = np.array([[2.0, 4.0, 2.0, 3.0, 3.0]])
    assert ready_pods(requested, np.full(5, 2.0)).tolist() == [[2, 2, 2, 2, 2]]


def test_a_day_is_played_after_a_week_of_others() -> None:
    replay = made("smooth", 42)
    assert len(replay.past) == 7 * 1440
    assert len(replay.demand) == 1440
    assert np.array_equal(replay.demand[::5], replay.demand[4::5])

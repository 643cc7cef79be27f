"""Usage of one pod."""

from __future__ import annotations

import numpy as np

from forecaster.demand.capacity import per_pod

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

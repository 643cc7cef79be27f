"""Usage of one pod; points of six hours, so that a day has four."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from forecaster.demand.per_pod import days_known, demanding_day, per_pod, quantile_of_known

GAP = np.nan
SIX_HOURS = timedelta(hours=6)


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


class TestDemandingDay:
    def test_is_the_one_with_the_highest_quantile(self) -> None:
        quiet, busy = [1.0, 1.0, 1.0, 9.0], [5.0, 5.0, 5.0, 5.0]
        assert demanding_day(row(*quiet, *busy, *quiet), 0.5, SIX_HOURS).tolist() == [5.0]

    def test_is_looked_for_within_seven_days(self) -> None:
        eight = row(9, 9, 9, 9, *[1.0] * 28)
        assert demanding_day(eight, 1.0, SIX_HOURS).tolist() == [1.0]

    def test_of_a_history_shorter_than_a_day_is_that_history(self) -> None:
        assert demanding_day(row(1, 3, 2), 1.0, SIX_HOURS).tolist() == [3.0]

    def test_needs_a_quarter_of_its_points(self) -> None:
        half_hours = timedelta(minutes=30)
        for known, expected in ((11, GAP), (12, 2.0)):
            day = row(*[GAP] * (48 - known), *[2.0] * known)
            np.testing.assert_array_equal(demanding_day(day, 1.0, half_hours), [expected])

    def test_is_not_known_where_nothing_is(self) -> None:
        assert np.isnan(demanding_day(row(*[GAP] * 8), 0.9, SIX_HOURS)).all()
        assert np.isnan(demanding_day(np.empty((1, 0)), 0.9, SIX_HOURS)).all()

    def test_of_each_workload_is_its_own(self) -> None:
        both = np.array([[1.0, 2.0, 3.0, 4.0], [4.0, GAP, GAP, GAP]])
        assert demanding_day(both, 1.0, SIX_HOURS).tolist() == [4.0, 4.0]


def test_days_known_count_points_and_not_time() -> None:
    assert days_known(row(1, GAP, 1, GAP, 1, 1), SIX_HOURS).tolist() == [1.0]


@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 20)), elements=st.floats(0, 1e9) | st.just(GAP)),
    st.floats(0, 1),
)
def test_the_quantile_of_what_is_known_is_that_of_numpy(values: np.ndarray, quantile: float) -> None:
    found = quantile_of_known(values, quantile, at_least=1)
    for one, expected in zip(found, values, strict=True):
        known = expected[~np.isnan(expected)]
        assert one == pytest.approx(np.quantile(known, quantile), rel=1e-9) if known.size else np.isnan(one)

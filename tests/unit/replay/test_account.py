"""Sums of accounts, and reading a curve of cost against shortage; test_engine defines shortage."""

from __future__ import annotations

from datetime import timedelta

import pytest

from forecaster.domain.window import DAY, HOUR
from forecaster.replay.account import Account, at_pod_hours, total


def test_shares_are_those_of_the_measured_time_and_of_the_demand() -> None:
    sum_ = total([Account(1.0, HOUR, HOUR, 2.0, 1.0), Account(6.0, 3 * HOUR, timedelta(), 6.0, 0.0)])
    assert sum_.short_share == pytest.approx(1 / 4)
    assert sum_.missing_share == pytest.approx(1 / 8)


def test_nothing_measured_is_no_share() -> None:
    assert total([]).short_share is None
    assert total([]).missing_share is None


def point(pod_hours: float, minutes_short: float, missing: float) -> Account:
    return Account(pod_hours, DAY, timedelta(minutes=minutes_short), 100.0, missing)


CURVE = [point(30.0, 0, 0.0), point(10.0, 60, 8.0), point(20.0, 20, 2.0)]


def test_between_two_points_it_is_linear() -> None:
    assert at_pod_hours(CURVE, 15.0) == point(15.0, 40, 5.0)


def test_a_point_that_spends_exactly_as_much_is_the_answer() -> None:
    assert at_pod_hours(CURVE, 20.0) == CURVE[2]


def test_of_points_that_spend_the_same_the_least_short_counts() -> None:
    assert at_pod_hours([point(10.0, 9, 3.0), point(10.0, 5, 1.0), point(10.0, 7, 2.0)], 10.0) == point(10.0, 5, 1.0)


def test_outside_the_sweep_there_is_no_value() -> None:
    assert at_pod_hours(CURVE, 9.9) is None
    assert at_pod_hours(CURVE, 30.1) is None

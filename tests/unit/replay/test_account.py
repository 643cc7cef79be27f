"""What counts as short, and what as paid for."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from forecaster.replay.account import Account, accounted, total
from forecaster.replay.pods import Pods, Starting

HOUR = timedelta(hours=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_pod_that_starts_costs_and_does_not_serve() -> None:
    account = accounted(Pods(2, (Starting(1, NOON),)), demand=2.5, pod_capacity=1.0, duration=HOUR)
    assert account == Account(pod_hours=3.0, measured=HOUR, short=HOUR, demand=2.5, missing=0.5)


def test_pods_that_are_exactly_full_are_not_short() -> None:
    assert accounted(Pods(2), 2.0, 1.0, HOUR).short == timedelta()


def test_time_without_a_measurement_costs_pods_and_is_neither_short_nor_measured() -> None:
    assert accounted(Pods(2), math.nan, 1.0, HOUR) == Account(pod_hours=2.0)


def test_shares_are_those_of_the_measured_time_and_of_the_demand() -> None:
    sum_ = total([accounted(Pods(1), 2.0, 1.0, HOUR), accounted(Pods(2), 2.0, 1.0, 3 * HOUR)])
    assert sum_.short_share == pytest.approx(1 / 4)
    assert sum_.missing_share == pytest.approx(1 / 8)


def test_nothing_measured_is_no_share() -> None:
    assert total([]).short_share is None
    assert total([]).missing_share is None

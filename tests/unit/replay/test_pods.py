"""Pods take time to start and none to stop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from forecaster.replay.pods import Pods, Starting, arrived, scaled

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=2)


def test_a_new_pod_serves_when_its_start_up_is_over() -> None:
    pods = scaled(Pods(3), 5, LATER)
    assert arrived(pods, LATER - timedelta(seconds=1)).ready == 3
    assert arrived(pods, LATER) == Pods(5)


def test_pods_that_start_are_removed_before_those_that_serve_and_the_youngest_first() -> None:
    pods = Pods(3, (Starting(2, NOON), Starting(2, LATER)))
    assert scaled(pods, 6, LATER) == Pods(3, (Starting(2, NOON), Starting(1, LATER)))
    assert scaled(pods, 4, LATER) == Pods(3, (Starting(1, NOON),))
    assert scaled(pods, 2, LATER) == Pods(2)


def test_the_number_that_is_there_already_changes_nothing() -> None:
    pods = Pods(3, (Starting(2, NOON),))
    assert scaled(pods, 5, LATER) is pods


@given(st.integers(0, 50), st.lists(st.integers(0, 50), max_size=20))
def test_exactly_the_pods_asked_for_exist_and_the_last_ask_is_met_after_a_start_up(ready: int, asks: list[int]) -> None:
    pods, now = Pods(ready), NOON
    for ask in asks:
        now += timedelta(seconds=15)
        pods = scaled(arrived(pods, now), ask, now + timedelta(minutes=2))
        assert pods.asked == ask
        assert all(some.pods > 0 for some in pods.starting)
    assert arrived(pods, now + timedelta(minutes=2)) == Pods(pods.asked)

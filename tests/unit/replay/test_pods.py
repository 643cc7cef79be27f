"""Pods take time to start and none to stop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forecaster.replay.assumptions import StartUp
from forecaster.replay.pods import Draws, Pods, StartUps
from tests.oracles.run_of_one import start_up_at

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SYNC = timedelta(seconds=15)


def pods_of(ready: int, minutes: float = 2) -> Pods:
    """One row of ready pods that take these minutes to start."""
    return Pods(np.array([ready]), Draws([StartUp((timedelta(minutes=minutes),))], SYNC))


def ask(pods: Pods, replicas: int, sync: int) -> None:
    pods.arrive(sync)
    pods.scale(np.array([replicas]), sync, NOON + sync * SYNC)


def counts(pods: Pods) -> tuple[int, int]:
    """Desired and ready pods of the row."""
    return int(pods.desired[0]), int(pods.ready[0])


def test_a_new_pod_serves_when_its_start_up_is_over() -> None:
    pods = pods_of(3)
    ask(pods, 5, 0)
    ask(pods, 5, 7)
    assert counts(pods) == (5, 3)
    ask(pods, 5, 8)
    assert counts(pods) == (5, 5)


def test_pods_that_start_are_removed_before_those_that_serve_and_the_youngest_first() -> None:
    """Two pods are requested at each of two syncs; of three that go, two are of the second sync."""
    pods = pods_of(3)
    ask(pods, 5, 0)
    ask(pods, 7, 1)
    ask(pods, 4, 2)
    assert counts(pods) == (4, 3)
    ask(pods, 4, 8)
    assert counts(pods) == (4, 4)
    ask(pods, 2, 9)
    assert counts(pods) == (2, 2)


def test_the_number_that_is_there_already_changes_nothing() -> None:
    pods = pods_of(3)
    ask(pods, 5, 0)
    assert pods.scale(np.array([5]), 1, NOON).tolist() == [0]
    assert counts(pods) == (5, 3)


def test_rows_may_start_at_their_own_pace_and_some_at_once() -> None:
    pods = Pods(np.array([1, 1, 1]), StartUps(np.array([0, 1, 3])))
    for sync in range(4):
        pods.arrive(sync)
        pods.scale(np.array([4, 4, 4]), sync)
        pods.arrive(sync)
        if sync == 1:
            assert pods.ready.tolist() == [4, 4, 1]
    assert pods.ready.tolist() == [4, 4, 4]


@given(st.integers(0, 50), st.lists(st.integers(0, 50), max_size=20))
def test_exactly_the_pods_asked_for_exist_and_the_last_ask_is_met_after_a_start_up(ready: int, asks: list[int]) -> None:
    pods = pods_of(ready)
    for sync, replicas in enumerate(asks):
        ask(pods, replicas, sync)
        desired, serving = counts(pods)
        assert desired == replicas
        assert 0 <= serving <= desired
    for sync in range(len(asks), len(asks) + 9):
        ask(pods, asks[-1] if asks else ready, sync)
    desired, serving = counts(pods)
    assert serving == desired


@given(st.lists(st.integers(0, 400), min_size=2, max_size=4), st.integers(0, 2**32 - 1), st.integers(0, 10**6))
def test_a_start_up_is_drawn_by_the_instant_and_the_seed_alone(seconds: list[int], seed: int, later: int) -> None:
    start_up, now = (
        StartUp(tuple(timedelta(seconds=length) for length in seconds), seed),
        NOON + timedelta(seconds=later),
    )
    syncs = -(-start_up_at(start_up, now) // SYNC)
    assert Draws([start_up], SYNC).at(now).tolist() == [max(1, syncs)]

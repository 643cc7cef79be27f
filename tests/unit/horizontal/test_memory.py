"""Counts that are remembered from one decision to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.builders import NOON, after, minutes, outlooks, policy, workload
from tests.support.horizontal import NEVER_SEEN, NOTHING_BEFORE, decide, recommended

if TYPE_CHECKING:
    from forecaster.horizontal.state import State

FIVE = policy(scale_down_stabilization=minutes(5))


def over_time(cores: list[float], state: State) -> list[int]:
    """Counts after each minute, when pods follow at once."""
    counts, replicas = [], 4
    for minute, cpu in enumerate(cores):
        record, state = decide(workload(replicas=replicas), outlooks(cpu=cpu), FIVE, state, after(minute))
        replicas = record.recommended_replicas
        counts.append(replicas)
    return counts


def test_a_workload_seen_for_the_first_time_keeps_its_size_for_the_length_of_the_window() -> None:
    assert over_time([1.0] * 7, NEVER_SEEN) == [4, 4, 4, 4, 4, 4, 2]


def test_a_peak_is_remembered_for_the_length_of_the_window() -> None:
    """Six pods are recommended at minute 1; the window includes the minute five minutes later."""
    assert over_time([2.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], NOTHING_BEFORE) == [4, 6, 6, 6, 6, 6, 6, 2]


def test_the_remembered_count_is_the_one_before_stabilization_and_bounds() -> None:
    tight = policy(max_replicas=5)
    _, state = decide(workload(), outlooks(cpu=9.0), tight, NOTHING_BEFORE, NOON)
    assert recommended(state) == [(18, NOON)]


def test_memory_does_not_grow_beyond_the_window() -> None:
    state = NOTHING_BEFORE
    for minute in range(100):
        _, state = decide(workload(), outlooks(cpu=2.0), FIVE, state, after(minute))
    assert len(recommended(state)) <= 7

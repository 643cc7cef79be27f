"""The memory of rows: growth, compaction, saving, and cycles at any time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecaster.horizontal.row import UNKNOWN
from forecaster.horizontal.state import State

AT = 1.77e9


def with_counts(*counts: int, now: float = AT) -> State:
    """State after a cycle that recommended these counts."""
    return State.new(len(counts), ("cpu",)).opened(now, 300.0, ()).recommended(np.array(counts))


def test_rows_stay_move_and_begin_in_one_take() -> None:
    taken = with_counts(4, 7).take(np.array([1, -1, 0]))
    assert taken.recommendations[0].tolist() == [7, UNKNOWN, 4]
    assert taken.begun.tolist() == [False] * 3
    assert np.isnan(taken.expected).all()


def test_decided_rows_are_put_back_where_they_were_taken() -> None:
    fleet = with_counts(4, 7, 9)
    part = fleet.take(np.array([2, 0]))
    changed = replace(part, ready=np.array([5, 6]))
    assert fleet.put(np.array([2, 0]), changed).ready.tolist() == [6, 0, 5]


def test_rows_of_other_cycles_or_signals_do_not_fit() -> None:
    fleet = with_counts(4, 7)
    part = fleet.take(np.array([0]))
    with pytest.raises(ValueError, match="instants"):
        fleet.put(np.array([0]), part.opened(AT + 60, 300.0, ()))
    with pytest.raises(ValueError, match="memory"):
        fleet.put(np.array([0]), part.covering(["memory"]))


def test_a_cycle_is_opened_once() -> None:
    state = with_counts(4)
    assert state.opened(AT, 300.0, ()) is state


def test_a_signal_that_is_new_has_nothing_yet() -> None:
    state = with_counts(4).covering(["memory", "cpu"])
    assert state.signals == ("cpu", "memory")
    assert state.expected.shape == (2, 1)


def test_everything_is_saved_as_plain_arrays() -> None:
    state = with_counts(4, 7)
    restored = State.of_arrays(state.arrays())
    assert restored.signals == state.signals
    assert restored.recommendations.tolist() == [[4, 7]]
    assert restored.times == state.times


def test_a_clock_that_was_set_back_makes_nothing_older_and_forgets_nothing() -> None:
    state = State.new(1)
    for now, count in ((AT, 3), (AT + 600, 9), (AT + 60, 4)):
        state = state.opened(now, 300.0, ()).recommended(np.array([count]))
    assert state.times == (AT, AT + 60, AT + 60)
    assert state.recommended_since(AT + 60).tolist() == [[9], [4]]


def test_and_the_states_of_shards_put_side_by_side_forget_nothing_either() -> None:
    set_back = with_counts(9, now=AT + 600).opened(AT, 300.0, ()).recommended(np.array([4]))
    joined = State.side_by_side(2, [(np.array([0]), set_back), (np.array([1]), with_counts(7))])
    assert joined.recommended_since(AT).max(axis=0).tolist() == [9, 7]

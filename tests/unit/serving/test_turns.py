from __future__ import annotations

import pytest

from forecaster.serving.review_cache import FairTurns


def turns_of(*items: str) -> FairTurns[str]:
    """Items that are called by their caller's letter and a number."""
    turns: FairTurns[str] = FairTurns()
    for item in items:
        turns.add(item[0], item)
    return turns


def test_one_of_each_caller_comes_before_the_second_of_any() -> None:
    turns = turns_of("a1", "a2", "a3", "b1", "c1", "c2")
    assert [turns.take() for _ in range(len(turns))] == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert not turns


def test_a_caller_that_comes_again_stands_behind_those_that_wait() -> None:
    turns = turns_of("a1", "b1")
    assert turns.take() == "a1"
    turns.add("a", "a2")
    assert [turns.take(), turns.take()] == ["b1", "a2"]


def test_room_is_made_by_the_caller_that_has_the_most() -> None:
    turns = turns_of("a1", "b1", "b2", "b3", "c1")
    assert turns.drop() == "b1"
    assert len(turns) == 4


def test_nothing_can_be_taken_where_nothing_waits() -> None:
    with pytest.raises(KeyError):
        turns_of().take()

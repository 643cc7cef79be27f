"""Rows of workloads among others, looked up once while both stay the same."""

from __future__ import annotations

from forecaster.demand.alignment import CachedRows, rows_among


def test_the_row_of_each_key_is_found_and_one_that_is_absent_has_none() -> None:
    assert rows_among(("b", "x", "a"), {"a": 0, "b": 1}).tolist() == [1, -1, 0]
    assert rows_among((), {"a": 0}).tolist() == []


def test_the_same_keys_in_the_same_rows_are_looked_up_once() -> None:
    known, row = CachedRows(), {"a": 0, "b": 1}
    rows = known.of(("b", "a"), row)
    assert known.of(("b", "a"), row) is rows
    assert known.of(("a", "b"), row).tolist() == [0, 1]


def test_a_row_that_was_added_and_rows_that_were_replaced_are_seen() -> None:
    known, row = CachedRows(), {"a": 0}
    assert known.of(("b", "a"), row).tolist() == [-1, 0]
    row["b"] = 1
    assert known.of(("b", "a"), row).tolist() == [1, 0]
    assert known.of(("b", "a"), {"a": 1, "b": 0}).tolist() == [0, 1]

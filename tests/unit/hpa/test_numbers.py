"""Integers and doubles at their ends (docs/hpa.md, section 2)."""

from __future__ import annotations

from math import inf, nan

import pytest

from forecaster.hpa.numbers import (
    MAX_INT32,
    MAX_INT64,
    MIN_INT32,
    MIN_INT64,
    ceil_to_int32,
    ceil_to_int64,
    ratio_of,
    truncate_to_int32,
    truncated_quotient,
    wrap_int32,
    wrap_int64,
)


def test_integers_wrap_one_past_their_ends() -> None:
    assert [wrap_int32(value) for value in (MAX_INT32, MAX_INT32 + 1, MIN_INT32, MIN_INT32 - 1)] == [
        MAX_INT32,
        MIN_INT32,
        MIN_INT32,
        MAX_INT32,
    ]
    assert [wrap_int64(value) for value in (MAX_INT64, MAX_INT64 + 1, MIN_INT64, MIN_INT64 - 1)] == [
        MAX_INT64,
        MIN_INT64,
        MIN_INT64,
        MAX_INT64,
    ]
    assert (wrap_int32(2**32 + 5), wrap_int64(-(2**64) - 5)) == (5, -5)


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient"), [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-6, 2, -3), (1, 2, 0)]
)
def test_division_is_cut_toward_zero(dividend: int, divisor: int, quotient: int) -> None:
    assert truncated_quotient(dividend, divisor) == quotient


def test_the_one_quotient_that_does_not_fit_wraps() -> None:
    assert truncated_quotient(MIN_INT64, -1) == MIN_INT64


def test_ratios_are_of_doubles() -> None:
    assert ratio_of(2**53 + 1, 1) == 2.0**53
    assert [ratio_of(1, 0), ratio_of(-1, 0), ratio_of(1, -0.0)] == [inf, -inf, -inf]
    assert ratio_of(0, 0) != ratio_of(0, 0)
    assert ratio_of(nan, 0) != 0


@pytest.mark.parametrize("convert", [ceil_to_int32, truncate_to_int32])
def test_counts_are_held_at_31_bits(convert: object) -> None:
    assert callable(convert)
    assert [convert(value) for value in (inf, -inf, nan, 1e300, -1e300)] == [
        MAX_INT32,
        MIN_INT32,
        MIN_INT32,
        MAX_INT32,
        MIN_INT32,
    ]


def test_values_are_held_at_63_bits() -> None:
    assert [ceil_to_int64(value) for value in (inf, -inf, 1e300, -1e300, 0.1)] == [
        MAX_INT64,
        MIN_INT64,
        MAX_INT64,
        MIN_INT64,
        1,
    ]


def test_ceilings_and_cuts_go_their_own_way() -> None:
    assert [ceil_to_int32(value) for value in (1.1, -1.1)] == [2, -1]
    assert [truncate_to_int32(value) for value in (1.9, -1.9)] == [1, -1]

"""Integers and doubles against the machine's own (docs/hpa.md, section 2)."""

from __future__ import annotations

import ctypes
import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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

int64s = st.integers(MIN_INT64, MAX_INT64)
doubles = st.floats(allow_nan=False)


@given(st.integers(-(2**80), 2**80))
def test_integers_wrap_as_the_machine_wraps_them(value: int) -> None:
    assert wrap_int64(value) == ctypes.c_int64(value % 2**64).value
    assert wrap_int32(value) == ctypes.c_int32(value % 2**32).value


@given(int64s, int64s.filter(bool))
def test_division_is_cut_toward_zero(dividend: int, divisor: int) -> None:
    exact = math.trunc(Fraction(dividend, divisor))
    assert truncated_quotient(dividend, divisor) == wrap_int64(exact)


@given(int64s, int64s)
def test_ratios_are_quotients_of_doubles(dividend: int, divisor: int) -> None:
    with np.errstate(all="ignore"):
        expected = np.float64(dividend) / np.float64(divisor)
    ratio = ratio_of(dividend, divisor)
    assert ratio == expected or (math.isnan(ratio) and math.isnan(expected))


@given(st.floats(), st.floats())
def test_ratios_of_any_doubles_are_the_machines(dividend: float, divisor: float) -> None:
    with np.errstate(all="ignore"):
        expected = np.float64(dividend) / np.float64(divisor)
    ratio = ratio_of(dividend, divisor)
    assert ratio == expected or (math.isnan(ratio) and math.isnan(expected))


@given(doubles)
def test_counts_are_held_at_the_ends_of_their_integers(value: float) -> None:
    for convert, exact, low, high in (
        (ceil_to_int32, math.ceil, MIN_INT32, MAX_INT32),
        (truncate_to_int32, math.trunc, MIN_INT32, MAX_INT32),
        (ceil_to_int64, math.ceil, MIN_INT64, MAX_INT64),
    ):
        if math.isinf(value):
            assert convert(value) == (high if value > 0 else low)
        else:
            assert convert(value) == min(max(exact(value), low), high)

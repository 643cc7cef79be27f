"""Integers and doubles as the controller has them (HPA rules §2).

Metric values are signed 64-bit milli-units and wrap on overflow; replica counts are signed 32-bit; ratios are IEEE-754
doubles. Python's integers are unbounded and its division refuses zero, so both differences are bridged here and
nowhere else.
"""

from collections.abc import Callable
from math import ceil, copysign, inf, isfinite, nan

MAX_INT32 = 2**31 - 1
MIN_INT32 = -(2**31)
MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)


def wrap_int64(value: int) -> int:
    """The low 64 bits of `value`, read as a signed number."""
    if MIN_INT64 <= value <= MAX_INT64:
        return value
    return (value - MIN_INT64 & (2**64 - 1)) + MIN_INT64


def wrap_int32(value: int) -> int:
    """The low 32 bits of `value`, read as a signed number."""
    if MIN_INT32 <= value <= MAX_INT32:
        return value
    return (value - MIN_INT32 & (2**32 - 1)) + MIN_INT32


def milli(amount: float) -> int:
    """Convert an amount to integer milli-units, rounded away from zero (HPA rules §2).

    The inner rounding takes back what the multiplication adds: 1.001 cores are 1001 m and not 1002 m.
    """
    return ceil(round(amount * 1000, 6))


def truncated_quotient(dividend: int, divisor: int) -> int:
    """Division of 64-bit integers toward zero; Python's `//` would floor. The divisor is not zero."""
    quotient = dividend // divisor
    if quotient < 0 and quotient * divisor != dividend:
        return quotient + 1
    return wrap_int64(quotient)


def ratio_of(dividend: float, divisor: float) -> float:
    """Division of doubles with infinities and NaN instead of an exception.

    Integers are rounded to doubles first: `int / int` would round the exact quotient once, which is a different number
    beyond 2^53.
    """
    dividend, divisor = float(dividend), float(divisor)
    if divisor:
        return dividend / divisor
    if dividend == 0.0 or dividend != dividend:  # noqa: PLR0124 - the test for NaN
        return nan
    return copysign(inf, dividend) * copysign(1.0, divisor)


def ceil_to_int32(value: float) -> int:
    """The floating ceiling as a replica count, held at the ends of 32 bits; no epsilon is applied.

    NaN becomes the smallest integer, as the conversion does on amd64; only a zero target can produce it, and the API
    server refuses those.
    """
    return _held(value, ceil, MIN_INT32, MAX_INT32)


def ceil_to_int64(value: float) -> int:
    """Round up like `ceil_to_int32`, for 64-bit milli-values."""
    return _held(value, ceil, MIN_INT64, MAX_INT64)


def truncate_to_int32(value: float) -> int:
    """A double cut toward zero as a replica count, held at the ends of 32 bits."""
    return _held(value, int, MIN_INT32, MAX_INT32)


def _held(value: float, whole: Callable[[float], int], least: int, most: int) -> int:
    if isfinite(value):
        return min(max(whole(value), least), most)
    return most if value > 0 else least

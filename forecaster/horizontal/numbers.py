"""Arrays of milli-units and replica counts, digit by digit as `hpa.numbers` has single ones (HPA rules §2)."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forecaster.hpa.numbers import MAX_INT32, MIN_INT32, milli

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.int8]

_ROUNDING, _DOUBT = 5e-7, 1e-9
"""`milli` rounds to six decimals before it rounds up: less than half of the last of them is nothing."""


def millis(amounts: Floats) -> Counts:
    """`milli` of every amount; they are finite, not negative and not above `LARGEST`."""
    scaled = amounts * 1000.0
    below = np.floor(scaled)
    above = scaled - below
    rounded = (below + (above > _ROUNDING)).astype(np.int64)
    doubtful = np.abs(above - _ROUNDING) < _DOUBT
    if doubtful.any():
        for place in zip(*np.nonzero(doubtful), strict=True):
            rounded[place] = milli(float(amounts[place]))
    return rounded


def ceil_counts(values: Floats) -> Counts:
    """The ceilings as replica counts, held at the ends of 32 bits; no value is NaN."""
    return np.minimum(np.maximum(np.ceil(values), MIN_INT32), MAX_INT32).astype(np.int64)


def truncated(dividend: Counts, divisor: Counts) -> Counts:
    """Division of 64-bit integers toward zero; no divisor is zero."""
    quotient = dividend // divisor
    negative = quotient < 0
    if negative.any():
        quotient += negative & (quotient * divisor != dividend)
    return quotient


class Band(NamedTuple):
    """The ratios around 1.0 that change nothing, as edges [row]: `hpa.proposals.Tolerance` on arrays."""

    lowest: Floats
    highest: Floats

    @classmethod
    def of(cls, tolerance: Floats) -> Band:
        """Return both edges of one tolerance [row] for both directions."""
        return cls(1.0 - tolerance, 1.0 + tolerance)

    def holds(self, ratio: Floats) -> Flags:
        """Return where a ratio [row] is close enough to 1.0 to keep the current replicas."""
        return np.asarray((self.lowest <= ratio) & (ratio <= self.highest))

    def take(self, rows: Counts) -> Band:
        """Return the edges of these rows."""
        return Band(self.lowest[rows], self.highest[rows])

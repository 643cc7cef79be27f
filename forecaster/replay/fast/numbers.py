"""Arrays of milli-units and counts, as `decisions.replicas.milli` and `hpa.numbers` have single ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forecaster.decisions.replicas import milli
from forecaster.hpa.numbers import MAX_INT32

if TYPE_CHECKING:
    from forecaster.hpa.proposals import Tolerance

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

UNKNOWN = -1
"""In place of an amount or a count that nobody knows; no demand and no proposal is negative."""
LARGEST = 2**53 // 1000 * 10
"""Above these milli-units a percentage of them might wrap in 64 bits, which only the scalar replay follows."""
_ROUNDING = 5e-7
"""`milli` rounds to six decimals before it rounds up: less than half of the last of them is nothing."""
_DOUBT = 1e-9


def millis(amounts: Floats) -> Counts:
    """Milli-units rounded away from zero, `UNKNOWN` where the amount is NaN."""
    scaled = np.nan_to_num(amounts, nan=0.0) * 1000
    below = np.floor(scaled)
    above = scaled - below
    rounded = (below + (above > _ROUNDING)).astype(np.int64)
    for place in zip(*np.nonzero(np.abs(above - _ROUNDING) < _DOUBT), strict=True):
        rounded[place] = milli(float(amounts[place]))
    return np.where(np.isnan(amounts), UNKNOWN, rounded)


def ceil_counts(values: Floats) -> Counts:
    """The ceiling as replica counts, held at the largest one."""
    return np.minimum(np.ceil(values), MAX_INT32).astype(np.int64)


def within(tolerance: Tolerance, ratio: Floats) -> Flags:
    """Where a ratio is close enough to 1 to change nothing."""
    return (ratio >= tolerance.lowest) & (ratio <= tolerance.highest)

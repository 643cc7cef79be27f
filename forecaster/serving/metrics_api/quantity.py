"""Numbers as the text that an HPA reads with milli precision."""

from __future__ import annotations

import math

LARGEST = 9_200_000_000_000_000_000
"""Milli-units that still fit a signed 64-bit integer, which is what the HPA's controller counts in."""


def quantity(value: float) -> str:
    """Decimal SI, whole or in milli-units, rounded up as the HPA does (HPA rules §2) and held within 0 and 9.2e15.

    The inner rounding takes back what the multiplication adds: 1.001 are 1001 m and not 1002 m.

    Raises:
        ValueError: the value is not a number.

    >>> quantity(12.5), quantity(3.0), quantity(8e9)
    ('12500m', '3', '8000000000')
    """
    if math.isnan(value):
        raise ValueError("NaN is no quantity")
    milli = math.ceil(round(min(max(value * 1000, 0.0), LARGEST), 6))
    return f"{milli}m" if milli % 1000 else str(milli // 1000)

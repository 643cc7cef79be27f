"""Amounts of the VPA: 64-bit integers of millicores or bytes, cut and never rounded."""

from __future__ import annotations

import math

LARGEST = 10**14
_MILLI = 1000
_BINARY = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def amount_of(value: float) -> int:
    """A float cut to an amount between 0 and 10^14; what is no number becomes 0."""
    if math.isnan(value) or value < 0:
        return 0
    return LARGEST if value > LARGEST else int(value)


def of_cores(cores: float) -> int:
    """Millicores."""
    return amount_of(cores * _MILLI)


def to_cores(amount: int) -> float:
    """Cores of millicores."""
    return amount / _MILLI


def scaled(amount: int, factor: float) -> int:
    """An amount times a factor, cut."""
    return amount_of(float(amount) * factor)


def rounded_up(amount: int, step: int) -> int:
    """The next multiple of `step`; raises ValueError, naming it, for a step that is not positive."""
    if step <= 0:
        raise ValueError(f"rounding to multiples of {step}: the step must be positive")
    return -(-amount // step) * step


def humanized(memory: int) -> str:
    """Bytes with two decimals in the largest binary unit that is not above them; this may round down."""
    for size, suffix in _BINARY:
        if memory >= size:
            return f"{memory / size:.2f}{suffix}"
    return str(memory)

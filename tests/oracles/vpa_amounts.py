"""Amounts of the VPA and the steps from a percentile to an amount (spec/vertical.md §1.1, §1.10)."""

from __future__ import annotations

import math

from forecaster.vertical.recommenders.vpa import LARGEST_AMOUNT, ConfidenceRule

_MILLI = 1000
_BINARY = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def amount_of(value: float) -> int:
    """Cut a float to an amount between 0 and 10^14; a value that is no number becomes 0."""
    if math.isnan(value) or value < 0:
        return 0
    return LARGEST_AMOUNT if value > LARGEST_AMOUNT else int(value)


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


def with_margin(amount: int, fraction: float) -> int:
    """Raised by a fraction of itself."""
    return amount + scaled(amount, fraction)


def with_confidence(amount: int, rule: ConfidenceRule, confidence: float) -> int:
    """Wider the less is known; with nothing known the upper bound is the largest amount and the lower one 0."""
    return scaled(amount, confidence_factor(rule, confidence))


def confidence_factor(rule: ConfidenceRule, confidence: float) -> float:
    """The factor alone."""
    base = 1.0 + rule.multiplier / confidence if confidence else math.inf
    return float(base**rule.exponent)


def at_least(amount: int, least: int) -> int:
    """The floor, applied last, so that it lifts the bounds too."""
    return max(amount, least)

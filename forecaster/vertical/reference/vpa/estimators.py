"""The steps from a percentile to an amount, in the order in which they are applied (`recommend.py`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from forecaster.vertical.reference.vpa.amounts import scaled


@dataclass(frozen=True, slots=True)
class ConfidenceRule:
    """`amount * (1 + multiplier / confidence) ^ exponent`."""

    multiplier: float
    exponent: float


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

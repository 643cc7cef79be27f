"""crane 0.11 beyond what forecaster uses: its ladder of sizes, and the error it judges predictors by.

spec/vertical.md §4.1 and §4.4.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEAST_ACTUAL = 1e-3
_BASE = math.log(1.25)
_PAIR = re.compile(r"(\d+(?:\.\d+)?)c(\d+(?:\.\d+)?)g", re.ASCII)
_GIBIBYTE = 2**30


def asymmetric_percentage_error(actual: Sequence[float], predicted: Sequence[float]) -> float | None:
    """Mean relative error, falling short weighted by -ln(1 - x) / ln 1.25; None where an actual value is next to 0."""
    if any(value < _LEAST_ACTUAL for value in actual):
        return None
    errors = [_error(a, p) for a, p in zip(actual, predicted, strict=True)]
    return sum(errors) / len(errors)


def prediction_error(actual: Sequence[float], predicted: Sequence[float]) -> float:
    """The asymmetric error, or the mean absolute one where that is not defined."""
    relative = asymmetric_percentage_error(actual, predicted)
    return mean_absolute_error(actual, predicted) if relative is None else relative


def mean_absolute_error(actual: Sequence[float], predicted: Sequence[float]) -> float:
    """In the unit of the values."""
    return sum(abs(a - p) for a, p in zip(actual, predicted, strict=True)) / len(actual)


def _error(actual: float, predicted: float) -> float:
    if predicted >= actual:
        return (predicted - actual) / actual
    short = (actual - predicted) / actual
    return -math.log(1 - short) / _BASE if short < 1 else math.inf


class Size(NamedTuple):
    """One rung."""

    cores: float
    gibibytes: float


class LadderError(ValueError):
    """The ladder cannot be read; the message names the rung."""


def parse(text: str) -> list[Size]:
    """Rungs in order of cores, then memory; raises LadderError."""
    return sorted(_rung(rung.strip()) for rung in text.split(","))


def smallest_that_fits(ladder: list[Size], cores: float, memory_bytes: float) -> Size:
    """The first rung with enough of both; (0, 0) if there is none."""
    gibibytes = memory_bytes / _GIBIBYTE
    fitting = (size for size in ladder if size.cores >= cores and size.gibibytes >= gibibytes)
    return next(fitting, Size(0.0, 0.0))


def _rung(text: str) -> Size:
    match = _PAIR.fullmatch(text)
    if match is None:
        raise LadderError(f"{text!r}: a rung is cores and gibibytes, like 0.5c1g")
    return Size(float(match[1]), float(match[2]))

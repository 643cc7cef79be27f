"""How bad a prediction is when predicting too little is worse than too much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEAST_ACTUAL = 1e-3
_BASE = math.log(1.25)


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

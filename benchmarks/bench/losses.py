"""Losses of quantile forecasts (docs/benchmark.md has the formulas)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def pinball(actual: Floats, forecast: Floats, levels: Sequence[float]) -> Floats:
    """Pinball loss [level, step] of `forecast` [level, step] against `actual` [step]; NaN where `actual` is."""
    level = np.array(levels)[:, None]
    error = actual - forecast
    return np.maximum(level * error, (level - 1) * error)


def quantile_loss(actual: Floats, forecast: Floats, levels: Sequence[float]) -> float:
    """Twice the pinball loss, averaged over levels and summed over the measured steps."""
    return float(2 * np.nanmean(np.nansum(pinball(actual, forecast, levels), axis=1)))


def covered(actual: Floats, forecast: Floats) -> NDArray[np.int64]:
    """Measured steps at or below each quantile [level]."""
    return np.asarray((actual <= forecast + 1e-12).sum(axis=1))


def daily_change(history: Floats, day: int) -> float:
    """Mean absolute difference between a bin and the bin a day before: the scale of a series."""
    return float(np.nanmean(np.abs(history[day:] - history[:-day])))


def geometric_mean_ratio(losses: Floats, reference: Floats) -> float:
    """Geometric mean over series of loss / reference loss, both at least 1e-9."""
    ratios = np.log(np.maximum(losses, 1e-9)) - np.log(np.maximum(reference, 1e-9))
    return float(np.exp(ratios.mean()))

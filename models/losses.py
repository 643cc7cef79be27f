"""Losses of quantile forecasts; NaN targets are not scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .panel import Floats

# A missing unit costs as much as nineteen idle ones: the price at which p95 is the right reserve.
PRICE_OF_MISSING = 19.0


def pinball(actual: Floats, quantiles: Floats, levels: Sequence[float]) -> Floats:
    """max(q·(y-p), (q-1)·(y-p)) for actual [..., step] and quantiles [..., level, step]: [..., level, step]."""
    level = np.asarray(levels)[:, None]
    missing = actual[..., None, :] - quantiles
    return np.maximum(level * missing, (level - 1) * missing)


def scaled_quantile_loss(actual: Floats, quantiles: Floats, levels: Sequence[float], scale: Floats) -> Floats:
    """2 · mean pinball over levels and steps / scale: [...], scale [...] as the mean change over a day."""
    loss = 2 * np.nanmean(pinball(actual, quantiles, levels), axis=(-2, -1))
    return np.asarray(loss / scale)


def coverage(actual: Floats, quantiles: Floats) -> Floats:
    """Share of values at or below the quantile, per level: [..., level]. Right is the level itself."""
    known = np.isfinite(actual)[..., None, :]
    below = (actual[..., None, :] <= quantiles) & known
    return np.asarray(below.sum(axis=-1) / np.maximum(1, known.sum(axis=-1)))


def mean_absolute_scaled_error(actual: Floats, median: Floats, scale: Floats) -> Floats:
    """Mean |y - p50| / scale (MASE with the seasonal naive forecast of the history as scale)."""
    return np.asarray(np.nanmean(np.abs(actual - median), axis=-1) / scale)


def cost_of_reserve(actual: Floats, reserve: Floats, price: float = PRICE_OF_MISSING) -> Floats:
    """Mean of price · missing + idle, what a reserve costs when a missing unit costs `price` idle ones."""
    missing = actual - reserve
    return np.asarray(np.nanmean(np.where(missing > 0, price * missing, -missing), axis=-1))


def seasonal_scale(history: Floats, season: int) -> Floats:
    """[series] mean |y(t) - y(t - season)| of filled history [series, time]: the unit of scaled losses."""
    return np.asarray(np.abs(history[:, season:] - history[:, :-season]).mean(axis=1))

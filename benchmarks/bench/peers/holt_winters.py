"""A predictive HPA with Holt-Winters: additive, one season of a day, its point forecast beside the measured demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.bench.replay import Replay

BIN, SEASON = 5, 288
"""Ticks of a bin, bins of a season."""
LEVEL, TREND, SEASONAL = 0.5, 0.01, 0.2
"""Smoothing factors that suit load which changes within minutes."""


def expected(replay: Replay, start_up: int) -> NDArray[np.float64]:
    """Forecast demand [tick] for the bin in which pods that are requested now become ready."""
    known, past = replay.known, len(replay.past)
    offset = past % BIN
    bins = known[offset : offset + (len(known) - offset) // BIN * BIN].reshape(-1, BIN)
    counts = np.maximum((~np.isnan(bins)).sum(axis=1), 1)
    means = np.where(np.isnan(bins).all(axis=1), np.nan, np.nansum(bins, axis=1) / counts)
    forecasts = smoothed(means, ahead=1 + start_up // BIN)
    newest = (past - offset + np.arange(len(replay.demand))) // BIN - 1
    return np.asarray(np.maximum(forecasts[newest], 0.0))


def smoothed(values: NDArray[np.float64], ahead: int) -> NDArray[np.float64]:
    """Forecast [bin] of the value `ahead` bins after each bin, from the values up to it; a gap changes nothing."""
    first = values[:SEASON]
    level, trend = float(np.nanmean(first)), 0.0
    season = np.where(np.isnan(first), 0.0, first - level)
    out = np.empty(len(values))
    for place, value in enumerate(values):
        slot = place % SEASON
        if not np.isnan(value):
            before = level
            level = LEVEL * (value - season[slot]) + (1 - LEVEL) * (level + trend)
            trend = TREND * (level - before) + (1 - TREND) * trend
            season[slot] = SEASONAL * (value - level) + (1 - SEASONAL) * season[slot]
        out[place] = level + ahead * trend + season[(place + ahead) % SEASON]
    return out

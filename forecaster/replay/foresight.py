"""Forecasts of a whole replay: what somebody says at every minute about the coming peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from forecaster.domain.signal import Signal
    from forecaster.forecasting.forecaster import PeakSpan

EVERY_MINUTE = slice(None)


@dataclass(frozen=True, slots=True, eq=False)
class Foresight:
    """Quantiles of the largest demand within `span` after each minute.

    `values[signal]` is float64 [minute, workload, level], ascending with the level; NaN where there is no forecast.
    """

    name: str
    span: PeakSpan
    levels: tuple[float, ...]
    values: Mapping[Signal, NDArray[np.float64]]

    def peak(self, signal: Signal, quantile: float, minutes: slice = EVERY_MINUTE) -> NDArray[np.float64] | None:
        """[minute, workload] at one quantile, linear between two levels; None for a signal without forecasts."""
        if signal not in self.values:
            return None
        values = self.values[signal][minutes]
        right = int(np.searchsorted(self.levels, quantile))
        if right < len(self.levels) and self.levels[right] == quantile:
            return values[:, :, right]
        left, right = max(right - 1, 0), min(right, len(self.levels) - 1)
        if left == right:
            return values[:, :, left]
        low, high = self.levels[left], self.levels[right]
        slope = (values[:, :, right] - values[:, :, left]) / (high - low)
        between: NDArray[np.float64] = slope * (quantile - low) + values[:, :, left]
        return between

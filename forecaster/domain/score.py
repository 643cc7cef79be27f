"""How a forecast turned out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import WorkloadId


@dataclass(frozen=True, slots=True)
class ForecastScore:
    """One matured forecast of the peak over a window, beside what was measured there. Amounts in the signal's unit."""

    id: WorkloadId
    signal: Signal
    made_at: datetime
    matured_at: datetime
    model: str
    quantile: float
    median: float
    upper: float
    """The forecast quantile of the peak."""
    actual: float
    """The measured peak over the same window."""

    @property
    def covered(self) -> bool:
        """Did the peak stay at or below the quantile?"""
        return self.actual <= self.upper

    @property
    def absolute_error(self) -> float:
        """|actual - median|."""
        return abs(self.actual - self.median)

    @property
    def pinball_loss(self) -> float:
        """Loss of the quantile (Koenker and Bassett 1978): q · (y - f) above the forecast, (1 - q) · (f - y) below."""
        missed = self.actual - self.upper
        return max(self.quantile * missed, (self.quantile - 1.0) * missed)

"""How forecasts of one kind turned out over a span of time, as sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.domain.report import ForecastScore


@dataclass(slots=True)
class Accuracy:
    """Sums over matured forecasts; two spans are joined by adding. Amounts in the signal's unit."""

    count: int = 0
    covered: int = 0
    quantiles: float = 0.0
    """Sum of the quantiles aimed at: what `covered` should be."""
    absolute_error: float = 0.0
    pinball_loss: float = 0.0
    actual: float = 0.0

    def add(self, score: ForecastScore) -> None:
        """One more has matured."""
        self.count += 1
        self.covered += score.covered
        self.quantiles += score.quantile
        self.absolute_error += score.absolute_error
        self.pinball_loss += score.pinball_loss
        self.actual += score.actual

    @property
    def coverage(self) -> float | None:
        """Share of peaks at or below the quantile; None before the first."""
        return self.covered / self.count if self.count else None

    @property
    def error_ratio(self) -> float | None:
        """Sum of errors by sum of peaks (WAPE); None where nothing was measured."""
        return self.absolute_error / self.actual if self.actual > 0 else None


@dataclass(frozen=True, slots=True)
class AccuracyOf:
    """The accuracy of one model for one signal from `at` on: an hour, or a day where it is old."""

    at: datetime
    signal: str
    model: str
    accuracy: Accuracy

"""What a model says of a recorded load while it is replayed: fitted once a week, told of every new point."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

import models
from forecaster.forecasting.peaks import HIGH, LOW, MEDIAN
from forecaster.replay.sizes.load import POINTS, STEP_SECONDS
from forecaster.vertical.sizing.load_forecast import PeakQuantiles

if TYPE_CHECKING:
    from forecaster.replay.sizes.load import Load

MODEL = "adaptive"
LEARNED_FROM = 14 * POINTS
REFITTED_AFTER = 7 * POINTS
_BEGIN = datetime(2023, 11, 15, tzinfo=UTC)
_STEP = timedelta(seconds=STEP_SECONDS)
_LEVELS = (LOW, MEDIAN, HIGH)


@dataclass(slots=True, eq=False)
class Foreseen:
    """Forecasts of one load, each made once and kept: every contestant hears the same."""

    load: Load
    model: str = MODEL
    fitted: dict[int, models.Fitted] = field(default_factory=dict)
    said: dict[tuple[int, int], PeakQuantiles] = field(default_factory=dict)

    def at(self, column: int, ahead: int) -> PeakQuantiles:
        """[row] quantiles of the highest value of so many points from `column` on, from what was before it."""
        if (column, ahead) not in self.said:
            self.said[column, ahead] = self._forecast(column, ahead)
        return self.said[column, ahead]

    def _forecast(self, column: int, ahead: int) -> PeakQuantiles:
        peak = self._fitted_by(column).update(self._panel(column)).forecast_peak(models.StepWindow(1, ahead), _LEVELS)
        values = np.full((len(self.load.names), len(_LEVELS)), np.nan)
        at = peak.provenance.rows(self._keys)
        values[at >= 0] = peak.values[at[at >= 0]]
        return PeakQuantiles(*values.T)

    def _fitted_by(self, column: int) -> models.Fitted:
        week = column - (column - self.load.warm) % REFITTED_AFTER
        if week not in self.fitted:
            self.fitted[week] = models.create(self.model).fit(self._panel(week))
        return self.fitted[week]

    def _panel(self, column: int) -> models.Panel:
        first = max(column - LEARNED_FROM, 0)
        return models.Panel(
            self.load.wanted[:, first:column].astype(np.float32), _BEGIN + first * _STEP, _STEP, self._keys
        )

    @property
    def _keys(self) -> tuple[str, ...]:
        return tuple(str(row) for row in range(len(self.load.names)))

"""Regressors of the ridge: the facts known at an origin, as columns of numbers, for all series at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .clean import filled
from .panel import DAY, Floats, Panel
from .trailing import mean_of, running_total


@dataclass(frozen=True)
class Regressors:
    """Columns for a panel of this length, and how to make them.

    The clock enters as the values at the clock time of the target, and around it, a day and a week ago. Sines and
    cosines of the time of day and week were tried beside them and made forecasts worse: two weeks cannot distinguish
    them from chance (0.605 without, 0.620 with two harmonics of the day, 0.658 with the week, sQL on 60 recorded
    series).

    Attributes:
        length: bins of the panel.
        day: bins of a day.
        lags: latest values used.
        horizon: steps that are learned.
        offsets: positions read, relative to the latest bin of an origin.
        min_history: bins of history before the first origin.
    """

    length: int
    day: int
    lags: int
    horizon: int
    offsets: tuple[int, ...]
    min_history: int

    @classmethod
    def of(cls, panel: Panel, lags: int, horizon: int) -> Regressors:
        """Return the columns for a panel; the week is a season where it holds eight days."""
        day = panel.bins(DAY)
        seasons = (day, 7 * day) if panel.length >= 8 * day + horizon + lags else (day,)
        recent = tuple(-i for i in range(lags))
        ago = tuple(sorted({min(j - season, 0) for season in seasons for j in range(-1, horizon + 2)}))
        return cls(panel.length, day, lags, horizon, tuple(dict.fromkeys((*recent, *ago))), max(*seasons, lags) + 2)

    def of_step(self, ahead: int) -> list[int]:
        """Columns of the equation for one step: all but the seasonal ones of other steps, which invite overfitting."""
        own = {min(ahead + near - season, 0) for season in self.seasons for near in (-1, 0, 1)}
        own |= {-season for season in self.seasons}
        chosen = [i for i, offset in enumerate(self.offsets) if offset in own or offset > -self.lags]
        return chosen + list(range(len(self.offsets), self.count))

    @property
    def seasons(self) -> tuple[int, ...]:
        """Bins of a day, and of a week where the panel holds eight days."""
        return (self.day, 7 * self.day) if self.min_history > 7 * self.day else (self.day,)

    @property
    def possible(self) -> bool:
        """Whether there is enough history to learn from: the longest season, and one more day or all steps."""
        return self.day > 1 and self.length >= self.min_history + max(self.day, self.horizon + 1)

    def within(self, panel: Panel) -> Regressors:
        """Return the columns for a panel of another length."""
        return replace(self, length=panel.length)

    def answerable(self, panel: Panel) -> bool:
        """Whether a panel reaches back far enough for all columns that were learned, and a day more for errors."""
        return self.possible and self.within(panel).possible

    @property
    def count(self) -> int:
        """Number of columns of the regression."""
        return len(self.offsets) + 3

    def origins(self, horizon: int) -> npt.NDArray[np.intp]:
        """Latest bins from which all `horizon` steps are known."""
        return np.arange(self.min_history, self.length - horizon)

    def columns(self, scaled: Floats, origins: npt.NDArray[np.intp]) -> Floats:
        """[series, origin, column] of standardised values; each column lies in memory as one piece."""
        total = running_total(scaled)
        columns = np.ones((len(scaled), self.count, len(origins)), np.float32)
        for i, offset in enumerate(self.offsets):
            columns[:, i] = scaled[:, _places(origins + offset)]
        for i, width in enumerate(self._widths, len(self.offsets)):
            columns[:, i] = mean_of(total, width, origins)
        return columns.transpose(0, 2, 1)

    def latest(self, values: Floats, unit: Unit) -> Floats:
        """[series, column] at the latest bin of values [series, time]; gaps are filled where one is read."""
        latest = self._latest(values)
        gappy = np.flatnonzero(np.isnan(latest).any(axis=1))
        if len(gappy):
            latest[gappy] = self._latest(filled(values[gappy]))
        return np.concatenate([unit.standardised(latest), np.ones((len(values), 1), np.float32)], axis=1)

    def _latest(self, values: Floats) -> Floats:
        """[series, place] in the unit of the values; reads only those places."""
        end = values.shape[1]
        recent = [values[:, max(0, end - width) :].mean(axis=1, dtype=np.float64)[:, None] for width in self._widths]
        return np.concatenate([values[:, end - 1 + np.asarray(self.offsets)], *recent], axis=1)

    def unit(self, values: Floats) -> Unit:
        """Return the centre and spread of gapless values over the latest week."""
        week = values[:, -7 * self.day :].astype(np.float64)
        centre, scale = week.mean(axis=1), week.std(axis=1)
        return Unit(centre, np.where(scale > 1e-9 * np.abs(centre), scale, np.maximum(np.abs(centre), 1e-300)))

    @property
    def _widths(self) -> tuple[int, int]:
        """Bins of the means: three hours and a day."""
        return max(2, self.day // 8), self.day


# In units of the latest week: the squares of more, summed over two weeks, would drown the penalty and then overflow.
LARGEST_FEATURE = 1e6


class Unit(NamedTuple):
    """[series] centre and scale in which each series is small numbers."""

    centre: Floats
    scale: Floats

    def standardised(self, values: Floats) -> Floats:
        """Float32 [series, ...] in this unit; infinite where a series was nothing before and is something now."""
        with np.errstate(over="ignore"):
            return ((values - self._over(self.centre, values)) / self._over(self.scale, values)).astype(np.float32)

    def past(self, values: Floats) -> Floats:
        """Standardise the past; a series that was large long ago and near zero in the latest week is all 0."""
        scaled = self.standardised(values)
        scaled[~(np.abs(scaled) < LARGEST_FEATURE).all(axis=1)] = 0
        return scaled

    def restored(self, standardised: Floats) -> Floats:
        """Convert standardised values to the unit of the panel."""
        return np.asarray(standardised * self._over(self.scale, standardised) + self._over(self.centre, standardised))

    def of(self, rows: slice | npt.NDArray[np.intp]) -> Unit:
        """Return the units of some series."""
        return Unit(self.centre[rows], self.scale[rows])

    @staticmethod
    def _over(each: Floats, values: Floats) -> Floats:
        return each.reshape(-1, *(1,) * (values.ndim - 1))


def _places(positions: npt.NDArray[np.intp]) -> slice | npt.NDArray[np.intp]:
    """Neighbouring positions as a slice, which is read several times as fast."""
    neighbours = len(positions) and positions[-1] - positions[0] == len(positions) - 1
    return slice(int(positions[0]), int(positions[-1]) + 1) if neighbours else positions

"""Regressors of the ridge: what is known at an origin, as columns of numbers, for all series at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .gaps import filled
from .panel import DAY, Floats, Panel


@dataclass(frozen=True, eq=False)
class Regressors:
    """Which columns exist for a panel of this length, and how to make them.

    The clock enters as the values at the clock time of the target, and around it, a day and a week ago. Sines and
    cosines of the time of day and week were tried beside them and made forecasts worse: two weeks cannot tell them
    from chance (0.605 without, 0.620 with two harmonics of the day, 0.658 with the week, sQL on 60 recorded series).

    Attributes:
        length: bins of the panel.
        day: bins of a day.
        lags: newest values used.
        offsets: places looked at, relative to the newest bin of an origin.
        least: bins of history before the first origin.
    """

    length: int
    day: int
    lags: int
    offsets: tuple[int, ...]
    least: int

    @classmethod
    def of(cls, panel: Panel, lags: int, horizon: int) -> Regressors:
        """The week is used by panels that hold eight days."""
        day = panel.bins(DAY)
        seasons = (day, 7 * day) if panel.length >= 8 * day + horizon + lags else (day,)
        recent = tuple(-i for i in range(lags))
        ago = tuple(sorted({min(j - season, 0) for season in seasons for j in range(-1, horizon + 2)}))
        return cls(panel.length, day, lags, tuple(dict.fromkeys((*recent, *ago))), max(seasons) + 2)

    def of_step(self, ahead: int) -> list[int]:
        """Columns of the equation for one step: all but the seasonal ones of other steps, which invite overfitting."""
        own = {min(ahead + near - season, 0) for season in self.seasons for near in (-1, 0, 1)}
        own |= {-season for season in self.seasons}
        kept = [i for i, offset in enumerate(self.offsets) if offset in own or offset > -self.lags]
        return kept + list(range(len(self.offsets), self.count))

    @property
    def seasons(self) -> tuple[int, ...]:
        """Bins of a day, and of a week where the panel holds eight days."""
        return (self.day, 7 * self.day) if self.least > 7 * self.day else (self.day,)

    @property
    def possible(self) -> bool:
        """Whether there is enough history to learn from: the longest season and one more day."""
        return self.day > 1 and self.length >= self.least + self.day

    def within(self, panel: Panel) -> Regressors:
        """The same columns for a panel of another length."""
        return replace(self, length=panel.length)

    def answerable(self, panel: Panel) -> bool:
        """Whether a panel reaches back far enough for all columns that were learned, and a day more for errors."""
        return self.possible and self.within(panel).possible

    @property
    def count(self) -> int:
        """Number of columns."""
        return len(self.offsets) + 3

    def origins(self, horizon: int) -> npt.NDArray[np.intp]:
        """Newest bins from which all `horizon` steps are known."""
        return np.arange(self.least, self.length - horizon)

    def columns(self, scaled: Floats, origins: npt.NDArray[np.intp]) -> Floats:
        """[series, origin, column] of standardised values."""
        places = origins[:, None] + np.asarray(self.offsets)
        widths = (max(2, self.day // 8), self.day)
        parts = [scaled[:, places], *(_means(scaled, origins, width)[:, :, None] for width in widths)]
        constant = np.ones((len(scaled), len(origins), 1), scaled.dtype)
        return np.concatenate([*parts, constant], axis=2)

    def newest(self, scaled: Floats) -> Floats:
        """[series, column] at the newest bin."""
        reach = max(-min(self.offsets), self.day) + 1
        view = scaled[:, -reach:]
        return self.columns(view, np.array([view.shape[1] - 1]))[:, 0]

    def standardised(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Filled float32 values with centre 0 and spread 1 over the newest week; and that centre and spread."""
        known = filled(values)
        week = known[:, -7 * self.day :].astype(np.float64)
        centre, scale = week.mean(axis=1), week.std(axis=1)
        scale = np.where(scale > 1e-9 * np.abs(centre), scale, np.maximum(np.abs(centre), 1e-300))
        return ((known - centre[:, None]) / scale[:, None]).astype(np.float32), centre, scale


def _means(scaled: Floats, origins: npt.NDArray[np.intp], width: int) -> Floats:
    """[series, origin] mean of the `width` newest values, fewer at the beginning."""
    total = np.cumsum(scaled, axis=1, dtype=np.float64)
    total = np.concatenate([np.zeros((len(scaled), 1)), total], axis=1)
    first = np.maximum(origins + 1 - width, 0)
    return ((total[:, origins + 1] - total[:, first]) / (origins + 1 - first)).astype(scaled.dtype)

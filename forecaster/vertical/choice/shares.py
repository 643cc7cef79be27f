"""The share of the coming time above a level, from all points of the past days.

A day is kept as the values at which given shares of it are reached, finer towards the top: an ordered sample of a
twentieth of the size, whose each value stands for the piece of the day that it is the upper end of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.vertical.choice.days import Days

    Doubles = NDArray[np.float64]

EDGES = np.array([0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995, 1.0])
PIECES = np.diff(EDGES, prepend=0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """[row, sample] values in rising order with the share of time above each; NaN and 0 where nothing is known."""

    values: Doubles
    above: Doubles

    def share_above(self, level: Doubles) -> Doubles:
        """[row] the share of time above one level."""
        below = (self.values <= level[:, None]).sum(axis=1) - 1
        found = np.take_along_axis(self.above, np.maximum(below, 0)[:, None], axis=1)[:, 0]
        return np.where(below >= 0, found, 1.0)

    def quantile(self, share: float) -> Doubles:
        """[row] the lowest value that no more than `1 - share` of the time is above; NaN where nothing is known."""
        place = np.minimum((self.above > 1 - share + 1e-9).sum(axis=1), self.values.shape[1] - 1)
        return np.asarray(np.take_along_axis(self.values, place[:, None], axis=1)[:, 0])

    def mean(self) -> Doubles:
        """[row] the mean value."""
        return np.asarray(np.nansum(self.values * self._pieces(), axis=1))

    def idle(self, level: Doubles) -> Doubles:
        """[row] mean of what is left below a level."""
        return np.asarray(np.nansum(np.maximum(level[:, None] - self.values, 0) * self._pieces(), axis=1))

    def short(self, level: Doubles) -> Doubles:
        """[row] mean of what is wanted above a level."""
        return np.asarray(np.nansum(np.maximum(self.values - level[:, None], 0) * self._pieces(), axis=1))

    def _pieces(self) -> Doubles:
        return np.asarray(-np.diff(self.above, axis=1, prepend=1.0))


def shares_of(days: Days) -> Shares:
    """All points of the days, weighted as the days are."""
    ordered: Doubles = np.sort(days.values, axis=2)  # gaps come last
    count = np.count_nonzero(~np.isnan(days.values), axis=2)[..., None]
    place = np.maximum(np.ceil(EDGES * count).astype(np.intp) - 1, 0)
    values = np.take_along_axis(ordered, place, axis=2)
    weights = days.weights[:, :, None] * PIECES
    values = np.asarray(np.where(weights > 0, values, np.nan).reshape(len(values), -1), np.float64)
    order = np.argsort(values, axis=1)
    mass = np.take_along_axis(weights.reshape(len(values), -1), order, axis=1)
    return Shares(np.take_along_axis(values, order, axis=1), np.maximum(1.0 - np.cumsum(mass, axis=1), 0.0))

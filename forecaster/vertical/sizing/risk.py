"""Risk and slack of a size by the past days, and the level with the smallest total cost.

`Shares` give the share of the coming time above a level, `Peaks` the chance that its peak exceeds one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.vertical.sizing.panel import PastDays, SizeColumns

Doubles = NDArray[np.float64]

_EDGES = np.array([0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995, 1.0])
_PIECES = np.diff(_EDGES, prepend=0.0)
MIN_WIDTH = 0.02
WIDTH_OF_A_DAY = 0.15
"""Width when one day is known: its peak times or over 1.3 covers nine of ten next days of the recorded load."""
SHARE_OF_SPREAD = 0.25
_MIN = 1e-12
_STEEPEST = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """[row, sample] values in rising order with the share of time above each; NaN and 0 where nothing is known."""

    values: Doubles
    above: Doubles

    def share_above(self, level: Doubles) -> Doubles:
        """[row] the share of time above a level; NaN without one."""
        below = (self.values <= level[:, None]).sum(axis=1) - 1
        share = np.take_along_axis(self.above, np.maximum(below, 0)[:, None], axis=1)[:, 0]
        return np.where(np.isnan(level), np.nan, np.where(below >= 0, share, 1.0))

    def quantile(self, share: float) -> Doubles:
        """[row] the lowest value that no more than `1 - share` of the time is above; NaN where nothing is known."""
        place = np.minimum((self.above > 1 - share + 1e-9).sum(axis=1), self.values.shape[1] - 1)
        return np.asarray(np.take_along_axis(self.values, place[:, None], axis=1)[:, 0])

    def mean(self) -> Doubles:
        """[row] the mean value."""
        return np.asarray(np.nansum(self.values * self._pieces(), axis=1))

    def slack(self, level: Doubles) -> Doubles:
        """[row] mean amount left below a level."""
        return np.asarray(np.nansum(np.maximum(level[:, None] - self.values, 0) * self._pieces(), axis=1))

    def short(self, level: Doubles) -> Doubles:
        """[row] mean of what lies above a level."""
        return np.asarray(np.nansum(np.maximum(self.values - level[:, None], 0) * self._pieces(), axis=1))

    def _pieces(self) -> Doubles:
        return np.asarray(-np.diff(self.above, axis=1, prepend=1.0))


def shares_of(days: PastDays) -> Shares:
    """All points of the days, weighted as the days are."""
    ordered: Doubles = np.sort(days.values, axis=2)  # gaps come last
    count = np.count_nonzero(~np.isnan(days.values), axis=2)[..., None]
    place = np.maximum(np.ceil(_EDGES * count).astype(np.intp) - 1, 0)
    values = np.take_along_axis(ordered, place, axis=2)
    weights = days.weights[:, :, None] * _PIECES
    values = np.asarray(np.where(weights > 0, values, np.nan).reshape(len(values), -1), np.float64)
    order = np.argsort(values, axis=1)
    mass = np.take_along_axis(weights.reshape(len(values), -1), order, axis=1)
    return Shares(np.take_along_axis(values, order, axis=1), np.maximum(1.0 - np.cumsum(mass, axis=1), 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Peaks:
    """Past peaks on a logarithmic scale: `logs`, `weights` [row, day] and `width` [row]."""

    logs: Doubles
    weights: Doubles
    width: Doubles

    def chance_above(self, levels: Doubles, days: float = 1.0) -> Doubles:
        """[row, level] chance that one of `days` coming days has a higher peak."""
        distance = (self.logs[:, :, None] - np.log(np.maximum(levels, _MIN))[:, None, :]) / self.width[:, None, None]
        above = 1.0 / (1.0 + np.exp(np.clip(-distance, -_STEEPEST, _STEEPEST)))
        chance = np.einsum("rd,rdl->rl", self.weights, above)
        return np.asarray(1.0 - (1.0 - np.minimum(chance, 1.0)) ** days)

    def scale(self) -> Doubles:
        """[row] the weighted mean peak."""
        return np.asarray((self.weights * np.exp(self.logs)).sum(axis=1))


def peaks_of(peaks: Doubles, weights: Doubles) -> Peaks:
    """Return peaks [row, day], NaN where not known, and weights that are zero there."""
    logs = np.log(np.maximum(np.where(weights > 0, peaks, 1.0), _MIN))
    mean = (weights * logs).sum(axis=1, keepdims=True)
    spread = np.sqrt((weights * (logs - mean) ** 2).sum(axis=1))
    days = 1.0 / np.maximum((weights**2).sum(axis=1), _MIN)
    width = MIN_WIDTH + WIDTH_OF_A_DAY / np.maximum(days, 1.0) + SHARE_OF_SPREAD * spread * days**-0.2
    return Peaks(logs, weights, np.minimum(width, 1.0))


@dataclass(frozen=True, slots=True)
class MishapPrices:
    """Relative to the container's own level, so that one price suits a small and a large container.

    `mishap` is paid once for each expected mishap, `change` once for a change, and every hour costs the size itself.
    """

    mishap: float
    """Hours of the container's resource that a mishap costs: an OOM kill, or the coming interval above the request."""
    change: float = 0.0
    """Hours of the container's resource that a change costs."""


class CheapestLevel(NamedTuple):
    """[row] the level, and whether it is today's, kept because a change costs more."""

    level: Doubles
    unchanged: NDArray[np.bool_]


def cheapest(
    levels: Doubles, chances: Doubles, scale: Doubles, prices: MishapPrices, hours: float, today: Doubles
) -> CheapestLevel:
    """Return the cheapest of the `levels` [row, level] for `hours`.

    `chances` belong to the levels, `scale` [row] is the level that prices are relative to. `today` [row, 2] is today's
    level and its chance, NaN for none; it is kept unless another is cheaper by more than the price of a change.
    """
    cost = levels * hours + prices.mishap * scale[:, None] * chances
    best = np.argmin(np.where(np.isnan(cost), np.inf, cost), axis=1)
    rows = np.arange(len(levels))
    staying = today[:, 0] * hours + prices.mishap * scale * today[:, 1]
    unchanged = staying <= cost[rows, best] + prices.change * scale
    return CheapestLevel(np.where(unchanged, today[:, 0], levels[rows, best]), unchanged)


def chance_above(peaks: Peaks, level: Doubles, days: float) -> Doubles:
    """[row] the chance that a peak passes a level; NaN without one."""
    return np.where(np.isnan(level), np.nan, peaks.chance_above(np.nan_to_num(level, nan=1.0)[:, None], days)[:, 0])


def evaluated(
    request: Doubles,
    limit: Doubles,
    risk: Callable[[Doubles], Doubles],
    shares: Shares,
    *,
    days: Doubles,
    unchanged: NDArray[np.bool_],
    mechanism: NDArray[np.intp],
) -> SizeColumns:
    """Sizes with their `risk` at a level: share of time of CPU above it, or chance of a peak of memory above it."""
    known = days >= 1
    return SizeColumns(
        request=np.where(known, request, np.nan),
        limit=np.where(known, limit, np.nan),
        over_request=np.where(known, risk(request), np.nan),
        over_limit=np.where(known, risk(limit), np.nan),
        slack=np.where(known, shares.slack(request), np.nan),
        unchanged=unchanged,
        mechanism=mechanism,
    )

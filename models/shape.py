"""Shape: what a series usually is at a bin, and how much of being off it remains some steps later.

A model that learns a shape (a wave, a season, a profile) gives it here and gets forecasts that start from where the
series is now: shape + w1 · latest deviation + w2 · mean deviation of the last hour + w3 · of the last day, with weights
learned per series and per number of steps ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from .clean import bins_seen, bounded, filled
from .panel import DAY
from .residuals import Places, fitted_residuals, interpolation, residuals_of, too_short

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from .model import Fitted
    from .panel import Floats, Panel
    from .residuals import Bins

# Share of the observations that speak for "nothing of it remains": little, as a week holds few independent hours.
SHRINK = 0.02


class Shape(Protocol):
    """A learned shape; a value."""

    def at(self, bins: Bins) -> Floats:
        """[series, bin] in the unit of the panel, at bins counted from the start of the panel it was learned from."""
        ...


@dataclass(frozen=True, eq=False)
class Carried:
    """A shape, and weights [series, column, anchor] of the present deviation.

    Attributes:
        start: instant from which the shape counts its bins.
        least: bins of history that a series must have.
        anchors: steps ahead for which there are weights.
    """

    shape: Shape
    start: datetime
    least: int
    anchors: Bins
    weights: Floats

    def expected(self, history: Panel, steps: int) -> Floats:
        """[series, step]: the shape plus what remains of the deviation, NaN for series that are too young."""
        next_bin = (history.end - self.start) // history.step
        day = min(history.bins(DAY), history.length)
        past, ahead = np.arange(next_bin - day, next_bin), np.arange(next_bin, next_bin + steps)
        deviation = filled(history.values[:, history.length - day :] - self.shape.at(past))
        columns = deviations(deviation, np.array([day - 1]), history.bins(DAY))[:, 0]
        carried = np.einsum("sp,spa->sa", columns, self.weights) @ interpolation(self.anchors, steps)
        return np.where((bins_seen(history.values) >= self.least)[:, None], self.shape.at(ahead) + carried, np.nan)


def carried(
    name: str,
    panel: Panel,
    shape: Shape,
    *,
    least: int,
    stretch: float = 1.0,
    failures: Mapping[str, str] | None = None,
) -> Fitted:
    """The fitted model of a shape of `panel`; `stretch` as in `residuals_of`, `failures` as in `fitted_residuals`."""
    places = Places.of(panel, panel.bins(DAY))
    if not places:
        return too_short(name, panel)
    seen = bounded(panel)
    usual = shape.at(np.arange(panel.length))
    off = seen.values - usual
    columns = deviations(filled(off), places.origins, panel.bins(DAY))
    ahead = np.minimum(places.ahead(), panel.length - 1)
    targets = np.where(places.ahead() < panel.length, off[:, ahead], np.nan)
    weights = persistence(columns, targets)
    expected = usual[:, ahead] + columns @ weights
    carry = Carried(shape, panel.start, least, places.anchors, weights)
    return fitted_residuals(name, panel, carry, residuals_of(seen, places, expected, stretch=stretch), failures or {})


def deviations(off: Floats, origins: Bins, day: int) -> Floats:
    """[series, origin, 3] of gapless deviations [series, time]: the latest, the mean of an hour, the mean of a day."""
    hour = trailing_mean(off, origins, max(2, day // 24))
    return np.stack([off[:, origins], hour, trailing_mean(off, origins, day)], axis=2)


def trailing_mean(values: Floats, origins: Bins, width: int) -> Floats:
    """[series, origin] mean of the `width` bins of gapless values up to each origin, fewer at the beginning."""
    total = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1, dtype=np.float64)], axis=1)
    first = np.maximum(origins + 1 - width, 0)
    return np.asarray((total[:, origins + 1] - total[:, first]) / (origins + 1 - first))


def persistence(columns: Floats, targets: Floats) -> Floats:
    """[series, column, anchor] weights of columns [series, origin, column] for targets [series, origin, anchor].

    Least squares, drawn to 0 a little; targets that are NaN count nothing. All series and anchors in one batch.
    """
    count = columns.shape[2]
    size = np.sqrt(np.mean(np.square(columns), axis=(1, 2), keepdims=True))
    unit = columns / np.where(size > 0, size, 1.0)
    known = np.isfinite(targets)
    pairs = (unit[:, :, :, None] * unit[:, :, None, :]).reshape(*unit.shape[:2], count * count)
    squares = (pairs.swapaxes(1, 2) @ known).reshape(len(unit), count, count, known.shape[2]).transpose(0, 3, 1, 2)
    cross = (unit.swapaxes(1, 2) @ np.nan_to_num(targets)).swapaxes(1, 2)[:, :, :, None]
    penalty = SHRINK * known.sum(axis=1)[:, :, None, None] + 1.0
    weights = np.linalg.solve(squares + penalty * np.eye(count), cross)[:, :, :, 0].swapaxes(1, 2)
    return np.asarray(weights / np.where(size > 0, size, 1.0))

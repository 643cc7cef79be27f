"""Harmonic regression: waves of the day and of the week, for all series in one matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .clean import bounded
from .panel import DAY
from .residuals import too_short
from .shape import carried

if TYPE_CHECKING:
    from .model import Fitted
    from .panel import Floats, Panel
    from .residuals import Bins

# Waves of the week need to be seen more than once; a day wave needs two days to differ from a trend.
WEEK_FROM, LEAST_DAYS = 8, 2
# So many observations of 0 speak against every wave: nothing against 2,000 bins, everything where all are gaps.
HARMONIC_PENALTY = 1.0


@dataclass(frozen=True)
class Harmonic:
    """Least squares on sines and cosines of the time of day and week, plus what remains of the present deviation.

        y(t) = c + Σₖ aₖ·cos(2πkt/day) + bₖ·sin(2πkt/day) + the same for the week

    Gaps count nothing: series with gaps have normal equations of their own, solved in one batch. Needs two days.
    Formula: dynamic harmonic regression, Hyndman and Athanasopoulos, Forecasting: Principles and Practice, 10.5.

    Attributes:
        daily: waves of the day; 8 follow a flank of an hour and a half.
        weekly: waves of the week, used by panels that hold eight days; 3 tell a weekend.
        days: latest days used.

    >>> import numpy as np, datetime as dt
    >>> from models import Panel
    >>> monday = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    >>> wave = 10 + 5 * np.sin(np.arange(96) / 24 * 2 * np.pi)
    >>> panel = Panel(wave[None], monday, dt.timedelta(hours=1), ("shop/web",))
    >>> Harmonic().fit(panel).forecast(3, (0.5,)).values.round(1).tolist()
    [[[10.0, 11.3, 12.4]]]
    """

    daily: int = 8
    weekly: int = 3
    days: int = 14
    name: str = "harmonic"

    def fit(self, panel: Panel) -> Fitted:
        """Solve the normal equations of all series at once."""
        panel = panel.last(self.days * DAY)
        day = panel.bins(DAY)
        if day < LEAST_DAYS or panel.length < LEAST_DAYS * day:
            return too_short(self.name, panel)
        weekly = self.weekly if panel.length >= WEEK_FROM * day else 0
        frequencies = wave_frequencies(day, self.daily, weekly)
        columns = waves(np.arange(panel.length), frequencies)
        shape = Waves(frequencies, coefficients(bounded(panel).values, columns))
        stretch = panel.length / (panel.length - columns.shape[1])
        return carried(self.name, panel, shape, least=LEAST_DAYS * day, stretch=stretch)


@dataclass(frozen=True, eq=False)
class Waves:
    """A shape of waves: coefficients [series, column]."""

    frequencies: Floats
    coefficients: Floats

    def at(self, bins: Bins) -> Floats:
        """See Shape."""
        return np.asarray(self.coefficients @ waves(bins, self.frequencies).T)


def wave_frequencies(day: int, daily: int, weekly: int) -> Floats:
    """Waves per bin, as many of them as a day of so many bins can show."""
    each = [k / day for k in range(1, min(daily, (day - 1) // 2) + 1)]
    return np.array(each + [k / (7 * day) for k in range(1, weekly + 1)])


def waves(bins: Bins, frequencies: Floats) -> Floats:
    """[bin, 1 + 2·frequency]: a constant, then the cosines, then the sines."""
    angle = 2 * np.pi * bins[:, None] * frequencies
    return np.concatenate([np.ones((len(bins), 1)), np.cos(angle), np.sin(angle)], axis=1)


def coefficients(values: Floats, columns: Floats) -> Floats:
    """[series, column] least squares of values [series, time] on columns [time, column], around each series' mean."""
    known = np.isfinite(values)
    count = known.sum(axis=1, keepdims=True)
    mean = np.nansum(values, axis=1, keepdims=True) / np.maximum(1, count)
    cross = np.where(known, values - mean, 0.0) @ columns
    found = np.zeros_like(cross)
    whole = known.all(axis=1)
    penalty = HARMONIC_PENALTY * np.eye(columns.shape[1])
    found[whole] = np.linalg.solve(columns.T @ columns + penalty, cross[whole].T).T
    if not whole.all():
        pairs = (columns[:, :, None] * columns[:, None, :]).reshape(len(columns), -1)
        squares = (known[~whole].astype(np.float64) @ pairs).reshape(-1, *penalty.shape)
        found[~whole] = np.linalg.solve(squares + penalty, cross[~whole][:, :, None])[:, :, 0]
    found[:, :1] += mean
    return found

"""Effect of a load forecast per pod on the days that sizes are learned from.

Days with a load like the forecast one weigh more: the forecast's own quantiles say how likely each day is as the coming
one. Where the forecast lies beyond every known day, usage is assumed to grow by as much; within them the weights alone
apply, since multiplying as well would count the growth twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.vertical.sizing.panel import PastDays, days_of

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]

LEAST, MOST = 0.5, 2.0
"""However far a forecast goes, usage is taken to grow no further."""
WIDENED = 0.1
"""Added to the forecast's spread: two days of one load are no closer than this."""
_FARTHEST = 3.0
"""Largest distance in spreads; a larger one counts as this, so that a forecast never excludes a day for good."""
_NORMAL = {"low": 1.2816, "high": 1.6449}
"""Distance of the 10 % and the 95 % quantile from the median, in standard deviations."""
_MIN_LOAD = 1e-9


class PeakQuantiles(NamedTuple):
    """[row] quantiles of the highest total until the next change: 10 %, half, 95 %. NaN where it is not forecast."""

    low: Doubles
    median: Doubles
    high: Doubles


@dataclass(frozen=True, slots=True, eq=False)
class PodCounts:
    """[row] number of pods that share a total: the present `pods`, or an autoscaler's count for the total.

    `per_pod` is the load at which it needs one pod, NaN where the count does not follow the load.
    """

    pods: Doubles
    per_pod: Doubles
    least: Doubles
    most: Doubles

    def followed(self, total: Doubles) -> Doubles:
        """Pods for totals [row, ...], not rounded: an autoscaler within its bounds keeps the load per pod constant."""
        per_pod, least, most = (_beside(column, total) for column in (self.per_pod, self.least, self.most))
        return np.asarray(np.clip(total / per_pod, least, most))

    def coming(self, total: Doubles) -> Doubles:
        """[row] load per pod of totals [row] to come."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(total / np.where(np.isnan(self.per_pod), self.pods, self.followed(total)))


class PodLoad(NamedTuple):
    """One row of `LoadAhead`."""

    ratio: float = 1.0
    growth: float = 1.0
    likeness: tuple[float, ...] = ()


UNFORECAST = PodLoad()


@dataclass(frozen=True, slots=True, eq=False)
class LoadForecast:
    """`likeness` [row, day] factors on the days' weights, latest first; `growth` and `ratio` [row].

    `ratio` is the forecast load per pod over the mean of the known days'. All are 1 where nothing is known.
    """

    likeness: Doubles
    growth: Doubles
    ratio: Doubles

    def only_raising(self) -> LoadForecast:
        """Return the forecast where more load is expected than the days had on average; nothing where it is less."""
        more = self.ratio > 1
        return LoadForecast(
            np.where(more[:, None], self.likeness, 1.0),
            np.maximum(self.growth, 1.0),
            np.where(more, self.ratio, 1.0),
        )

    def rows(self) -> list[PodLoad]:
        """Return the rows one by one."""
        parts = self.ratio.tolist(), self.growth.tolist(), map(tuple, self.likeness.tolist())
        return [PodLoad(*row) for row in zip(*parts, strict=True)]


def load_forecast(
    forecast: PeakQuantiles, total: Floats, pods: Floats, counts: PodCounts, points: int, ahead: int
) -> LoadForecast:
    """Compare the forecast with past totals and ready pods [row, time], latest last, `points` to a day."""
    days = days_of(total, points, ahead)
    past = np.log(np.maximum(_load_per_pod(days, days_of(pods, points, ahead), counts), _MIN_LOAD))
    low, median, high = (np.log(np.maximum(counts.coming(quantile), _MIN_LOAD)) for quantile in forecast)
    mean = np.nansum(days.weights * past, axis=1) / np.maximum((days.weights * ~np.isnan(past)).sum(axis=1), 1e-12)
    known = np.isfinite(median) & ~np.isnan(past).all(axis=1)
    return LoadForecast(
        np.where(known[:, None], _likeness(past, low, median, high), 1.0),
        np.where(known, _growth(past, median), 1.0),
        np.where(known, np.exp(median - mean), 1.0),
    )


def _likeness(past: Doubles, low: Doubles, median: Doubles, high: Doubles) -> Doubles:
    """[row, day] the forecast's density at each day's load, of a normal distribution with two widths; 1 at its top."""
    away = past - median[:, None]
    spread = np.where(
        away > 0, ((high - median) / _NORMAL["high"])[:, None], ((median - low) / _NORMAL["low"])[:, None]
    )
    far = np.minimum(np.abs(away) / (spread + WIDENED), _FARTHEST)
    return np.where(np.isnan(far), 1.0, np.exp(-0.5 * far**2))


def _growth(past: Doubles, median: Doubles) -> Doubles:
    """[row] by how much the forecast lies beyond the highest day, or below the lowest."""
    beyond, below = median - np.fmax.reduce(past, axis=1), median - np.fmin.reduce(past, axis=1)
    return np.clip(np.exp(np.where(beyond > 0, beyond, np.where(below < 0, below, 0.0))), LEAST, MOST)


def _load_per_pod(total: PastDays, pods: PastDays, counts: PodCounts) -> Doubles:
    """[row, day] at each day's highest total; NaN where the day is not known."""
    peaks = total.peaks()
    at = np.where(np.isnan(total.values), -np.inf, total.values).argmax(axis=2)
    there = np.take_along_axis(pods.values, at[:, :, None], axis=2)[:, :, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = np.where(there >= 1, peaks / there, np.nan)
        followed = peaks / counts.followed(peaks)
    return np.where(np.isnan(counts.per_pod)[:, None], shared, followed)


def _beside(column: Doubles, values: Doubles) -> Doubles:
    return column.reshape(-1, *(1,) * (values.ndim - 1))

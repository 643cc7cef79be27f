"""Inputs and results of sizing many containers: a row per container.

`PastDays` are the past as days counted back from now; recent days and the weekday of the coming one weigh more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.window import DAY

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ContainerPanel:
    """Usage of the hottest pod of each container, so that a hot shard is not averaged away, and its present size.

    `cpu` in cores and `memory` in bytes [row, time], the latest column last and `points` to a day, NaN for gaps. The
    others are [row]: NaN where nothing is stated; `oom_floor` 0 without an OOM kill; `growth` of the load of one pod
    beyond what the past days had, 1 where it is not forecast; `throttled` the share of time in which CPU was throttled
    or stalled. `likeness` [row, day] says how much each day's load is like the forecast one, the latest day first.
    """

    cpu: Floats
    memory: Floats
    points: int
    cpu_request: Doubles
    cpu_limit: Doubles
    memory_request: Doubles
    memory_limit: Doubles
    oom_floor: Doubles
    growth: Doubles
    throttled: Doubles | None = None
    likeness: Doubles | None = None

    def ahead(self, horizon: timedelta) -> int:
        """Points until the next change, at most a day."""
        return min(max(round(self.points * (horizon / DAY)), 1), self.points)


@dataclass(frozen=True, slots=True, eq=False)
class SizeColumns:
    """[row] sizes of one resource; NaN throughout where none is known.

    `over_request` is the share of the coming time above the request, or for memory the chance of a peak above it;
    `over_limit` the same of the limit; `slack` the mean of what is requested and not used; `unchanged` where
    today's size stays because a change costs more than it gains.
    """

    request: Doubles
    limit: Doubles
    over_request: Doubles
    over_limit: Doubles
    slack: Doubles
    unchanged: Flags
    mechanism: NDArray[np.intp]


HALF_LIFE_DAYS = 7.0
_SAME_WEEKDAY = 6.0
"""Weight factor of the same weekday. Of two weeks, a weekly peak then has 35 % of all weight, whether or not the other
six days are quiet: no realistic price of an OOM kill ignores it."""
WEIGHT_OF_NOW = 0.4
"""Weight of the hours just past against all days together, when only the next hours are sized for."""
_MIN_SHARE = 0.25
"""A day with fewer known points than this share says nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class PastDays:
    """`values` [row, day, point], the latest day first; `weights` [row, day] sum to one, or to 0 if none is known."""

    values: Floats
    weights: Doubles

    @property
    def known(self) -> Doubles:
        """[row] how many days say something."""
        return np.asarray(np.count_nonzero(self.weights, axis=1), np.float64)

    def peaks(self) -> Doubles:
        """[row, day] the highest value of each day; NaN where the day is not known."""
        return np.where(self.weights > 0, np.fmax.reduce(self.values, axis=2), np.nan).astype(np.float64)

    def troughs(self) -> Doubles:
        """[row, day] the lowest value of each day; NaN where the day is not known."""
        return np.where(self.weights > 0, np.fmin.reduce(self.values, axis=2), np.nan).astype(np.float64)


def days_of(usage: Floats, points: int, ahead: int | None = None) -> PastDays:
    """Return whole days of `points` back from the latest column; columns before the first whole day are left out.

    With `ahead`, fewer points than a day, only the hours that come next: that many from the same time of each day on,
    and the last that many before now, which alone know of a change since yesterday.
    """
    count = usage.shape[1] // points
    latest = usage[:, usage.shape[1] - count * points :]
    values = latest.reshape(len(usage), count, points)[:, ::-1]
    weights = _weights(count)
    if ahead is not None and ahead < points:
        values = np.concatenate([latest[:, None, latest.shape[1] - ahead :], values[:, :, :ahead]], axis=1)
        weights = np.concatenate([[WEIGHT_OF_NOW * weights.sum()], weights])
    known = np.count_nonzero(~np.isnan(values), axis=2) >= _MIN_SHARE * values.shape[2]
    weights = np.where(known, weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return PastDays(values, weights / np.where(total > 0, total, 1.0))


def resembling(days: PastDays, likeness: Doubles | None) -> PastDays:
    """Return the days with weights times `likeness` [row, day], latest first; days beyond its columns keep theirs."""
    if likeness is None:
        return days
    missing = max(days.weights.shape[1] - likeness.shape[1], 0)
    factors = np.pad(likeness, ((0, 0), (0, missing)), constant_values=1.0)[:, : days.weights.shape[1]]
    weights = days.weights * factors
    total = weights.sum(axis=1, keepdims=True)
    return PastDays(days.values, weights / np.where(total > 0, total, 1.0))


def in_ratio(request: Doubles, today: Doubles, limit: Doubles) -> Doubles:
    """[row] the limit in today's ratio to the request, never below it; NaN where there is no ratio."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(today > 0, request * np.maximum(limit / today, 1.0), np.nan)


def _weights(count: int) -> Doubles:
    ago = np.arange(1, count + 1)
    return np.asarray(0.5 ** (ago / HALF_LIFE_DAYS) * np.where(ago % 7 == 0, _SAME_WEEKDAY, 1.0))

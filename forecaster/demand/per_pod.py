"""What one pod used: total demand over ready pods, the most demanding day of the last seven.

Arrays are [workload, time], newest last.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating]

DAY = timedelta(days=1)
DAYS = 7
LEAST_SHARE_OF_DAY = 0.25
"""A day with fewer points than this share says nothing about its quantile."""


def per_pod(total: Floats, pods: Floats) -> Floats:
    """Usage of one pod at each common instant: total demand over ready pods.

    Instants with no ready pod are gaps: a total without a pod is the remainder of a pod that is gone.
    """
    common = min(total.shape[1], pods.shape[1])
    used, ready = total[:, total.shape[1] - common :], pods[:, pods.shape[1] - common :]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ready >= 1, used / ready, np.nan)


def demanding_day(usage: Floats, quantile: float, step: timedelta) -> Floats:
    """[workload] the highest of the daily quantiles of the last seven days; NaN where no day has enough points."""
    points = DAY // step
    daily = quantile_of_known(_days(usage, points), quantile, at_least=LEAST_SHARE_OF_DAY * points)
    return np.asarray(np.fmax.reduce(daily, axis=1))


def days_known(usage: Floats, step: timedelta) -> Floats:
    """[workload] how much history there is, in days of known points."""
    return np.asarray(np.count_nonzero(~np.isnan(usage), axis=1) / (DAY / step))


def quantile_of_known(values: Floats, quantile: float, *, at_least: float) -> Floats:
    """Quantile over the last axis, between neighbours by a straight line; NaN where fewer than `at_least` are known."""
    ordered = np.sort(values, axis=-1)  # NaN comes last
    known = np.count_nonzero(~np.isnan(values), axis=-1)[..., None]
    place = quantile * np.maximum(known - 1, 0)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, np.maximum(known - 1, 0))
    low, high = np.take_along_axis(ordered, below, axis=-1), np.take_along_axis(ordered, above, axis=-1)
    found = low + (high - low) * (place - below)
    return np.asarray(np.where(known >= at_least, found, np.nan)[..., 0])


def _days(usage: Floats, points: int) -> Floats:
    """[workload, day, point] of the last seven days, counted back from the newest; gaps before the first."""
    newest = usage[:, max(0, usage.shape[1] - DAYS * points) :]
    whole = np.full((len(usage), DAYS * points), np.nan, usage.dtype)
    whole[:, DAYS * points - newest.shape[1] :] = newest
    return whole.reshape(len(usage), DAYS, points)

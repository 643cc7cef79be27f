"""What one pod used: total demand over ready pods, the most demanding day of the last seven."""

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
    """Usage of one pod at each common instant, newest last: total demand [time] over ready pods [time].

    Instants with no ready pod are gaps: a total without a pod is the remainder of a pod that is gone.
    """
    common = min(len(total), len(pods))
    ready = pods[-common:] if common else pods[:0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ready >= 1, (total[-common:] if common else total[:0]) / ready, np.nan)


def demanding_day(usage: Floats, quantile: float, step: timedelta) -> float | None:
    """The highest of the daily quantiles of the last seven days; None where no day has enough points."""
    points = DAY // step
    days = [usage[max(0, len(usage) - (i + 1) * points) : len(usage) - i * points] for i in range(DAYS)]
    known = [day[~np.isnan(day)] for day in days]
    enough = [day for day in known if len(day) >= LEAST_SHARE_OF_DAY * points]
    return max((float(np.quantile(day, quantile)) for day in enough), default=None)


def days_known(usage: Floats, step: timedelta) -> float:
    """How much history there is, in days of known points."""
    return float(np.count_nonzero(~np.isnan(usage))) / (DAY / step)

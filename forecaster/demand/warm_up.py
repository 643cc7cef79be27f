"""Warm-up: what new pods use to start is not demand, and is gone when they have started.

Open-loop demand is what arrives, whatever the pods: after this correction a constant demand is constant under any path
of the count. Arrays are [workload, time], newest last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RANK = 0.25
"""Pods are added when demand rises, so most starts show a rise besides the warm-up: the lower ones say what is left."""
LEAST_STARTS = 3


def starting(pods: Floats, minutes: int) -> Floats:
    """Pods that became ready within the last `minutes` columns: the rises of the count, summed."""
    known = np.where(np.isnan(pods), 0.0, pods)
    total = np.cumsum(np.maximum(np.diff(known, axis=1, prepend=known[:, :1]), 0.0), axis=1)
    earlier = np.zeros_like(total)
    earlier[:, minutes:] = total[:, : total.shape[1] - minutes] if minutes < total.shape[1] else 0.0
    return np.asarray(np.minimum(total - earlier, known))


def warm_up(usage: Floats, pods: Floats, minutes: int) -> Floats:
    """[workload] what one pod uses besides its share of the load while it starts; 0 where too few starts were seen."""
    new = starting(pods, minutes)
    begins = (new[:, 1:] > 0) & (new[:, :-1] == 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        excess = np.where(begins, (usage[:, 1:] - usage[:, :-1]) / new[:, 1:], np.nan)
    seen = (~np.isnan(excess)).sum(axis=1)
    low = np.array([np.nanquantile(row, RANK) if count else 0.0 for row, count in zip(excess, seen, strict=True)])
    return np.asarray(np.where(seen >= LEAST_STARTS, np.maximum(low, 0.0), 0.0))


def without_warm_up(usage: Floats, pods: Floats, minutes: int, each: Floats) -> Floats:
    """Usage less what starting pods use to start, `each` [workload]; never below 0."""
    return np.asarray(np.maximum(usage - starting(pods, minutes) * each[:, None], 0.0))

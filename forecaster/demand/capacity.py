"""Capacity of one pod: learned from how full pods were while service was good and while it was not.

Learning begins at the request. The HPA's target is the lower bound, because its owner has tried it; the limit is the
upper bound. A version with another cost of CPU may carry more or less, so it is learned anew; other
versions continue with the capacity of the version before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Amounts = NDArray[np.floating]

CARRIED_QUANTILE = 0.99
"""Quantile of the load per pod during good service: a load that is known to work, not a single lucky minute."""
STRAIN = 0.05
"""Rank among the loads of strained minutes: the pods were too full there, so they carry less."""
FULLEST = 0.25
"""Share of time: where a quarter of it was throttled, the fullest quarter determines the capacity."""
MINUTES_ENOUGH = 60
"""Minutes with settled pods at which observations count as much as the prior."""
CHANGED = 0.15
"""A version is learned anew where its usual load per unit of traffic moved by more than this share."""


@dataclass(frozen=True, slots=True)
class LearnedCapacity:
    """Amount one pod carries, in the signal's unit; `minutes` behind it, and the version it was learned from."""

    amount: float
    minutes: int = 0
    version: str = ""
    cost: float | None = None
    """Usual usage per unit of traffic of this version, where both are known."""


def settled(total: Floats, pods: Floats) -> Floats:
    """Load per pod [minute] where as many pods were ready as in the minute before; NaN elsewhere, and in the first."""
    before = np.concatenate([[np.nan], pods[:-1]])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((pods == before) & (pods >= 1), total / pods, np.nan)


def fullest(load_per_pod: Floats) -> NDArray[np.bool_]:
    """The fullest quarter of a strained time [minute], in which the pods were too full; the rest is not known."""
    known = load_per_pod[~np.isnan(load_per_pod)]
    if not len(known):
        return np.zeros(len(load_per_pod), bool)
    with np.errstate(invalid="ignore"):
        return np.asarray(load_per_pod >= np.quantile(known, 1.0 - FULLEST))


def learned(
    before: LearnedCapacity,
    load_per_pod: Floats,
    strained: NDArray[np.bool_],
    *,
    target: float,
    version: str,
    most: float = np.inf,
    each: int = 1,
) -> LearnedCapacity:
    """Capacity after more time with settled pods: `load_per_pod` [column], NaN unknown, and which were strained.

    Strained: throttled, latency above its objective, requests shed or queued. Loads that were carried well raise the
    estimate, loads that were not lower it; never below the target, nor above `most`. A column is `each` minutes.
    """
    known = ~np.isnan(load_per_pod)
    good, bad = load_per_pod[known & ~strained], load_per_pod[known & strained]
    begin = max(min(before.amount, most), target)
    carried = max(float(np.quantile(good, CARRIED_QUANTILE)) if len(good) else 0.0, begin)
    bound = float(np.quantile(bad, STRAIN)) if len(bad) else np.inf
    observed = max(min(carried, bound, most), target)
    minutes = before.minutes + each * int(known.sum())
    weight = minutes / (minutes + MINUTES_ENOUGH)
    return LearnedCapacity(begin + weight * (observed - begin), minutes, version, before.cost)


def rolled_out(before: LearnedCapacity, version: str, cost: float | None, fresh: float) -> LearnedCapacity:
    """Return the capacity at the beginning of another version: the same, or `fresh` if its cost moved.

    `cost` is what its traffic costs, usage per unit; None where it is not known.
    """
    if version == before.version:
        return before
    if before.cost and cost and abs(cost / before.cost - 1.0) > CHANGED:
        return LearnedCapacity(fresh, 0, version, cost)
    return replace(before, version=version, cost=cost if cost is not None else before.cost)


def per_pod(total: Amounts, pods: Amounts) -> Amounts:
    """Usage of one pod at each common instant: total demand over ready pods.

    Instants with no ready pod are gaps: a total without a pod is the remainder of a pod that is gone.
    """
    common = min(total.shape[1], pods.shape[1])
    used, ready = total[:, total.shape[1] - common :], pods[:, pods.shape[1] - common :]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ready >= 1, used / ready, np.nan)

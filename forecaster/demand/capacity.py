"""What one pod can carry: learned from how full pods were when service was still good and when it was not.

The HPA's target is where learning begins and the bound below which nothing learned may fall: its owner has tried it.
A new version may carry more or less, so each is learned by itself, beginning with what the one before it had.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SEEN = 0.99
"""Rank of the load per pod under which service was good: what is known to work, not the one lucky minute."""
STRAIN = 0.05
"""Rank among the loads of strained minutes: the pods were too full there, so they carry less."""
ENOUGH = 60
"""Minutes with settled pods behind which what was seen counts half against the prior."""
CHANGED = 0.15
"""A version whose usual load per unit of traffic moved by more than this share is learned anew."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Amount one pod carries, in the signal's unit; `minutes` behind it, and the version it was learned from."""

    amount: float
    minutes: int = 0
    version: str = ""
    cost: float | None = None
    """Usual usage per unit of traffic of this version, where both are known."""


def prior(target: float, request: float | None = None) -> Capacity:
    """Before anything is known: the whole request where there is one, otherwise the HPA's target."""
    return Capacity(max(target, request or 0.0))


def learned(
    before: Capacity, load_per_pod: Floats, strained: NDArray[np.bool_], *, target: float, version: str
) -> Capacity:
    """Capacity after more minutes of settled pods: `load_per_pod` [minute], NaN unknown, and which were strained.

    Strained: throttled, latency above its objective, requests shed or queued. Loads that were carried well raise the
    estimate, loads that were not lower it; never below the target.
    """
    known = ~np.isnan(load_per_pod)
    good, bad = load_per_pod[known & ~strained], load_per_pod[known & strained]
    if not len(good) and not len(bad):
        return replace(before, version=version)
    carried = max(float(np.quantile(good, SEEN)) if len(good) else 0.0, before.amount if len(bad) == 0 else 0.0)
    bound = float(np.quantile(bad, STRAIN)) if len(bad) else np.inf
    seen = max(min(max(carried, before.amount), bound), target)
    minutes = before.minutes + int(known.sum())
    weight = minutes / (minutes + ENOUGH)
    return Capacity(weight * seen + (1 - weight) * before.amount, minutes, version, before.cost)


def rolled_out(before: Capacity, version: str, cost: float | None, target: float) -> Capacity:
    """The capacity at the beginning of another version: the same, to be learned anew if its cost moved."""
    if version == before.version:
        return before
    if before.cost and cost and abs(cost / before.cost - 1.0) > CHANGED:
        return Capacity(max(target, before.amount), 0, version, cost)
    return replace(before, version=version, cost=cost if cost is not None else before.cost)

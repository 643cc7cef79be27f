"""Policies compared at equal cost: each is a curve of unserved demand over pod-hours, drawn by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.bench.replay import TARGETS
from benchmarks.bench.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from benchmarks.bench.replay import Account

    Floats = NDArray[np.float64]

REFERENCE_TARGET, SAFE_TARGET = 0.8, 0.7
NOTABLE, DEAR = 0.05, 0.1
"""Shares by which unserved demand and pod-hours at equal safety must be above the HPA's to count as harm."""
NEGLIGIBLE = 1e-6
"""Share of the demand below which nothing counts as unserved."""
SMOOTHING, MOST_RATIO = 1e-4, 2.0
"""Added to both shares before a ratio is averaged, and the largest ratio that counts: no series decides the mean."""


class Comparison(NamedTuple):
    """One policy beside the plain HPA on one series; NaN where the settings cannot spend as much or as little."""

    unserved: float
    """At the pod-hours of the HPA with a target of 80 %."""
    hpa_unserved: float
    changes: float
    """Changes of the count, as a ratio to those of the HPA."""
    saved: float
    """Pod-hours saved at the shortage that the HPA leaves with a target of 70 %."""

    @property
    def ratio(self) -> float:
        """Unserved demand as a ratio to the HPA's, with both smoothed and the largest cut off."""
        return min((self.unserved + SMOOTHING) / (self.hpa_unserved + SMOOTHING), MOST_RATIO)

    @property
    def is_dearer(self) -> bool:
        """Whether as little is unserved as with a target of 70 % for over 1.1 times the HPA's pod-hours."""
        return self.saved < -DEAR

    @property
    def is_worse(self) -> bool:
        """Whether more than 1.05 times the HPA's unserved demand is unserved."""
        return self.unserved > (1 + NOTABLE) * self.hpa_unserved + NEGLIGIBLE


def compared(own: Account, hpa: Account) -> Comparison:
    """A policy beside the plain HPA, which was replayed with TARGETS."""
    reference, safe = TARGETS.index(REFERENCE_TARGET), TARGETS.index(SAFE_TARGET)
    cost = float(hpa.pod_hours[reference])
    changes = at_cost(own, cost, own.changes) / max(float(hpa.changes[reference]), 1e-9)
    saved = 1 - cheapest(own, float(hpa.unserved[safe])) / float(hpa.pod_hours[safe])
    return Comparison(at_cost(own, cost, own.unserved), float(hpa.unserved[reference]), changes, saved)


def at_cost(curve: Account, pod_hours: float, values: Floats) -> float:
    """`values` of a curve where it spends so many pod-hours, linear between two settings; NaN outside the curve."""
    order = np.argsort(curve.pod_hours, kind="stable")
    cost = curve.pod_hours[order]
    if not cost[0] <= pod_hours <= cost[-1]:
        return float("nan")
    return float(np.interp(pod_hours, cost, values[order]))


def cheapest(curve: Account, unserved: float) -> float:
    """Fewest pod-hours at which a curve leaves at most `unserved`, linear between two settings; NaN if none does."""
    order = np.argsort(curve.pod_hours, kind="stable")
    cost, best = curve.pod_hours[order], np.minimum.accumulate(curve.unserved[order])
    enough = np.flatnonzero(best <= unserved + 1e-9)
    if not len(enough):
        return float("nan")
    place = int(enough[0])
    if place == 0 or best[place - 1] <= best[place]:
        return float(cost[place])
    share = np.clip((best[place - 1] - unserved) / (best[place - 1] - best[place]), 0.0, 1.0)
    return float(cost[place - 1] + share * (cost[place] - cost[place - 1]))


def frontier_table(title: str, results: Mapping[str, Sequence[Comparison]], rows: str = "policy") -> Table:
    """A line a policy: unserved demand at the HPA's pod-hours over the series, and the pod-hours it saves."""
    columns = (rows, "mean", "median", "sum", "worse on", "dearer on", "changes", "pod-hours saved", "series")
    table = Table(title, columns)
    for name, comparisons in results.items():
        table.add(name, *_cells([item for item in comparisons if not np.isnan(item.unserved)], comparisons))
    return table


def _cells(comparable: Sequence[Comparison], every: Sequence[Comparison]) -> tuple[str, ...]:
    ratios = [item.unserved / item.hpa_unserved for item in comparable if item.hpa_unserved > NEGLIGIBLE]
    total = sum(item.hpa_unserved for item in comparable)
    as_safe = [item for item in every if not np.isnan(item.saved)]
    return (
        f"{np.mean([item.ratio for item in comparable]):.3f}" if comparable else "–",
        f"{np.median(ratios):.3f}" if ratios else "–",
        f"{sum(item.unserved for item in comparable) / total:.3f}" if total else "–",
        f"{sum(item.is_worse for item in comparable)} of {len(comparable)}",
        f"{sum(item.is_dearer for item in as_safe)} of {len(as_safe)}",
        f"{np.mean([item.changes for item in comparable]):.2f}" if comparable else "–",
        f"{np.median([item.saved for item in as_safe]):.0%}" if as_safe else "–",
        f"{len(comparable)} of {len(every)}",
    )

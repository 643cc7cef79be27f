"""A size for a container that nobody has seen work, from its relatives, as wide as that deserves.

Relatives are containers of the same image, else of that name in workloads called alike, else in the same chart. Their
sizes, on a logarithmic scale, are a sample of what such a container needs; its quantile is taken with the spread of a
single new member, sqrt(1 + 1/n), and never with less spread than two containers of one image show in practice.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

LEAST_SPREAD = 0.3
"""Containers of one image differ by a third: other data, other load."""
CPU_QUANTILE = 0.9
MEMORY_QUANTILE = 0.95
"""Too little CPU is waited for, too little memory is killed for."""


@dataclass(frozen=True, slots=True)
class Donor:
    """How a container is related, and its sizes if it has any: cores and bytes."""

    image: str
    workload: str
    container: str
    chart: str = ""
    cpu: float | None = None
    memory: float | None = None


class DonorSize(NamedTuple):
    """A size from so many relatives; `low` and `high` enclose nine of ten."""

    size: float
    low: float
    high: float
    relatives: int
    by: str


@dataclass(frozen=True, slots=True)
class Donors:
    """Containers to be related to, found by what relates them."""

    by_degree: Mapping[str, Mapping[Hashable, Sequence[Donor]]]

    @classmethod
    def of(cls, members: Iterable[Donor]) -> Donors:
        """Look up who is who, once for all."""
        known = list(members)
        return cls({by: _grouped(known, key) for by, key in _DEGREES})

    def relatives(self, one: Donor) -> tuple[list[Donor], str]:
        """The nearest relatives that there are, and by what they are related; empty and empty if there are none."""
        for by, key in _DEGREES:
            found = [other for other in self.by_degree[by].get(key(one), ()) if other is not one]
            if found:
                return found, by
        return [], ""


def donor_size(sizes: Sequence[float], by: str, quantile: float = CPU_QUANTILE) -> DonorSize | None:
    """The quantile of what the relatives have; None without relatives that have anything."""
    logs = [log(size) for size in sizes if size > 0]
    if not logs:
        return None
    mean = fmean(logs)
    own = sqrt(sum((each - mean) ** 2 for each in logs) / max(len(logs) - 1, 1))
    spread = max(own, LEAST_SPREAD) * sqrt(1 + 1 / len(logs))
    low, size, high = (exp(mean + NormalDist().inv_cdf(p) * spread) for p in (0.05, quantile, 0.95))
    return DonorSize(size, low, high, len(logs), by)


def _grouped(members: Iterable[Donor], key: Callable[[Donor], Hashable]) -> dict[Hashable, list[Donor]]:
    groups: dict[Hashable, list[Donor]] = defaultdict(list)
    for one in members:
        if key(one) is not None:
            groups[key(one)].append(one)
    return groups


_DEGREES: tuple[tuple[str, Callable[[Donor], Hashable]], ...] = (
    ("image", lambda one: one.image or None),
    ("workload", lambda one: (one.workload, one.container)),
    ("chart", lambda one: (one.chart, one.container) if one.chart else None),
)

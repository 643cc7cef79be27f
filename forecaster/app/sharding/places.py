"""Which worker computes which shard."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLACEMENT_SLACK = 1.1
"""Factor by which the busiest worker may hold more workloads than after a new distribution of all shards."""


def assigned(sizes: Mapping[int, int], last: Mapping[int, str], workers: Sequence[str]) -> dict[int, str]:
    """A worker for each shard: the one that ran it last, unless that one has too many workloads then; else the idlest.

    Asked again, it leaves all where they are: a shard that moves reads its history anew.
    """
    afresh = _placed(sizes, {}, workers, math.inf)
    most = PLACEMENT_SLACK * _busiest(sizes, afresh)
    found = _placed(sizes, last, workers, most)
    return found if _busiest(sizes, found) <= most else afresh


def _placed(sizes: Mapping[int, int], last: Mapping[int, str], workers: Sequence[str], most: float) -> dict[int, str]:
    """The largest first; those that cannot stay come last."""
    load, found = Counter(dict.fromkeys(workers, 0)), {}
    largest_first = sorted(sizes, key=lambda shard: (-sizes[shard], shard))
    for shard in largest_first:
        worker = last.get(shard, "")
        if worker in load and load[worker] + sizes[shard] <= most:
            found[shard] = worker
            load[worker] += sizes[shard]
    for shard in largest_first:
        if shard not in found:
            found[shard] = min(workers, key=lambda worker: load[worker])
            load[found[shard]] += sizes[shard]
    return found


def _busiest(sizes: Mapping[int, int], places: Mapping[int, str]) -> int:
    """Workloads of the worker that has most."""
    load: Counter[str] = Counter()
    for shard, worker in places.items():
        load[worker] += sizes[shard]
    return max(load.values(), default=0)

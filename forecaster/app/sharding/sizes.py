"""Sizes of workloads: a worker sends the changed ones, and the service stores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.decision import Hold, Resize
from forecaster.domain.workload import WorkloadId
from forecaster.horizontal.columns import rows_before, taken
from forecaster.publish.decided import DecidedRows

NEVER_SENT = -np.inf


class ShardSizes(NamedTuple):
    """Decided sizes of some rows of a shard."""

    rows: list[int]
    resources: list[Resize | Hold]


@dataclass(slots=True)
class SizeTimes:
    """Instants at which the size of each row of a shard changed, in the process that computes it."""

    ids: tuple[WorkloadId, ...] = ()
    size_ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """[row] as `DecidedRows.size_ids`."""
    changed: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """[row] epoch seconds."""

    def follow(self, fleet: DecidedRows) -> None:
        """Note the sizes of another evaluation time."""
        before = rows_before(self.ids, fleet.ids)
        other = (fleet.size_ids != taken(self.size_ids, before, 0)) | (before < 0)
        self.changed = np.where(other, fleet.at.timestamp(), taken(self.changed, before, NEVER_SENT))
        self.ids, self.size_ids = fleet.ids, fleet.size_ids

    def since(self, last_sent: datetime | None, fleet: DecidedRows, rows: int) -> ShardSizes:
        """Return changed sizes of the first `rows` rows since that evaluation time; all without one."""
        news = np.flatnonzero(self.changed[:rows] > (last_sent.timestamp() if last_sent else NEVER_SENT)).tolist()
        return ShardSizes(news, [fleet.resources(row) for row in news])


@dataclass(slots=True)
class SentSizes:
    """The last size of every workload, in the service."""

    ids: tuple[WorkloadId, ...] = ()
    latest: list[Resize | Hold | None] = field(default_factory=list)
    """Sizes of these workloads as last sent; None where none was sent."""

    def follow(self, ids: tuple[WorkloadId, ...]) -> None:
        """Take other workloads, or another order of them; sizes of those that stay are kept."""
        if ids != self.ids:
            before = rows_before(self.ids, ids).tolist()
            self.ids, self.latest = ids, [None if row < 0 else self.latest[row] for row in before]

    def update(self, rows: Sequence[int], sizes: ShardSizes) -> None:
        """Take over the sizes of a shard; its workloads are in these rows."""
        for place, resources in zip(*sizes, strict=True):
            before = self.latest[rows[place]]
            if before != resources:  # equal sizes stay one object, which is no change
                self.latest[rows[place]] = resources

"""Identities of workloads in a stable order: where each has its row in every column that outlives a cycle."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from forecaster.domain.window import DAY
from forecaster.domain.workload import WorkloadId
from forecaster.horizontal.columns import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

ROW_KEPT = DAY
"""A workload that is away for no longer keeps its row, and with it everything learned about it."""
SPARE_SHARE = 0.1
"""Share of rows without a workload from which on they are given back, all in one take."""


AnyTable = TypeVar("AnyTable", bound=Table)


class FittedTable(NamedTuple, Generic[AnyTable]):
    """A table with a row for every workload of a fleet."""

    table: AnyTable
    places: Rows
    """Row of each workload that was asked for."""
    compacted: bool
    """Whether rows of workloads that are gone were given back."""


@dataclass(slots=True)
class Fleet:
    """`row` of every workload that is there or was there within the last day."""

    row: dict[WorkloadId, int] = field(default_factory=dict)
    seen: list[datetime] = field(default_factory=list)
    """Instant at which each row was last present."""

    def rows(self, ids: Sequence[WorkloadId], now: datetime) -> Rows:
        """The row of each of these workloads, which are there now; a new one gets the next row."""
        for id_ in ids:
            if id_ not in self.row:
                self.row[id_] = len(self.row)
                self.seen.append(now)
        found = np.fromiter((self.row[id_] for id_ in ids), np.int64, len(ids))
        for row in found.tolist():
            self.seen[row] = now
        return found

    def compacted(self, now: datetime, known: int) -> Rows | None:
        """Give the rows of workloads that left more than a day ago back: the rows that stay, in their new order.

        -1 for those that have come since columns of `known` rows were made. None while few have left: columns are
        compacted seldom.
        """
        stay = [(id_, row) for id_, row in self.row.items() if now - self.seen[row] <= ROW_KEPT]
        if len(self.row) - len(stay) <= SPARE_SHARE * len(self.row):
            return None
        rows = [row for _, row in stay]
        self.seen = [self.seen[row] for row in rows]
        self.row = {id_: place for place, (id_, _) in enumerate(stay)}
        found = np.array(rows, np.int64)
        return np.where(found < known, found, -1)

    def fitted(self, table: AnyTable, ids: Sequence[WorkloadId], now: datetime) -> FittedTable[AnyTable]:
        """Give each of these workloads, which are there now, a row in a table of the fleet; compact it in time."""
        places, stay = self.rows(ids, now), self.compacted(now, table.rows)
        if stay is not None:
            table, places = table.take(stay), self.rows(ids, now)
        new = len(self.row) - table.rows
        if new:
            table = table.take(np.concatenate([np.arange(table.rows), np.full(new, -1)]))
        return FittedTable(table, places, compacted=stay is not None)

    def persisted(self) -> list[tuple[WorkloadId, float]]:
        """Every workload in the order of the rows, and when it was there last, in epoch seconds."""
        return [(id_, self.seen[row].timestamp()) for id_, row in self.row.items()]

    @classmethod
    def restored(cls, persisted: Iterable[tuple[Sequence[str], float]]) -> Fleet:
        """What `persisted` gave."""
        rows = [(WorkloadId(*id_), datetime.fromtimestamp(at, UTC)) for id_, at in persisted]
        return cls({id_: row for row, (id_, _) in enumerate(rows)}, [at for _, at in rows])

    def known(self, id_: WorkloadId) -> bool:
        """Whether anything learned about this workload is kept."""
        return id_ in self.row

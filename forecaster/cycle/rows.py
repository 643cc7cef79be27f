"""The workloads of a cycle as rows: their facts, resolved once, and groups that are decided together.

`Fleet` knows the row of each workload in every column that outlives a cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from forecaster.cycle.targets import NOTHING_LOST
from forecaster.demand.alignment import CachedRows, rows_among
from forecaster.domain.clock import zones_beside_utc
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import Signal
from forecaster.domain.window import DAY
from forecaster.domain.workload import Autoscaler, NamedContainer, Resources, Workload, WorkloadId
from forecaster.errors import unexpected
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.forecasting.peaks import LEVELS
from forecaster.horizontal.columns import CodedTexts, Table
from forecaster.horizontal.events import EventCalendar
from forecaster.horizontal.inputs import PolicyColumns, Rules, TargetColumns
from forecaster.horizontal.lead_time import lead_time, peak_window
from forecaster.horizontal.record import stated_row
from forecaster.horizontal.targets import signals_of
from forecaster.horizontal.terms import UNREADABLE_TERMS, Terms, policy_columns, target_columns, terms_of
from forecaster.publish.record import encoded_stated
from forecaster.publish.values import encoded_readers

Positions = NDArray[np.intp]
Places = NDArray[np.int64]


class Row(NamedTuple):
    """One workload: its policy in force, the span in which its peak is looked for, its terms, the signals they name."""

    policy: Policy
    span: PeakSpan
    terms: Terms
    signals: frozenset[Signal]
    autoscaler: Autoscaler | None
    resources: Resources
    containers: tuple[NamedContainer, ...] = ()
    failure: str = ""
    """Reason why the row cannot be read; empty when it can."""
    stated: bytes = b""
    """Encoded values of the policy and HPA of the row."""
    readers: bytes = b""
    """Encoded targets of the HPA that read our metrics."""
    lost: str = ""
    """Reason why the row is held: the source no longer lists it. Empty for a listed workload."""

    @property
    def lead_time(self) -> timedelta:
        """The lead time in force."""
        return lead_time(self.policy.horizontal).value


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Rows with the same rules, by their `positions` in this cycle's fleet, and their columns that stay for weeks."""

    rules: Rules
    positions: Positions
    policy: PolicyColumns
    targets: TargetColumns


@dataclass(frozen=True, eq=False)
class Rows:
    """The workloads of one cycle in the order of the inventory."""

    workloads: Sequence[Workload]
    rows: Sequence[Row]
    static: StaticRows

    @property
    def ids(self) -> tuple[WorkloadId, ...]:
        """Return the identities of the rows."""
        return self.static.ids


@dataclass(frozen=True, eq=False)
class StaticRows:
    """Columns that stay the same from cycle to cycle while the workloads, their HPAs and policies do."""

    ids: tuple[WorkloadId, ...]
    rows: Sequence[Row]

    @cached_property
    def known(self) -> Mapping[WorkloadId, Row]:
        """The row of each workload."""
        return dict(zip(self.ids, self.rows, strict=True))

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """Rows by their rules; those that are held as they were are not decided."""
        positions_by_rules: dict[Rules, list[int]] = defaultdict(list)
        for position, row in enumerate(self.rows):
            if not row.lost:
                positions_by_rules[row.terms.rules].append(position)
        return tuple(self._group(rules, positions) for rules, positions in positions_by_rules.items())

    def _group(self, rules: Rules, positions: list[int]) -> RowGroup:
        terms = [self.rows[position].terms for position in positions]
        return RowGroup(rules, np.array(positions, np.intp), policy_columns(terms), target_columns(terms))

    @cached_property
    def stated(self) -> CodedTexts:
        """Encoded values of the policy and HPA of each row."""
        return CodedTexts.of(row.stated for row in self.rows)

    @cached_property
    def readers(self) -> CodedTexts:
        """Readers of the metrics of each row."""
        return CodedTexts.of(row.readers for row in self.rows)

    @cached_property
    def unreadable(self) -> NDArray[np.bool_]:
        """[row] whether policy or targets could not be read."""
        return np.array([bool(row.failure) for row in self.rows], np.bool_)

    @cached_property
    def max_sample_age(self) -> NDArray[np.float64]:
        """[row] seconds after which a sample is stale."""
        return np.array([row.policy.max_sample_age.total_seconds() for row in self.rows], np.float64)

    @cached_property
    def least_history(self) -> NDArray[np.float64]:
        """[row] seconds of the latest hours that must be known before anything is forecast."""
        return np.array([row.policy.min_history.total_seconds() for row in self.rows], np.float64)

    @cached_property
    def zones(self) -> Mapping[WorkloadId, str]:
        """Time zones of the workloads that have another one than UTC."""
        return zones_beside_utc((id_, row.policy.time_zone) for id_, row in zip(self.ids, self.rows, strict=True))

    @cached_property
    def spans(self) -> Mapping[PeakSpan, Positions]:
        """The rows of each span in which a peak is looked for."""
        positions_by_span: dict[PeakSpan, list[int]] = defaultdict(list)
        for position, row in enumerate(self.rows):
            positions_by_span[row.span].append(position)
        return {span: np.array(positions, np.intp) for span, positions in positions_by_span.items()}

    @cached_property
    def members(self) -> Mapping[PeakSpan, tuple[WorkloadId, ...]]:
        """The workloads of each span."""
        return {span: tuple(self.ids[row] for row in rows.tolist()) for span, rows in self.spans.items()}

    @cached_property
    def aligned(self) -> Mapping[Hashable, CachedRows]:
        """Positions of rows among the latest values of a signal, and of a span's rows among its forecasts."""
        return defaultdict(CachedRows)

    @cached_property
    def driven(self) -> Mapping[Signal, Mapping[PeakSpan, list[WorkloadId]]]:
        """Return the workloads with a count that each signal decides, by span: only these are forecast."""
        ids_by_span: dict[Signal, dict[PeakSpan, list[WorkloadId]]] = {}
        for id_, row in zip(self.ids, self.rows, strict=True):
            for signal in row.signals:
                ids_by_span.setdefault(signal, {}).setdefault(row.span, []).append(id_)
        return ids_by_span

    @cached_property
    def gated(self) -> list[int]:
        """Return the rows with a forecast that acts only where the gate lets it."""
        return [position for position, row in enumerate(self.rows) if row.policy.horizontal.gate]

    @cached_property
    def surviving(self) -> list[int]:
        """Return the rows that are to survive the loss of a node or a zone."""
        return [position for position, row in enumerate(self.rows) if row.policy.horizontal.survive != "none"]

    @cached_property
    def calendar(self) -> EventCalendar:
        """The known events of the rows."""
        return EventCalendar([row.policy.horizontal.events for row in self.rows], [row.lead_time for row in self.rows])


@dataclass(slots=True)
class RowCache:
    """Resolves workloads into rows and keeps the answer as long as a workload's HPA, resources and policy stay."""

    static: StaticRows | None = None

    def rows(
        self, workloads: Sequence[Workload], policies: Policies, lost: Mapping[WorkloadId, str] = NOTHING_LOST
    ) -> Rows:
        """The rows of this cycle; one that cannot be read has its failure and no targets."""
        before = self.static
        known = before.known if before else {}
        rows = []
        for workload in workloads:
            row = known.get(workload.id)
            policy = policies.of(workload.id)
            if (
                row is None
                or row.policy is not policy
                or row.autoscaler != workload.autoscaler
                or row.resources != workload.resources
                or row.containers != workload.containers
            ):
                row = resolved(workload, policy)
            why = lost.get(workload.id, "") if lost else ""
            rows.append(row if row.lost == why else row._replace(lost=why))
        ids = tuple(workload.id for workload in workloads)
        if before is None or before.ids != ids or any(a is not b for a, b in zip(before.rows, rows, strict=True)):
            self.static = before = StaticRows(ids, rows)
            policies.forget_others(frozenset(ids))
        return Rows(workloads, rows, before)


def resolved(workload: Workload, policy: Policy) -> Row:
    """Convert a workload and its policy to the numbers of a row; a row that cannot be read has its failure."""
    objects = workload.autoscaler, workload.resources, workload.containers
    span = PeakSpan(*peak_window(policy.horizontal))
    try:
        terms = terms_of(workload, policy.horizontal, LEVELS, policy.max_sample_age)
        signals = frozenset(signals_of(workload, policy.horizontal))
        failure, stated = "", encoded_stated(stated_row(workload, policy.horizontal, terms))
        readers = encoded_readers(workload.autoscaler.targets if workload.autoscaler else ())
    except Exception as error:  # noqa: BLE001  the boundary of a row: what is wrong with one workload holds it alone
        terms, signals, failure, readers = UNREADABLE_TERMS, frozenset(), unexpected(error), b""
        stated = encoded_stated(stated_row(workload, policy.horizontal, terms))
    return Row(policy, span, terms, signals, *objects, failure=failure, stated=stated, readers=readers)


ROW_LIFETIME = DAY
"""A workload that is away for no longer keeps its row, and with it everything learned about it."""
SPARE_SHARE = 0.1
"""Share of rows without a workload from which on they are given back, all in one take."""


AnyTable = TypeVar("AnyTable", bound=Table)


class FittedTable(NamedTuple, Generic[AnyTable]):
    """A table with a row for every workload of a fleet."""

    table: AnyTable
    places: Places
    """Row of each requested workload."""
    compacted: bool
    """Whether rows of workloads that are gone were given back."""


@dataclass(slots=True)
class Fleet:
    """`row` of every workload that is present or was within the last day."""

    row: dict[WorkloadId, int] = field(default_factory=dict)
    last_present: list[datetime] = field(default_factory=list)
    """Instant at which each row was last present."""

    def rows(self, ids: Sequence[WorkloadId], now: datetime) -> Places:
        """Return the row of each of these present workloads; a new one gets the next row."""
        for id_ in ids:
            if id_ not in self.row:
                self.row[id_] = len(self.row)
                self.last_present.append(now)
        rows = rows_among(ids, self.row)
        for row in rows.tolist():
            self.last_present[row] = now
        return rows

    def compacted(self, now: datetime, known: int) -> Places | None:
        """Give the rows of workloads that left more than a day ago back: the rows that stay, in their new order.

        -1 for those that have come since columns of `known` rows were made. None while few have left: columns are
        compacted seldom.
        """
        stay = [(id_, row) for id_, row in self.row.items() if now - self.last_present[row] <= ROW_LIFETIME]
        if len(self.row) - len(stay) <= SPARE_SHARE * len(self.row):
            return None
        rows = [row for _, row in stay]
        self.last_present = [self.last_present[row] for row in rows]
        self.row = {id_: place for place, (id_, _) in enumerate(stay)}
        order = np.array(rows, np.int64)
        return np.where(order < known, order, -1)

    def fitted(self, table: AnyTable, ids: Sequence[WorkloadId], now: datetime) -> FittedTable[AnyTable]:
        """Give each of these present workloads a row in a table of the fleet; compact the table in time."""
        places, stay = self.rows(ids, now), self.compacted(now, table.rows)
        if stay is not None:
            table, places = table.take(stay), self.rows(ids, now)
        new = len(self.row) - table.rows
        if new:
            table = table.take(np.concatenate([np.arange(table.rows), np.full(new, -1)]))
        return FittedTable(table, places, compacted=stay is not None)

    def persisted(self) -> list[tuple[WorkloadId, float]]:
        """Every workload in the order of the rows, and when it was there last, in epoch seconds."""
        return [(id_, self.last_present[row].timestamp()) for id_, row in self.row.items()]

    @classmethod
    def restored(cls, persisted: Iterable[tuple[Sequence[str], float]]) -> Fleet:
        """Restore the workloads that `persisted` returned."""
        rows = [(WorkloadId(*id_), datetime.fromtimestamp(at, UTC)) for id_, at in persisted]
        return cls({id_: row for row, (id_, _) in enumerate(rows)}, [at for _, at in rows])

"""Single recommendations as the fleet that a cycle hands over; a test names only what its story is about.

The numbers and texts are those of the record. Sentences are made of them at each read, as in the service: the
message of a count is computed, that of a held workload is stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from forecaster.domain.decision import LeadTime, Scale
from forecaster.domain.workload import Autoscaler, Workload
from forecaster.horizontal.clamps import CLAMPS
from forecaster.horizontal.columns import Names
from forecaster.horizontal.row import (
    KNOWN,
    NO_SAMPLE,
    REASONS,
    UNKNOWN,
    DecidedRow,
    DecidedTarget,
    ForecastDetails,
    RuleNumbers,
)
from forecaster.publish.decided import DecidedRows, nothing_decided
from forecaster.publish.offer import NO_COUNT
from forecaster.publish.publisher import OfferPublisher, last_offers
from forecaster.publish.record import encoded_lead_time, encoded_stated
from forecaster.publish.values import encoded_readers
from tests.support.recommendations import NOON

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.decision import Hold, Recommendation, Resize, SignalView
    from forecaster.domain.policies import Policies
    from forecaster.publish.offer import DecidedColumns
    from forecaster.publish.table_file import TableFile

RULES = RuleNumbers(lowest=1, highest=100, max_sample_age=300.0, numbers=(("quantile", 0.9),))
NO_LEAD_TIME = msgspec.msgpack.encode((0.0, ""))


class GivenRecords(DecidedRows):
    """Given records in the form that a cycle hands over."""

    def __init__(self, at: datetime, records: Sequence[Recommendation]) -> None:
        self.records = records
        super().__init__(at, [_workload(record) for record in records], columns_of(records))

    def _record(self, index: int) -> Recommendation:
        return self.records[index]

    @property
    def size_ids(self) -> NDArray[np.int64]:
        return np.array([hash(record.resources) for record in self.records], np.int64)

    def resources(self, index: int) -> Resize | Hold:
        return self.records[index].resources

    def verdict(self, index: int) -> Scale | Hold:
        return self.records[index].replicas


class RecordPublisher(OfferPublisher):
    """The service's publisher, for stories that state records."""

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
        super().publish(at, decided_fleet(recommendations, at))


def record_publisher(table: TableFile, policies: Policies) -> RecordPublisher:
    """Publish records into one table, going on from those that lie in it."""
    return RecordPublisher(policies, {"table": table}, before=last_offers(table.path))


def decided_fleet(records: Iterable[Recommendation], at: datetime | None = None) -> DecidedRows:
    """These records as a fleet; a fleet stays what it is."""
    if isinstance(records, DecidedRows):
        return records
    rows = [*records]
    return GivenRecords(at or (rows[0].at if rows else NOON), rows)


def columns_of(records: Sequence[Recommendation]) -> DecidedColumns:
    """The columns of single recommendations."""
    signals = tuple(dict.fromkeys(str(view.signal) for record in records for view in record.signals if view.target))
    targets = max((sum(1 for view in record.signals if view.target) for record in records), default=0)
    numbers, names = nothing_decided(len(records), signals, targets), Names()
    for row, record in enumerate(records):
        _put_record(numbers, row, record)
        _put_texts(numbers, names, row, record)
        usable = [view for view in record.signals if view.target]
        for target, view in enumerate(usable):
            _put_target(numbers, names, (target, row), view, record.at)
    return replace(numbers, names=tuple(names))


def _workload(record: Recommendation) -> Workload:
    hpa = Autoscaler(record.autoscaler, 1, 100, record.targets) if record.autoscaler or record.targets else None
    return Workload(record.id, record.replicas_now, record.replicas_now, record.resources_now, hpa)


def _put_record(numbers: DecidedColumns, row: int, record: Recommendation) -> None:
    numbers.reason[row] = REASONS.index(record.replicas.reason)
    numbers.current[row] = record.replicas_now
    numbers.acting[row] = not record.shadow
    numbers.by_forecast[row] = max((view.forecast_replicas or UNKNOWN for view in record.signals), default=UNKNOWN)
    if not isinstance(record.replicas, Scale):
        return
    replicas = numbers.recommended[row] = record.replicas.replicas
    first = record.clamps[0] if record.clamps else None
    numbers.count[row] = replicas if record.offered is None else record.offered
    by_measured = [view.reactive_replicas for view in record.signals if view.reactive_replicas is not None]
    numbers.counts[:, row] = replicas
    numbers.counts[0, row] = first.before if first else max(by_measured, default=NO_COUNT)
    if first:
        for place, clamp in enumerate(CLAMPS):
            after = next((each.after for each in record.clamps if each.rule == clamp.name), numbers.counts[place, row])
            numbers.counts[place + 1, row] = after


def _put_texts(numbers: DecidedColumns, names: Names, row: int, record: Recommendation) -> None:
    targets = tuple(
        DecidedTarget(view.signal, view.target, "" if view.target else view.note, view.unit, view.pod or 0.0)
        for view in record.signals
    )
    if not isinstance(record.replicas, Scale):
        numbers.nothing_decided[row] = REASONS.index(record.replicas.reason)
        numbers.hold[row] = names[record.replicas.message.encode()]
    numbers.stated[row] = names[encoded_stated(DecidedRow(RULES, targets, record.autoscaler))]
    numbers.shut[row] = names[record.gate_reason.encode()]
    lead = record.lead_time
    numbers.lead_time[row] = names[encoded_lead_time(lead) if isinstance(lead, LeadTime) else NO_LEAD_TIME]
    numbers.readers[row] = names[encoded_readers(record.targets)]


def _put_target(numbers: DecidedColumns, names: Names, place: tuple[int, int], view: SignalView, at: datetime) -> None:
    """Put one signal of a record into its cells by target and by signal."""
    _, row = place
    cell, ahead = (numbers.signals.index(view.signal), row), view.forecast
    known: dict[str, float | None] = {
        "pod": view.pod,
        "measured": view.measured,
        "measured_at": None if view.measured_at is None else view.measured_at.timestamp(),
    }
    outlook = ForecastDetails(unforeseen=view.note)
    if ahead is not None:
        known |= {name: getattr(ahead, name) for name in ("peak", "low", "median", "high")}
        known["forecast_quantile"] = ahead.quantile
        begin, until = ((instant - at).total_seconds() for instant in (ahead.begin, ahead.until))
        numbers.lead[row], outlook = begin, ForecastDetails("", ahead.model, begin, until, ahead.note)
    for name, value in known.items():
        if value is not None:
            column = getattr(numbers, name)
            column[cell] = np.fmax(column[cell], value)
    numbers.replicas[cell] = max(view.forecast_replicas or NO_COUNT, int(numbers.replicas[cell]))
    numbers.decides[cell] = True
    numbers.asked[place] = UNKNOWN if view.reactive_replicas is None else view.reactive_replicas
    numbers.foreseen[place] = UNKNOWN if view.forecast_replicas is None else view.forecast_replicas
    numbers.unseen[place] = NO_SAMPLE if view.measured is None else KNOWN
    numbers.age[place] = np.nan if view.measured_at is None else (at - view.measured_at).total_seconds()
    numbers.unmeasured[place] = names[view.note.encode() if view.measured is None else b""]
    numbers.outlook[place] = names[msgspec.msgpack.encode(outlook)]

"""Tables of workloads that publish, with good defaults."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.cycle.decided_rows import RowTexts
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.horizontal.decide import decide
from forecaster.horizontal.record import Subject, row_words
from forecaster.horizontal.state import State
from forecaster.publish.numbers import numbers_of
from forecaster.publish.publisher import OfferPublisher, table_publisher
from forecaster.publish.reader import TableReader
from forecaster.publish.rows import encoded_readers, offers_of
from forecaster.publish.rows import offered_cycle as rows_of_cycle
from forecaster.publish.table_file import TableFile
from tests.support.builders import outlooks, policy, workload
from tests.support.horizontal import decided
from tests.support.one_row import inputs_of_one
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from forecaster.domain.decision import Hold, Recommendation, Resize, Scale
    from forecaster.horizontal.decide import Decisions
    from forecaster.publish.reader import PublishedTable
    from forecaster.publish.rows import OfferedCycle
    from forecaster.publish.table_file import Gauges
    from forecaster.publish.values import WorkloadOffer


def publisher(path: Path, *, paths: Callable[[], Any] = dict, gauges: Gauges = "none", **policy: Any) -> OfferPublisher:
    """A publisher whose workloads are all in mode publish."""
    policies = Policies(Policy.model_validate({"mode": "publish", **policy}))
    table = TableFile(path, interval=timedelta(minutes=1), version="1.2.3", paths=paths, gauges=gauges)
    return table_publisher(table, policies)


def served(path: Path, *rows: Recommendation, at: datetime = NOON, **policy: Any) -> TableReader:
    """A reader of one table with these rows, one workload if none is given."""
    publisher(path, **policy).publish(at, rows or (recommendation(at=at),))
    reader = TableReader(path)
    reader.refresh()
    return reader


def table_of(path: Path, *rows: Recommendation, **policy: Any) -> PublishedTable:
    """That table."""
    table = served(path, *rows, **policy).table
    assert table is not None
    return table


class FleetOfOne(list["Recommendation"]):
    """A recommendation whose numbers are there as columns, too, as a cycle hands them over; counts what is asked."""

    def __init__(self, one: Recommendation, decisions: Decisions, subject: Subject, worded: int = 1) -> None:
        super().__init__([one])
        self._decisions, self._subject = decisions, subject
        self.ids = (one.id,)
        self.current, self.replicas, self.reason = decisions.inputs.current, decisions.replicas, decisions.reason
        groups = [(np.zeros(1, np.intp), decisions)]
        self.numbers = numbers_of(self.current, self.replicas, self.reason, groups)
        self.worded = np.array([worded], np.uint64)
        self.sized = np.zeros(1, np.int64)
        self.asked: list[str] = []

    def __getitem__(self, index: object) -> Recommendation:  # type: ignore[override]
        self.asked.append("record")
        return super().__getitem__(0)

    def texts(self, index: int) -> RowTexts:
        self.asked.append("texts")
        one = super().__getitem__(index)
        words = row_words(self._decisions, index, self._subject, one.lead_time)
        return RowTexts(words, one.resources_now, one.resources, one.targets)

    def resources(self, index: int) -> Resize | Hold:
        self.asked.append("resources")
        return super().__getitem__(index).resources

    def verdict(self, index: int) -> Scale | Hold:
        self.asked.append("verdict")
        return super().__getitem__(index).replicas


def fleet_of_one(cpu: float, ahead: float, name: str = "web", worded: int = 1, **rules: Any) -> FleetOfOne:
    """A fleet of one workload with so many cores of demand, now and forecast."""
    seen, of, under = outlooks(cpu=cpu, cpu_ahead=ahead), workload(name), policy(**rules)
    subject = Subject(of, under.horizontal, seen)
    decisions, _ = decide(inputs_of_one(subject, NOON), State.new(1), NOON.timestamp())
    return FleetOfOne(decided(seen, of=of, under=under), decisions, subject, worded)


def offered_cycle(*rows: Recommendation, at: datetime = NOON, mode: str = "publish", **policy: Any) -> OfferedCycle:
    """A cycle as it leaves the process."""
    policies = [Policy.model_validate({"mode": mode, **policy})] * len(rows)
    return rows_of_cycle(at, rows, policies)


def offer_of(one: Recommendation, policy: Policy, before: WorkloadOffer | None = None) -> WorkloadOffer | None:
    """What is offered of a workload, after a cycle that offered `before`."""
    return rows_of_cycle(one.at, [one], [policy], offers_of([before])).offer(0, encoded_readers(one.targets))

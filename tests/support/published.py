"""Tables of workloads that publish, with good defaults."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.domain.decision import Reason
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.horizontal.decide import decide
from forecaster.horizontal.state import State
from forecaster.publish.decided import DecidedRows, numbers_of
from forecaster.publish.publisher import offered_cycle as rows_of_cycle
from forecaster.publish.reader import TableReader
from forecaster.publish.table_file import TableFile
from forecaster.publish.values import encoded_readers
from tests.support.builders import outlooks, policy, workload
from tests.support.decided_records import RecordPublisher, decided_fleet, record_publisher
from tests.support.horizontal import decided
from tests.support.one_row import Subject, inputs_of_one, with_texts
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from forecaster.domain.decision import Hold, Recommendation, Resize, Scale
    from forecaster.horizontal.decide import Decisions
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.publish.reader import PublishedTable
    from forecaster.publish.table_file import Gauges
    from forecaster.publish.values import WorkloadOffer


def publisher(
    path: Path, *, paths: Callable[[], Any] = dict, gauges: Gauges = "none", **policy: Any
) -> RecordPublisher:
    """A publisher whose workloads are all in mode publish."""
    policies = Policies(Policy.model_validate({"mode": "publish", **policy}))
    table = TableFile(path, interval=timedelta(minutes=1), version="1.2.3", paths=paths, gauges=gauges)
    return record_publisher(table, policies)


def served(path: Path, *rows: Recommendation, at: datetime = NOON, **policy: Any) -> TableReader:
    """A reader of one table with these rows, one workload if none is given."""
    publisher(path, **policy).publish(at, rows or (recommendation(at=at),))
    reader = TableReader(path, lambda: at + timedelta(seconds=10))
    reader.refresh()
    return reader


def table_of(path: Path, *rows: Recommendation, **policy: Any) -> PublishedTable:
    """That table."""
    table = served(path, *rows, **policy).table
    assert table is not None
    return table


class FleetOfOne(DecidedRows):
    """A decided workload as a cycle hands it over, with a given record; counts the reads."""

    size_ids = np.zeros(1, np.int64)

    def __init__(self, recommendation: Recommendation, decisions: Decisions, subject: Subject) -> None:
        groups = [(np.zeros(1, np.intp), decisions)]
        numbers = numbers_of([subject.workload], Reason.SOURCE_DOWN, groups)
        super().__init__(recommendation.at, [subject.workload], with_texts(numbers, decisions, subject))
        self._one = recommendation
        self.asked: list[str] = []

    def _record(self, _: int) -> Recommendation:
        self.asked.append("record")
        return self._one

    def resources(self, _: int) -> Resize | Hold:
        self.asked.append("resources")
        return self._one.resources

    def verdict(self, _: int) -> Scale | Hold:
        self.asked.append("verdict")
        return self._one.replicas


def fleet_of_one(cpu: float, ahead: float, name: str = "web", **rules: Any) -> FleetOfOne:
    """A fleet of one workload with so many cores of demand, now and forecast."""
    outlooks_, workload_, under = outlooks(cpu=cpu, cpu_ahead=ahead), workload(name), policy(**rules)
    subject = Subject(workload_, under.horizontal, outlooks_)
    decisions, _ = decide(inputs_of_one(subject, NOON), State.new(1), NOON.timestamp())
    return FleetOfOne(decided(outlooks_, workload=workload_, under=under), decisions, subject)


def offered_cycle(*rows: Recommendation, at: datetime = NOON, mode: str = "publish", **policy: Any) -> OfferedCycle:
    """A cycle as it leaves the process."""
    policies = [Policy.model_validate({"mode": mode, **policy})] * len(rows)
    return rows_of_cycle(at, decided_fleet(rows, at), policies)


def offer_of(
    recommendation: Recommendation, policy: Policy, before: Sequence[Recommendation] = ()
) -> WorkloadOffer | None:
    """Offer of a workload after cycles that decided `before`."""
    offers = None
    for earlier in before:
        offers = rows_of_cycle(earlier.at, decided_fleet([earlier]), [policy], offers).offers
    return rows_of_cycle(recommendation.at, decided_fleet([recommendation]), [policy], offers).offer(
        0, encoded_readers(recommendation.targets)
    )

"""Publishers of a cycle's table: into the file that the serving process reads, and several of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.publish.decision_history import DecisionHistory
from forecaster.publish.forecast_paths import EncodedPaths
from forecaster.publish.gauges import workload_gauges
from forecaster.publish.offer import offer
from forecaster.publish.table import CycleSummary, TableMeta, TableRow, write_table
from forecaster.publish.views import SizeViews, recommendation_view
from forecaster.serving.reader import TableReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.outlook import StepForecast
    from forecaster.domain.report import CycleReport
    from forecaster.domain.signal import Signal
    from forecaster.ports import Publisher
    from forecaster.publish.gauges import Level
    from forecaster.publish.values import WorkloadOffer


class Publishers:
    """`Publisher` to each of them in turn; one that fails keeps it from no other."""

    def __init__(self, *publishers: Publisher) -> None:
        self._publishers = publishers

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
        """To all of them.

        Raises:
            StoreError: with what each one says that failed.
        """
        faults = []
        for publisher in self._publishers:
            try:
                publisher.publish(at, recommendations)
            except StoreError as error:
                faults.append(str(error))
        if faults:
            raise StoreError("; ".join(faults))


# FilePublisher: the computing process hands its table over through a file.


FAILURES_SHOWN = 20
"""Failures of a cycle that go into the table; all of them are in its log."""


class TablePublisher:
    """`Publisher` into the file that the serving process watches.

    `chronicle` is what was known before this process. `paths`, `metrics` and `last_report` are asked at every
    publication. The report of a cycle exists only when the cycle has ended, so a table carries the one before.
    """

    def __init__(
        self,
        path: Path,
        *,
        interval: timedelta,
        version: str,
        policies: Policies | None = None,
        gauges: Level = "none",
        chronicle: DecisionHistory | None = None,
        paths: Callable[[], Mapping[WorkloadId, Mapping[Signal, StepForecast]]] = dict,
        metrics: Callable[[], str] = str,
        last_report: Callable[[], CycleReport | None] = lambda: None,
    ) -> None:
        self.path = path
        self._interval = interval
        self._version = version
        self._policies = policies or Policies(Policy())
        self._offers: Mapping[WorkloadId, WorkloadOffer | None] = last_offers(path)
        self._gauges = gauges
        self._chronicle = chronicle or DecisionHistory()
        self._ask_paths = paths
        self._paths = EncodedPaths()
        self._sizes = SizeViews()
        self._metrics = metrics
        self._last_report = last_report

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
        """Replace the published table as a whole.

        Raises:
            StoreError: the file cannot be written.
        """
        offers = {one.id: offer(one, self._policies.of(one.id), self._offers.get(one.id)) for one in recommendations}
        report = self._last_report()
        self._chronicle.follow(recommendations, report)
        self._paths.renew(self._ask_paths())
        rows = [self._row(one, offers[one.id]) for one in recommendations]
        self._offers = offers
        self._sizes.forget_others(offers)
        write_table(self.path, self._meta(at, report), rows, workload_gauges(rows, self._gauges))

    def _row(self, one: Recommendation, offered: WorkloadOffer | None) -> TableRow:
        past, record = self._chronicle.told(one.id)
        view = recommendation_view(one, resources=self._sizes.of(one))
        return TableRow(view, offered, past, self._paths.of(one.id), record)

    def _meta(self, at: datetime, report: CycleReport | None) -> TableMeta:
        return TableMeta(
            published_at=at,
            interval_seconds=self._interval.total_seconds(),
            version=self._version,
            metrics=self._metrics(),
            cycle=_summary(report),
        )


def last_offers(path: Path) -> dict[WorkloadId, WorkloadOffer | None]:
    """What the process before this one published: its numbers are the last ones known, if nothing is known now."""
    reader = TableReader(path)
    reader.refresh()
    table = reader.table
    if table is None:
        return {}
    return {WorkloadId(one.namespace, one.kind, one.name): table.published(one) for one in table.entries}


def _summary(report: CycleReport | None) -> CycleSummary | None:
    if report is None:
        return None
    return CycleSummary(at=report.at, seconds=report.seconds, failures=report.failures[:FAILURES_SHOWN])

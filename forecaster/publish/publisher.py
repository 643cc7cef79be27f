"""OfferPublisher: what a cycle decided becomes offers once, and every way out of the process gets the same ones."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.publish.decided import decided_columns, decided_signals
from forecaster.publish.decision_history import DecisionHistory
from forecaster.publish.forecast_paths import EncodedPaths
from forecaster.publish.gauges import workload_gauges
from forecaster.publish.offer import offered
from forecaster.publish.reader import TableReader
from forecaster.publish.rows import offers_of, workload_offers
from forecaster.publish.table import CycleSummary, TableMeta, TableRow, write_table
from forecaster.publish.views import SizeViews, recommendation_view

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.outlook import StepForecast
    from forecaster.domain.policies import Policies
    from forecaster.domain.report import CycleReport
    from forecaster.domain.signal import Signal
    from forecaster.publish.gauges import Level
    from forecaster.publish.offer import Offers
    from forecaster.publish.values import WorkloadOffer

FAILURES_SHOWN = 20
"""Failures of a cycle that go into the table; all of them are in its log."""


class OfferedCycle(NamedTuple):
    """One cycle as it leaves the process: what was decided, and what is offered of it, row by row."""

    at: datetime
    recommendations: Sequence[Recommendation]
    offers: Sequence[WorkloadOffer | None]
    """None where a policy only observes."""


class OfferReceiver(Protocol):
    """A way out of the process."""

    def receive(self, cycle: OfferedCycle) -> None:
        """Carry it out. Raises StoreError."""


class OfferPublisher:
    """`Publisher` that makes offers and hands them to its receivers; one that fails keeps them from no other.

    `before` is what the process before this one offered: its numbers are the last ones known, if nothing is known now.
    """

    def __init__(
        self,
        policies: Policies,
        receivers: Mapping[str, OfferReceiver],
        *,
        before: Mapping[WorkloadId, WorkloadOffer | None] | None = None,
        counting: Callable[[str], AbstractContextManager[None]] = lambda _name: nullcontext(),
    ) -> None:
        self._policies = policies
        self._receivers = receivers
        self._counting = counting
        known = before or {}
        self._rows: dict[WorkloadId, int] = {id_: row for row, id_ in enumerate(known)}
        self._offers: Offers = offers_of([*known.values()])

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
        """Offer what was decided.

        Raises:
            StoreError: with what each receiver says that failed.
        """
        cycle = self._offered(at, recommendations)
        faults = []
        for name, receiver in self._receivers.items():
            try:
                with self._counting(name):
                    receiver.receive(cycle)
            except StoreError as error:
                faults.append(str(error))
        if faults:
            raise StoreError("; ".join(faults))

    def _offered(self, at: datetime, recommendations: Sequence[Recommendation]) -> OfferedCycle:
        policies = [self._policies.of(one.id) for one in recommendations]
        before = self._offers.take(np.array([self._rows.get(one.id, -1) for one in recommendations], np.int64))
        signals = tuple(dict.fromkeys((*before.signals, *decided_signals(recommendations))))
        self._offers = offered(decided_columns(at, recommendations, policies, signals), before.covering(signals))
        self._rows = {one.id: row for row, one in enumerate(recommendations)}
        return OfferedCycle(at, recommendations, workload_offers(self._offers, recommendations, policies))


class TableFile:
    """`OfferReceiver` into the file that the serving process watches.

    `history` is what was known before this process. `paths`, `metrics` and `last_report` are asked at every
    publication. The report of a cycle exists only when the cycle has ended, so a table carries the one before.
    """

    def __init__(
        self,
        path: Path,
        *,
        interval: timedelta,
        version: str,
        gauges: Level = "none",
        history: DecisionHistory | None = None,
        paths: Callable[[], Mapping[WorkloadId, Mapping[Signal, StepForecast]]] = dict,
        metrics: Callable[[], str] = str,
        last_report: Callable[[], CycleReport | None] = lambda: None,
    ) -> None:
        self.path = path
        self._interval = interval
        self._version = version
        self._gauges = gauges
        self._history = history or DecisionHistory()
        self._ask_paths = paths
        self._paths = EncodedPaths()
        self._sizes = SizeViews()
        self._metrics = metrics
        self._last_report = last_report

    def receive(self, cycle: OfferedCycle) -> None:
        """Replace the published table as a whole.

        Raises:
            StoreError: the file cannot be written.
        """
        report = self._last_report()
        self._history.follow(cycle.recommendations, report)
        self._paths.renew(self._ask_paths())
        rows = [self._row(one, offer) for one, offer in zip(cycle.recommendations, cycle.offers, strict=True)]
        self._sizes.forget_others({one.id for one in cycle.recommendations})
        write_table(self.path, self._meta(cycle.at, report), rows, workload_gauges(rows, self._gauges, cycle.at))

    def _row(self, one: Recommendation, offer: WorkloadOffer | None) -> TableRow:
        past, record = self._history.told(one.id)
        view = recommendation_view(one, resources=self._sizes.of(one))
        return TableRow(view, offer, past, self._paths.of(one.id), record)

    def _meta(self, at: datetime, report: CycleReport | None) -> TableMeta:
        return TableMeta(
            published_at=at,
            interval_seconds=self._interval.total_seconds(),
            version=self._version,
            metrics=self._metrics(),
            cycle=_summary(report),
        )


def table_publisher(table: TableFile, policies: Policies) -> OfferPublisher:
    """Offers into one table, going on from those that lie in it."""
    return OfferPublisher(policies, {"table": table}, before=last_offers(table.path))


def last_offers(path: Path) -> dict[WorkloadId, WorkloadOffer | None]:
    """What the table at `path` offers, by workload; nothing where there is no good table."""
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

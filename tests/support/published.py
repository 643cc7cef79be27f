"""Tables of workloads that publish, with good defaults."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.publish.decided import decided_columns, decided_signals
from forecaster.publish.offer import offered
from forecaster.publish.publisher import OfferedCycle, OfferPublisher, TableFile, table_publisher
from forecaster.publish.reader import TableReader
from forecaster.publish.rows import offers_of, workload_offers
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.publish.gauges import Level
    from forecaster.publish.reader import PublishedTable
    from forecaster.publish.values import WorkloadOffer


def publisher(path: Path, *, paths: Callable[[], Any] = dict, gauges: Level = "none", **policy: Any) -> OfferPublisher:
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


def offer_of(one: Recommendation, policy: Policy, before: WorkloadOffer | None = None) -> WorkloadOffer | None:
    """What is offered of a workload, after a cycle that offered `before`."""
    past = offers_of([before])
    signals = tuple(dict.fromkeys((*past.signals, *decided_signals([one]))))
    columns = decided_columns(one.at, [one], [policy], signals)
    (found,) = workload_offers(offered(columns, past.covering(signals)), [one], [policy])
    return found


def offered_cycle(*rows: Recommendation, at: datetime = NOON) -> OfferedCycle:
    """A cycle as it leaves the process, every workload in mode publish."""
    return OfferedCycle(at, rows, [offer_of(one, Policy(mode="publish")) for one in rows])

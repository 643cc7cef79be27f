"""Accuracies of forecasts as the tables of a ledger have them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import select

from forecaster.store.database import SUMS, Database, scores, workloads
from forecaster.store.ledger import Accuracy

if TYPE_CHECKING:
    from forecaster.domain.workload import WorkloadId


@dataclass(frozen=True, slots=True)
class AccuracyOf:
    """The accuracy of one model for one signal from `at` on: an hour, or a day where it is old."""

    at: datetime
    signal: str
    model: str
    accuracy: Accuracy


def accuracy_of(address: str, workload: WorkloadId, since: datetime) -> list[AccuracyOf]:
    """Return every accuracy of a workload that has been written, oldest first."""
    of_it = (workloads.c[field] == value for field, value in workload._asdict().items())
    question = (
        select(scores.c.at, scores.c.signal, scores.c.model, *(scores.c[name] for name in SUMS))
        .join(workloads, workloads.c.id == scores.c.workload)
        .where(*of_it, scores.c.at >= int(since.timestamp()))
        .order_by(scores.c.at, scores.c.signal, scores.c.model)
    )
    with closing(Database(address)) as database, database.transaction() as connection:
        return [
            AccuracyOf(datetime.fromtimestamp(at, UTC), signal, model, Accuracy(*sums))
            for at, signal, model, *sums in connection.execute(question)
        ]

"""What a new process wants to know of all workloads at once: their newest decisions, and how forecasts turned out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import case, func, select

from forecaster.domain.workload import WorkloadId
from forecaster.store.tables import decisions, scores, workloads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

IDENTITY = tuple(workloads.c[name] for name in WorkloadId._fields)
BUCKET = timedelta(hours=6)
"""Scores of so many hours fade alike."""
BACK = timedelta(days=7)
"""Beyond, with a half-life of a day, less than a hundredth is left."""


class PastDecision(NamedTuple):
    """A decision about the count as it was kept; `replicas` is None while holding."""

    id: WorkloadId
    at: datetime
    replicas: int | None
    verdict: str
    reason: str
    message: str


class FadedScores(NamedTuple):
    """Sums over the matured forecasts of one signal, in which older ones count less."""

    id: WorkloadId
    signal: str
    forecasts: float
    covered: float
    quantiles: float
    absolute_error: float
    actual: float


def newest_decisions(connection: Connection, count: int) -> Iterator[PastDecision]:
    """At most so many of each workload, the oldest of them first."""
    other = decisions.alias()
    least = (
        select(other.c.at)
        .where(other.c.workload == workloads.c.id)
        .order_by(other.c.at.desc())
        .limit(1)
        .offset(count - 1)
        .scalar_subquery()
    )
    kept = (decisions.c[name] for name in ("at", "replicas", "verdict", "reason", "message"))
    rows = connection.execute(
        select(*IDENTITY, *kept)
        .join(decisions, workloads.c.id == decisions.c.workload)
        .where(decisions.c.at >= func.coalesce(least, 0))
        .order_by(workloads.c.id, decisions.c.at)
    )
    for namespace, kind, name, at, *rest in rows:
        yield PastDecision(WorkloadId(namespace, kind, name), datetime.fromtimestamp(at, UTC), *rest)


def faded_scores(connection: Connection, now: datetime, half_life: timedelta) -> Iterator[FadedScores]:
    """Of each workload and signal, over all models: what matured a half-life ago counts half."""
    seconds = int(now.timestamp())
    bucket = (seconds - scores.c.at) // int(BUCKET.total_seconds())
    weights = {k: 0.5 ** ((k + 0.5) * (BUCKET / half_life)) for k in range(BACK // BUCKET)}
    weight = case(weights, value=bucket, else_=0.0)
    amounts = (scores.c[name] for name in ("count", "covered", "quantiles", "absolute_error", "actual"))
    rows = connection.execute(
        select(*IDENTITY, scores.c.signal, *(func.sum(amount * weight) for amount in amounts))
        .join(scores, workloads.c.id == scores.c.workload)
        .where(scores.c.at > seconds - int(BACK.total_seconds()), scores.c.at <= seconds)
        .group_by(*IDENTITY, scores.c.signal)
    )
    for namespace, kind, name, *rest in rows:
        yield FadedScores(WorkloadId(namespace, kind, name), *rest)

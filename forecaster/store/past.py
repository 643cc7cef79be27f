"""Decisions and scores as rows of the ledger, and those that a new process starts from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, case, func, select

from forecaster.domain.decision import Recommendation, Resize, Scale
from forecaster.domain.report import DecisionChange, ScoreSums
from forecaster.domain.workload import Resources, WorkloadId
from forecaster.store.database import decisions, scores, workloads

CHANGE = 0.05
"""Requests and limits follow a quantile that moves a little in every cycle. Below 5 % no one would roll pods for it, so
it is no new decision; the reference is the last one kept, so that slow drift is kept as well."""
UNDECIDED = Resources()


class DecisionRow(NamedTuple):
    """The columns of a decision, named as in the tables. `replicas` and the amounts are None while holding."""

    replicas_now: int
    replicas: int | None
    verdict: str
    reason: str
    cpu_request: float | None
    cpu_limit: float | None
    memory_request: float | None
    memory_limit: float | None
    resources_verdict: str
    resources_reason: str
    spare: int | None = None
    """Replicas that are there only for the loss of a node or a zone; None while holding, and where not recorded."""


def decision_row(recommendation: Recommendation) -> DecisionRow:
    """The decision without its explanation."""
    horizontal, vertical = recommendation.replicas, recommendation.resources
    resources = vertical.resources if isinstance(vertical, Resize) else UNDECIDED
    return DecisionRow(
        recommendation.replicas_now,
        horizontal.replicas if isinstance(horizontal, Scale) else None,
        "scale" if isinstance(horizontal, Scale) else "hold",
        horizontal.reason.value,
        resources.cpu_request,
        resources.cpu_limit,
        resources.memory_request,
        resources.memory_limit,
        "resize" if isinstance(vertical, Resize) else "hold",
        vertical.reason.value,
        recommendation.spare_replicas,
    )


def changed(before: DecisionRow | None, after: DecisionRow) -> bool:
    """Whether a decision differs from the last one kept; amounts may drift by less than `CHANGE`."""
    if before == after:
        return False
    if before is None or _exact(before) != _exact(after):
        return True
    return not all(map(_near, _amounts(before), _amounts(after)))


def _exact(row: DecisionRow) -> tuple[object, ...]:
    return row[:4] + row[8:]


def _amounts(row: DecisionRow) -> tuple[float | None, ...]:
    return (row.cpu_request, row.cpu_limit, row.memory_request, row.memory_limit)


def _near(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is after
    return math.isclose(before, after, rel_tol=CHANGE)


IDENTITY_COLUMNS = tuple(workloads.c[name] for name in WorkloadId._fields)
BUCKET = timedelta(hours=6)
"""Length of the periods whose scores get one weight."""
SCORES_BACK = timedelta(days=7)
"""Oldest scores that are read: older ones would count less than a hundredth, with a half-life of a day."""


def latest_decisions(connection: Connection, count: int) -> Iterator[tuple[WorkloadId, DecisionChange]]:
    """Yield the latest decisions of each workload, at most `count`, the oldest first."""
    other = decisions.alias()
    least = (
        select(other.c.at)
        .where(other.c.workload == workloads.c.id)
        .order_by(other.c.at.desc())
        .limit(1)
        .offset(count - 1)
        .scalar_subquery()
    )
    columns = (decisions.c[name] for name in ("at", "replicas", "verdict", "reason", "message"))
    rows = connection.execute(
        select(*IDENTITY_COLUMNS, *columns)
        .join(decisions, workloads.c.id == decisions.c.workload)
        .where(decisions.c.at >= func.coalesce(least, 0))
        .order_by(workloads.c.id, decisions.c.at)
    )
    for namespace, kind, name, at, *rest in rows:
        yield WorkloadId(namespace, kind, name), DecisionChange(datetime.fromtimestamp(at, UTC), *rest)


def faded_scores(
    connection: Connection, now: datetime, half_life: timedelta
) -> Iterator[tuple[WorkloadId, str, ScoreSums]]:
    """Yield the scores of each workload and signal, over all models: one that matured a half-life ago counts half."""
    seconds = int(now.timestamp())
    bucket = (seconds - scores.c.at) // int(BUCKET.total_seconds())
    weights = {k: 0.5 ** ((k + 0.5) * (BUCKET / half_life)) for k in range(SCORES_BACK // BUCKET)}
    weight = case(weights, value=bucket, else_=0.0)
    amounts = (scores.c[name] for name in ("count", "covered", "quantiles", "absolute_error", "actual"))
    rows = connection.execute(
        select(*IDENTITY_COLUMNS, scores.c.signal, *(func.sum(amount * weight) for amount in amounts))
        .join(scores, workloads.c.id == scores.c.workload)
        .where(scores.c.at > seconds - int(SCORES_BACK.total_seconds()), scores.c.at <= seconds)
        .group_by(*IDENTITY_COLUMNS, scores.c.signal)
    )
    for namespace, kind, name, signal, *sums in rows:
        yield WorkloadId(namespace, kind, name), signal, ScoreSums(*sums)

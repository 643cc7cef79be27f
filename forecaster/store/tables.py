"""The tables of the ledger.

    schema     the version of all this
    workloads  who has been decided about, and the newest decision about each
    decisions  one row for each change of a decision
    scores     how forecasts turned out, as sums that can be added: by hour, and by day once they are old

Instants are seconds since 1970 (UTC), CPU in cores, memory in bytes. A number that is not known is NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from forecaster.domain.workload import WorkloadId

VERSION = 1
NAME = 253
"""Kubernetes' own limit on the length of a name."""

metadata = MetaData()


def _decision() -> list[Column[object]]:
    """What is decided; the same columns in `workloads` and in `decisions`."""
    return [
        Column("replicas_now", Integer, nullable=False),
        Column("replicas", Integer),
        Column("verdict", String(16), nullable=False),
        Column("reason", String(32), nullable=False),
        Column("cpu_request", Double),
        Column("cpu_limit", Double),
        Column("memory_request", Double),
        Column("memory_limit", Double),
        Column("resources_verdict", String(16), nullable=False),
        Column("resources_reason", String(32), nullable=False),
    ]


schema = Table("schema", metadata, Column("version", Integer, primary_key=True, autoincrement=False))

workloads = Table(
    "workloads",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("namespace", String(NAME), nullable=False),
    Column("kind", String(NAME), nullable=False),
    Column("name", String(NAME), nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    *_decision(),
    UniqueConstraint("namespace", "name", "kind"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("workload", Integer, primary_key=True, autoincrement=False),
    Column("at", BigInteger, primary_key=True, autoincrement=False),
    *_decision(),
    Column("message", Text, nullable=False),
    Column("resources_message", Text, nullable=False),
    Index("decisions_at", "at"),
    sqlite_with_rowid=False,
)

scores = Table(
    "scores",
    metadata,
    Column("workload", Integer, primary_key=True, autoincrement=False),
    Column("signal", String(16), primary_key=True),
    Column("model", String(64), primary_key=True),
    Column("at", BigInteger, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
    Column("covered", Integer, nullable=False),
    Column("quantiles", Double, nullable=False),
    Column("absolute_error", Double, nullable=False),
    Column("pinball_loss", Double, nullable=False),
    Column("actual", Double, nullable=False),
    Index("scores_at", "at"),
    sqlite_with_rowid=False,
)
SUMS = ("count", "covered", "quantiles", "absolute_error", "pinball_loss", "actual")


def is_workload(workload: WorkloadId) -> tuple[ColumnElement[bool], ...]:
    """The conditions for the row of a workload."""
    return tuple(workloads.c[field] == value for field, value in workload._asdict().items())

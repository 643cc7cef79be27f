"""How old a table is, and one number of one workload for readers that name the workload. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from forecaster.domain.published import DEMAND_METRIC
from forecaster.publish.values import CLOCK_SKEW, Answer, AskedAt, NotNamed, value_of

if TYPE_CHECKING:
    from forecaster.publish.reader import PublishedTable, TableEntry
    from forecaster.publish.table import TableMeta

STALE_INTERVALS = 3
"""Intervals without a new table before its values are called stale: one may be late, two may be skipped."""


class TableAge(msgspec.Struct, frozen=True):
    """How old the decisions are, and whether that is too old."""

    published_at: datetime
    age_seconds: float
    stale: bool


def age_of(meta: TableMeta, now: datetime, stale_after: timedelta | None) -> TableAge:
    """The age of a table at `now`: negative, and stale, for one from the future; a small skew of clocks is no age."""
    limit = timedelta(seconds=STALE_INTERVALS * meta.interval_seconds) if stale_after is None else stale_after
    age = now - meta.published_at
    if age < timedelta(0) and age >= -CLOCK_SKEW:
        age = timedelta(0)
    return TableAge(meta.published_at, age.total_seconds(), stale=not timedelta(0) <= age <= limit)


class MetricRequest(NamedTuple):
    """Which number. Without a kind the name has to be that of one workload; `target` is what one replica carries."""

    namespace: str
    name: str
    kind: str = ""
    metric: str = DEMAND_METRIC
    signal: str = ""
    target: float = 0.0


class NotThere(NamedTuple):
    """There is no such workload, or its policy publishes nothing."""

    message: str


def moment_at(table: PublishedTable, now: datetime, stale_after: timedelta | None) -> AskedAt:
    """What asking at `now` means for a table."""
    return AskedAt(now, table.meta.published_at, fresh=not age_of(table.meta, now, stale_after).stale)


def answer(table: PublishedTable, asked: MetricRequest, moment: AskedAt) -> Answer | NotThere:
    """The number, or why there is none."""
    entry = entry_of(table, asked.namespace, asked.name, asked.kind)
    if isinstance(entry, (NotNamed, NotThere)):
        return entry
    published = table.published(entry)
    if published is None:
        return NotThere(f"the policy of {_spelled(asked)} publishes nothing: its mode is observe")
    return value_of(published, asked.metric, moment, signal=asked.signal, target=asked.target)


def entry_of(table: PublishedTable, namespace: str, name: str, kind: str) -> TableEntry | NotNamed | NotThere:
    """Return the one workload of that name, and of that kind where one is given."""
    found = [entry for entry in table.named(namespace, name) if kind in {"", entry.kind}]
    if not found:
        return NotThere(f"no {kind or 'workload'} {namespace}/{name} in the table")
    if len(found) > 1:
        return NotNamed(f"{namespace}/{name} is one of {', '.join(entry.kind for entry in found)}: name the kind")
    return found[0]


def _spelled(asked: MetricRequest) -> str:
    return f"{asked.kind or 'workload'} {asked.namespace}/{asked.name}"

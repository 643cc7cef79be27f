"""One number of one workload, for readers that name the workload instead of selecting it by labels. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.published import DEMAND
from forecaster.serving.age import age_of
from forecaster.serving.values import Answer, Moment, NotNamed, value_of

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from forecaster.publish.table import TableEntry
    from forecaster.serving.reader import Table


class Asked(NamedTuple):
    """Which number. Without a kind the name has to be that of one workload; `target` is what one replica carries."""

    namespace: str
    name: str
    kind: str = ""
    metric: str = DEMAND
    signal: str = ""
    target: float = 0.0


class NotThere(NamedTuple):
    """There is no such workload, or its policy publishes nothing."""

    message: str


def moment_at(table: Table, now: datetime, stale_after: timedelta | None) -> Moment:
    """What asking at `now` means for a table."""
    return Moment(now, table.meta.published_at, fresh=not age_of(table.meta, now, stale_after).stale)


def answer(table: Table, asked: Asked, moment: Moment) -> Answer | NotThere:
    """The number, or why there is none."""
    entry = entry_of(table, asked.namespace, asked.name, asked.kind)
    if isinstance(entry, (NotNamed, NotThere)):
        return entry
    published = table.published(entry)
    if published is None:
        return NotThere(f"the policy of {_spelled(asked)} publishes nothing: its mode is observe")
    return value_of(published, asked.metric, moment, signal=asked.signal, target=asked.target)


def entry_of(table: Table, namespace: str, name: str, kind: str) -> TableEntry | NotNamed | NotThere:
    """The one workload of that name, and of that kind where one is given."""
    found = [entry for entry in table.named(namespace, name) if kind in {"", entry.kind}]
    if not found:
        return NotThere(f"no {kind or 'workload'} {namespace}/{name} in the table")
    if len(found) > 1:
        return NotNamed(f"{namespace}/{name} is one of {', '.join(entry.kind for entry in found)}: name the kind")
    return found[0]


def _spelled(asked: Asked) -> str:
    return f"{asked.kind or 'workload'} {asked.namespace}/{asked.name}"

"""Decisions over time, and under two policies: what `forecaster history` and `forecaster diff` print."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec resolves the annotations when it makes the schema
from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.decision import Hold, Recommendation, Resize
from forecaster.publish.record import verdict_of
from forecaster.report.printed import PrintedColumn, change, print_listing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.domain.workload import WorkloadId
    from forecaster.report.formats import Output
    from forecaster.store.ledger import Decision

    Pair = tuple[Recommendation, Recommendation]


class RecordedView(msgspec.Struct, frozen=True):
    """One change; `replicas` is null while the decision was to hold."""

    at: datetime
    namespace: str
    kind: str
    name: str
    replicas_now: int
    replicas: int | None
    verdict: str
    reason: str
    message: str


class HistoryView(msgspec.Struct, frozen=True):
    """Changes, oldest first."""

    decisions: list[RecordedView]


class DifferenceView(msgspec.Struct, frozen=True):
    """One workload under the policies of both files."""

    namespace: str
    kind: str
    name: str
    replicas_now: int
    replicas_from: int
    replicas_to: int
    reason_from: str
    reason_to: str
    resources_differ: bool


class DiffView(msgspec.Struct, frozen=True):
    """The workloads that would be decided differently."""

    differences: list[DifferenceView]


def print_recorded(found: Sequence[tuple[WorkloadId, Decision]], length: str, output: Output) -> None:
    """The changes within `length`, in the order of time."""
    views = [recorded_view(id_, one) for id_, one in found]
    told = "" if views else f"Nothing changed within {length}."
    ids = sorted({id_ for id_, _ in found})
    print_listing(HistoryView(views), views, _recorded_columns(views), output, ids=ids, told=told)


def recorded_view(id_: WorkloadId, one: Decision) -> RecordedView:
    """A recorded decision, public."""
    now, wanted = one.decided.replicas_now, one.decided.replicas
    return RecordedView(one.at, *id_, now, wanted, verdict_of(now, wanted), one.decided.reason, one.message)


def _recorded_columns(views: Sequence[RecordedView]) -> list[PrintedColumn]:
    return [
        PrintedColumn("AT (UTC)", [f"{one.at:%Y-%m-%d %H:%M}" for one in views]),
        PrintedColumn("WORKLOAD", [f"{one.namespace}/{one.name}" for one in views]),
        PrintedColumn("REPLICAS", [f"{one.replicas_now} → {_wanted(one)}" for one in views]),
        PrintedColumn("REASON", [one.reason for one in views]),
        PrintedColumn("WHY", [one.message for one in views], rank=1, words=True),
    ]


def _wanted(one: RecordedView) -> int | str:
    """The count, which may be 0; in words where the decision was to hold."""
    return one.verdict if one.replicas is None else one.replicas


def print_differences(pairs: Sequence[Pair], looked_at: int, output: Output) -> None:
    """What two policies decide differently, of so many workloads."""
    views = [difference_view(one, two) for one, two in pairs]
    told = f"{len(views)} of {looked_at} workloads would be decided differently."
    print_listing(DiffView(views), views, _difference_columns(views), output, told=told)


def numbers_of(one: Recommendation) -> tuple[object, ...]:
    """Count and sizes that were decided; other words about the same numbers are no other decision."""
    resized = one.resources.resources if isinstance(one.resources, Resize) else one.resources_now
    return isinstance(one.replicas, Hold), one.wanted_replicas, resized


def difference_view(one: Recommendation, two: Recommendation) -> DifferenceView:
    """The decision of the first policy beside that of the second."""
    return DifferenceView(
        *one.id,
        replicas_now=one.replicas_now,
        replicas_from=one.wanted_replicas,
        replicas_to=two.wanted_replicas,
        reason_from=str(one.replicas.reason),
        reason_to=str(two.replicas.reason),
        resources_differ=numbers_of(one)[-1] != numbers_of(two)[-1],
    )


def _difference_columns(views: Sequence[DifferenceView]) -> list[PrintedColumn]:
    return [
        PrintedColumn("WORKLOAD", [f"{one.namespace}/{one.name}" for one in views]),
        PrintedColumn("NOW", [str(one.replicas_now) for one in views], right=True),
        PrintedColumn("FROM", [str(one.replicas_from) for one in views], right=True),
        PrintedColumn("TO", [str(one.replicas_to) for one in views], right=True),
        PrintedColumn("REASON", [change(one.reason_from, one.reason_to) for one in views], rank=1),
        PrintedColumn("SIZES", ["differ" if one.resources_differ else "" for one in views], rank=2),
    ]

"""Decisions over time, and under two policies: what `forecaster history` and `forecaster diff` print."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.decision import Hold, Recommendation, Resize
from forecaster.publish.record import verdict_of
from forecaster.report.printed import PrintedColumn, change, print_listing

if TYPE_CHECKING:
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


def print_recorded(recorded: Sequence[tuple[WorkloadId, Decision]], length: str, output: Output) -> None:
    """The changes within `length`, in the order of time."""
    views = [recorded_view(id_, decision) for id_, decision in recorded]
    summary = "" if views else f"Nothing changed within {length}."
    ids = sorted({id_ for id_, _ in recorded})
    print_listing(HistoryView(views), views, _recorded_columns(views), output, ids=ids, summary=summary)


def recorded_view(id_: WorkloadId, decision: Decision) -> RecordedView:
    """A recorded decision, public."""
    decided, now, desired = decision.decided, decision.decided.replicas_now, decision.decided.replicas
    return RecordedView(decision.at, *id_, now, desired, verdict_of(now, desired), decided.reason, decision.message)


def _recorded_columns(views: Sequence[RecordedView]) -> list[PrintedColumn]:
    return [
        PrintedColumn("AT (UTC)", [f"{view.at:%Y-%m-%d %H:%M}" for view in views]),
        PrintedColumn("WORKLOAD", [f"{view.namespace}/{view.name}" for view in views]),
        PrintedColumn(
            "REPLICAS", [f"{v.replicas_now} → {v.verdict if v.replicas is None else v.replicas}" for v in views]
        ),
        PrintedColumn("REASON", [view.reason for view in views]),
        PrintedColumn("WHY", [view.message for view in views], rank=1, words=True),
    ]


def print_differences(pairs: Sequence[Pair], compared: int, output: Output) -> None:
    """Print the decisions that differ between two policies, of so many workloads."""
    views = [difference_view(first, second) for first, second in pairs]
    summary = f"{len(views)} of {compared} workloads would be decided differently."
    print_listing(DiffView(views), views, _difference_columns(views), output, summary=summary)


def numbers_of(recommendation: Recommendation) -> tuple[object, ...]:
    """Count and sizes that were decided; other words about the same numbers are no other decision."""
    sizes = recommendation.resources
    resized = sizes.resources if isinstance(sizes, Resize) else recommendation.resources_now
    return isinstance(recommendation.replicas, Hold), recommendation.recommended_replicas, resized


def difference_view(first: Recommendation, second: Recommendation) -> DifferenceView:
    """The decision of the first policy beside that of the second."""
    return DifferenceView(
        *first.id,
        replicas_now=first.replicas_now,
        replicas_from=first.recommended_replicas,
        replicas_to=second.recommended_replicas,
        reason_from=str(first.replicas.reason),
        reason_to=str(second.replicas.reason),
        resources_differ=numbers_of(first)[-1] != numbers_of(second)[-1],
    )


def _difference_columns(views: Sequence[DifferenceView]) -> list[PrintedColumn]:
    return [
        PrintedColumn("WORKLOAD", [f"{view.namespace}/{view.name}" for view in views]),
        PrintedColumn("NOW", [str(view.replicas_now) for view in views], right=True),
        PrintedColumn("FROM", [str(view.replicas_from) for view in views], right=True),
        PrintedColumn("TO", [str(view.replicas_to) for view in views], right=True),
        PrintedColumn("REASON", [change(view.reason_from, view.reason_to) for view in views], rank=1),
        PrintedColumn("SIZES", ["differ" if view.resources_differ else "" for view in views], rank=2),
    ]

"""What `forecaster hpa` prints: sentences about one pass, or a line for each of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from forecaster.hpa.cautions import cautions
from forecaster.hpa.explain import aims, explain
from forecaster.hpa.observation import ScaleSubresource
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.state import NEW_HPA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from forecaster.hpa.observation import Observation
    from forecaster.hpa.reconcile import SimulatedPass
    from forecaster.hpa.spec import Controller, HpaSpec

COLUMNS = ("pass", "replicas", "recommendation", "stabilized", "desired")
Row = dict[str, Any]


def explained(
    spec: HpaSpec,
    seen: Observation,
    now: datetime,
    controller: Controller,
    others: Sequence[HpaSpec],
    vertical: frozenset[str],
) -> Iterator[str]:
    """The aims, the next pass in one sentence and in steps, and the cautions."""
    told = explain(spec, seen, NEW_HPA, reconcile(spec, seen, NEW_HPA, now, controller), now, controller)
    yield f"Aims: {'; '.join(aims(spec))}. The largest proposal wins."
    yield told.summary
    yield from (f"  - {step}" for step in told.steps)
    replicas = seen.scale.spec_replicas if isinstance(seen.scale, ScaleSubresource) else 0
    found = cautions(spec, replicas, controller=controller, pods=seen.pods, others=others, vertical_resources=vertical)
    yield from (f"! {caution}" for caution in found)


def aims_and_cautions(
    spec: HpaSpec, controller: Controller, others: Sequence[HpaSpec], vertical: frozenset[str]
) -> Iterator[str]:
    """What can be said of a manifest without pods: at its lowest count."""
    yield f"Aims: {'; '.join(aims(spec))}. The largest proposal wins."
    yield "Give --replicas N and --usage METRIC=QUANTITY, or --pods FILE, for what it does at the next sync."
    lowest = max(1, spec.bounds.min_replicas)
    found = cautions(spec, lowest, controller=controller, others=others, vertical_resources=vertical)
    yield from (f"! {caution}" for caution in found)


def rows_of(steps: Iterable[SimulatedPass]) -> list[Row]:
    """One row of plain values a pass."""
    return [_row(number, step) for number, step in enumerate(steps, start=1)]


def table_lines(rows: Sequence[Row]) -> Iterator[str]:
    """A head and a line a pass; `-` where a pass did not get that far."""
    yield _line(dict(zip(COLUMNS, COLUMNS, strict=True)), "conditions")
    for row in rows:
        yield _line(row, " ".join(said["reason"] for said in row["conditions"]))


def json_lines(rows: Sequence[Row]) -> Iterator[str]:
    """One JSON object a pass."""
    yield from (msgspec.json.encode(row).decode() for row in rows)


def _row(number: int, step: SimulatedPass) -> Row:
    desired = step.outcome.desired
    return {
        "pass": number,
        "at": step.at.isoformat(),
        "replicas": step.replicas,
        "recommendation": desired.recommendation.replicas if desired.recommendation else None,
        "stabilized": desired.limited.stabilized if desired.limited else None,
        "desired": desired.replicas,
        "written": desired.written,
        "conditions": [
            {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message}
            for c in step.outcome.conditions
        ],
    }


def _line(row: Row, conditions: str) -> str:
    cells = ["-" if row[column] is None else str(row[column]) for column in COLUMNS]
    return "  ".join(f"{cell:>{len(column)}}" for cell, column in zip(cells, COLUMNS, strict=True)) + f"  {conditions}"

"""Passes of an HPA in every form of output."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  msgspec resolves the annotations when it encodes
from typing import TYPE_CHECKING

import msgspec

from forecaster.report.formats import SimulateOutput
from forecaster.report.printed import PrintedColumn, flat, print_csv, print_json, print_table, print_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forecaster.hpa.reconcile import SimulatedPass


class ConditionView(msgspec.Struct, frozen=True, gc=False):
    """One condition that the HPA would state."""

    type: str
    status: str
    reason: str
    message: str


class PassView(msgspec.Struct, frozen=True, rename={"number": "pass"}):
    """One pass: counts of pods, null where it did not get that far."""

    number: int
    at: datetime
    replicas: int
    recommendation: int | None
    stabilized: int | None
    desired: int
    written: bool
    conditions: list[ConditionView]


class SimulationView(msgspec.Struct, frozen=True):
    """The passes in their order."""

    passes: list[PassView]


def print_passes(steps: Iterable[SimulatedPass], output: SimulateOutput) -> None:
    """A line a pass, `-` where a pass did not get that far."""
    passes = [_pass_view(number, step) for number, step in enumerate(steps, start=1)]
    match output:
        case SimulateOutput.TABLE:
            print_table(_columns(passes))
        case SimulateOutput.JSON:
            print_json(SimulationView(passes))
        case SimulateOutput.YAML:
            print_yaml(SimulationView(passes))
        case SimulateOutput.CSV:
            print_csv([flat(msgspec.to_builtins(one)) | {"conditions": _reasons(one)} for one in passes])


def _pass_view(number: int, step: SimulatedPass) -> PassView:
    desired = step.outcome.desired
    return PassView(
        number=number,
        at=step.at,
        replicas=step.replicas,
        recommendation=desired.recommendation.replicas if desired.recommendation else None,
        stabilized=desired.limited.stabilized if desired.limited else None,
        desired=desired.replicas,
        written=desired.written,
        conditions=[ConditionView(c.type, c.status, c.reason, c.message) for c in step.outcome.conditions],
    )


def _columns(passes: Sequence[PassView]) -> list[PrintedColumn]:
    counts: tuple[tuple[str, list[int | None]], ...] = (
        ("PASS", [one.number for one in passes]),
        ("REPLICAS", [one.replicas for one in passes]),
        ("RECOMMENDED", [one.recommendation for one in passes]),
        ("STABILIZED", [one.stabilized for one in passes]),
        ("DESIRED", [one.desired for one in passes]),
    )
    return [
        *(
            PrintedColumn(head, ["-" if count is None else str(count) for count in each], right=True)
            for head, each in counts
        ),
        PrintedColumn("CONDITIONS", [_reasons(one) for one in passes], words=True),
    ]


def _reasons(one: PassView) -> str:
    return " ".join(condition.reason for condition in one.conditions)

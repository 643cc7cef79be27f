"""The outcome of a cycle on standard output, for people or for machines; what failed goes to standard error."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import msgspec
import yaml
from rich.console import Console

from forecaster.output.format import Output
from forecaster.output.table import table_of
from forecaster.serving.wire import recommendation_view

if TYPE_CHECKING:
    from forecaster.cycle.run import Outcome
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.workload import WorkloadId
    from forecaster.serving.wire import RecommendationView

PIPE_WIDTH = 240


def print_outcome(outcome: Outcome, chosen: set[WorkloadId], output: Output) -> None:
    """Print the chosen recommendations in the order of their names."""
    ours = sorted((one for one in outcome.recommendations if one.id in chosen), key=lambda one: one.id)
    if output is Output.TABLE:
        _print_table(ours, outcome)
    else:
        _PRINTERS[output]([recommendation_view(one) for one in ours])
    for failure in outcome.report.failures:
        sys.stderr.write(f"! {failure}\n")
    if outcome.report.failures and not outcome.recommendations:
        sys.stderr.write("`forecaster doctor` tries each thing that is needed and says what to do.\n")


def _print_table(ours: list[Recommendation], outcome: Outcome) -> None:
    # A pipe has no width: nothing is cut for whoever reads it.
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    if ours:
        console.print(table_of(ours))
    elif outcome.recommendations:
        console.print(f"None of {len(outcome.recommendations)} workloads matches.")
    elif not outcome.report.failures:
        console.print("No workload was found. `forecaster doctor` says which series are missing.")


def print_json(views: list[RecommendationView]) -> None:
    """The same objects as the API answers."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode({"recommendations": views}), indent=2).decode() + "\n")


def _print_yaml(views: list[RecommendationView]) -> None:
    yaml.safe_dump({"recommendations": msgspec.to_builtins(views)}, sys.stdout, sort_keys=False, allow_unicode=True)


def _print_csv(views: list[RecommendationView]) -> None:
    rows = [_flat(view) for view in views]
    writer = csv.DictWriter(sys.stdout, fieldnames=_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


_AMOUNTS = ("cpu_request", "cpu_limit", "memory_request", "memory_limit")
_COLUMNS = (
    *("namespace", "kind", "name", "at", "autoscaler", "replicas_now", "replicas", "verdict", "reason", "message"),
    *(f"{amount}_now" for amount in _AMOUNTS),
    *_AMOUNTS,
)


def _flat(view: RecommendationView) -> dict[str, object]:
    """One row: numbers in base units, empty where they are not known."""
    now, wanted = view.resources.now, view.resources.recommended
    return {
        "namespace": view.namespace,
        "kind": view.kind,
        "name": view.name,
        "at": view.at.isoformat(),
        "autoscaler": view.autoscaler,
        "replicas_now": view.replicas.now,
        "replicas": view.replicas.recommended,
        "verdict": view.replicas.verdict,
        "reason": view.replicas.reason,
        "message": view.replicas.message,
        **{f"{name}_now": getattr(now, name) for name in _AMOUNTS},
        **{name: getattr(wanted, name) if wanted else None for name in _AMOUNTS},
    }


_PRINTERS = {Output.JSON: print_json, Output.YAML: _print_yaml, Output.CSV: _print_csv}

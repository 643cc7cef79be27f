"""Recommendations as a table for people; used by `once` and by the demo."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import msgspec
import yaml
from rich.table import Table

from forecaster.domain.amounts import UNKNOWN, amount, cpu_of, memory_of
from forecaster.domain.decision import Hold, Reason, Resize, Scale
from forecaster.publish.views import recommendation_view
from forecaster.report.formats import Output
from forecaster.report.printed import output_console, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.cycle.run import Outcome
    from forecaster.domain.decision import Recommendation, SignalView
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.views import RecommendationView


COLUMNS = {
    "WORKLOAD": True,
    "SIGNAL": True,
    "NOW": True,
    "FORECAST": False,
    "REPLICAS": True,
    "ONE POD (REQUEST/LIMIT)": False,
    "REASON": False,
}
"""Name, and whether its cells stay on one line where the terminal is narrow."""


def table_of(recommendations: Iterable[Recommendation]) -> Table:
    """One row per workload: the signal that decides, demand now and ahead, replicas, requests/limits, reason."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, whole in COLUMNS.items():
        table.add_column(name, no_wrap=whole)
    for one in recommendations:
        table.add_row(*row_of(one), style=_style(one))
    return table


def row_of(one: Recommendation) -> tuple[str, ...]:
    """The cells of one workload."""
    view = deciding(one)
    return (
        str(one.id),
        view.signal if view else UNKNOWN,
        amount(view.measured, view.unit) if view else UNKNOWN,
        _forecast(view),
        _replicas(one),
        _sizes(one),
        one.replicas.reason if not isinstance(one.replicas, Hold) else f"hold: {one.replicas.reason}",
    )


def deciding(one: Recommendation) -> SignalView | None:
    """The signal that asks for most, as measured or as forecast."""
    asked = [view for view in one.signals if view.reactive_replicas is not None or view.forecast_replicas is not None]
    return max(asked, key=lambda v: max(v.reactive_replicas or 0, v.forecast_replicas or 0), default=None)


def _forecast(view: SignalView | None) -> str:
    if view is None or view.forecast is None:
        return UNKNOWN
    ahead = view.forecast
    peak, low, high = (amount(value, view.unit) for value in (ahead.peak, ahead.low, ahead.high))
    return f"{peak} ({low}…{high})"


def _replicas(one: Recommendation) -> str:
    wanted = str(one.replicas.replicas) if isinstance(one.replicas, Scale) else "hold"
    return f"{one.replicas_now} → {wanted}"


def _sizes(one: Recommendation) -> str:
    now = one.resources_now
    wanted = one.resources.resources if isinstance(one.resources, Resize) else now
    return f"cpu {_change(cpu_of(now), cpu_of(wanted))}, mem {_change(memory_of(now), memory_of(wanted))}"


def _change(now: str, wanted: str) -> str:
    return now if now == wanted else f"{now} → {wanted}"


def _style(one: Recommendation) -> str:
    if isinstance(one.replicas, Hold):
        return "yellow"
    return "bold green" if one.replicas.reason is Reason.FORECAST else ""


def print_outcome(outcome: Outcome, chosen: set[WorkloadId], output: Output) -> None:
    """Print the chosen recommendations in the order of their names; what failed goes to standard error."""
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
    console = output_console()
    if ours:
        console.print(table_of(ours))
    elif outcome.recommendations:
        console.print(f"None of {len(outcome.recommendations)} workloads matches.")
    elif not outcome.report.failures:
        console.print("No workload was found. `forecaster doctor` says which series are missing.")


def _print_json(views: list[RecommendationView]) -> None:
    """The same objects as the API answers."""
    print_json({"recommendations": views})


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


_PRINTERS = {Output.JSON: _print_json, Output.YAML: _print_yaml, Output.CSV: _print_csv}

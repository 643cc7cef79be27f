"""Recommendations as a table for people; used by `once` and by the demo."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from forecaster.domain.amounts import UNKNOWN_AMOUNT, amount, counted
from forecaster.domain.decision import Hold, Reason, Recommendation, Resize, Scale, SignalView
from forecaster.errors import TRY_DOCTOR
from forecaster.publish.record import verdict_of
from forecaster.publish.views import AMOUNT_FIELDS, RecommendationView, recommendation_view
from forecaster.report.formats import Output
from forecaster.report.plot import half_day, sparkline, windows_of
from forecaster.report.printed import (
    Printable,
    PrintedColumn,
    change,
    fitting,
    mebi,
    milli,
    print_as,
    print_table,
    print_text,
    table_text,
    terminal_width,
)

if TYPE_CHECKING:
    from forecaster.cycle.run import Outcome
    from forecaster.domain.signal import PeakForecast
    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId
    from forecaster.ports import Histories

MAX_PRINTED = 50
"""Failures that a command prints: owners can cause thousands; those of the source come first."""
NONE_FOUND = "No workload was found. `forecaster doctor` says which series are missing."


def columns_of(recommendations: Sequence[Recommendation]) -> list[PrintedColumn]:
    """Return one row per workload, by importance: present and coming demand, replicas, reason, requests."""
    views = [deciding(row) for row in recommendations]
    ahead = [view.forecast if view else None for view in views]
    units = [view.unit if view else "" for view in views]

    def of_each(value: Callable[[PeakForecast], float]) -> list[str]:
        return [
            table_amount(value(forecast) if forecast else None, unit)
            for forecast, unit in zip(ahead, units, strict=True)
        ]

    return [
        PrintedColumn("WORKLOAD", [str(row.id) for row in recommendations]),
        PrintedColumn("SIGNAL", [view.signal if view else UNKNOWN_AMOUNT for view in views], rank=3),
        PrintedColumn(
            "NOW",
            [table_amount(view.measured if view else None, unit) for view, unit in zip(views, units, strict=True)],
            rank=2,
            right=True,
        ),
        PrintedColumn("FORECAST", of_each(lambda forecast: forecast.peak), rank=1, right=True),
        PrintedColumn("LOW", of_each(lambda forecast: forecast.low), rank=6, right=True),
        PrintedColumn("HIGH", of_each(lambda forecast: forecast.high), rank=6, right=True),
        PrintedColumn("REPLICAS", [_replicas(row) for row in recommendations], right=True),
        PrintedColumn("REASON", [_reason(row) for row in recommendations]),
        *_sizes(recommendations),
    ]


def table_of(recommendations: Sequence[Recommendation], width: int | None, history: Histories | None = None) -> Text:
    """Return the columns of the table that fit this width; with a history the last half day as a picture."""
    columns = columns_of(recommendations)
    if history is not None:
        windows = windows_of(history)
        columns.insert(1, PrintedColumn("LAST 12 H", [_picture(row, windows) for row in recommendations], rank=2))
    return table_text(fitting(columns, width), width, [_style(row) for row in recommendations])


def _picture(recommendation: Recommendation, windows: Mapping[str, Window]) -> str:
    view = deciding(recommendation)
    return sparkline(half_day(windows, recommendation.id, view.signal), 12) if view else ""


def deciding(recommendation: Recommendation) -> SignalView | None:
    """The signal that asks for most, as measured or as forecast."""
    views = [v for v in recommendation.signals if v.reactive_replicas is not None or v.forecast_replicas is not None]
    return max(views, key=lambda v: max(v.reactive_replicas or 0, v.forecast_replicas or 0), default=None)


def table_amount(value: float | None, unit: str) -> str:
    """An amount of a signal, in the one unit that tables have for it."""
    match unit:
        case "cores":
            return milli(value)
        case "bytes":
            return mebi(value)
        case "requests/s":
            return UNKNOWN_AMOUNT if value is None else f"{value:.1f}/s"
        case _:
            return amount(value, unit)


def _replicas(recommendation: Recommendation) -> str:
    desired = str(recommendation.replicas.replicas) if isinstance(recommendation.replicas, Scale) else "hold"
    return f"{recommendation.replicas_now} → {desired}"


def _reason(recommendation: Recommendation) -> str:
    reason = recommendation.replicas.reason
    return f"hold: {reason}" if isinstance(recommendation.replicas, Hold) else str(reason)


def _sizes(recommendations: Sequence[Recommendation]) -> list[PrintedColumn]:
    """Return sizes, requests before limits, because requests cost money."""
    pairs = [
        (row.resources_now, row.resources.resources if isinstance(row.resources, Resize) else None)
        for row in recommendations
    ]

    def column(head: str, name: str, spoken: Callable[[float | None], str], rank: int) -> PrintedColumn:
        cells = [
            change(spoken(getattr(now, name)), spoken(getattr(recommended, name)) if recommended else None)
            for now, recommended in pairs
        ]
        return PrintedColumn(head, cells, rank=rank, right=True)

    return [
        column("CPU REQUEST", "cpu_request", milli, 4),
        column("MEMORY REQUEST", "memory_request", mebi, 5),
        column("CPU LIMIT", "cpu_limit", milli, 7),
        column("MEMORY LIMIT", "memory_limit", mebi, 7),
    ]


def _style(recommendation: Recommendation) -> str:
    if isinstance(recommendation.replicas, Hold):
        return "yellow"
    return "bold green" if recommendation.replicas.reason is Reason.FORECAST else ""


class RecommendationsDocument(msgspec.Struct, frozen=True):
    """Recommendations of all workloads that were chosen, by name."""

    recommendations: list[RecommendationView]


class ExplanationDocument(msgspec.Struct, frozen=True):
    """The recommendation of one workload, and how it came about in sentences."""

    recommendation: RecommendationView
    text: list[str]


class ExplanationsDocument(msgspec.Struct, frozen=True):
    """Explanations of all workloads that were chosen."""

    explanations: list[ExplanationDocument]


def print_outcome(outcome: Outcome, chosen: set[WorkloadId], output: Output) -> None:
    """Print the chosen recommendations in the order of their names; what failed goes to standard error."""
    rows = sorted((row for row in outcome.recommendations if row.id in chosen), key=lambda row: row.id)
    views = [recommendation_view(row) for row in rows] if output in {Output.JSON, Output.YAML, Output.CSV} else []
    print_as(
        output,
        Printable(
            table=lambda wide: _print_table(rows, outcome, wide=wide),
            document=lambda: RecommendationsDocument(views),
            rows=lambda: [_flat(view) for view in views],
            ids=lambda: (row.id for row in rows),
        ),
    )
    for line in failure_lines(outcome):
        sys.stderr.write(f"{line}\n")


def failure_lines(outcome: Outcome) -> list[str]:
    """Return the first failures, a line each; where nothing could be read, also the command that says why."""
    failures = [f"! {failure}" for failure in outcome.report.failures]
    if more := len(failures[MAX_PRINTED:]):
        failures[MAX_PRINTED:] = [f"! and {more} more"]
    if outcome.recommendations or failures:
        return [*failures, TRY_DOCTOR] if outcome.lost else failures
    return [NONE_FOUND]


def _print_table(rows: list[Recommendation], outcome: Outcome, *, wide: bool) -> None:
    if rows:
        print_table(columns_of(rows), [_style(row) for row in rows], wide=wide)
    elif outcome.recommendations:
        print_text(f"None of {counted(len(outcome.recommendations), 'workload')} matches.")


def _flat(view: RecommendationView) -> dict[str, object]:
    """Return one row: numbers in base units, empty where they are not known."""
    now, recommended = view.resources.now, view.resources.recommended
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
        **{f"{public}_now": getattr(now, name) for name, public in AMOUNT_FIELDS.items()},
        **{public: getattr(recommended, name) if recommended else None for name, public in AMOUNT_FIELDS.items()},
    }


# The same live: one table that is drawn again in its place.


class LiveTable:
    """Recommendations on a terminal, those that change most first; where there is no terminal one below the other.

    A terminal has as many as fit, a pipe all of them; `lasts` is whether more pictures follow.
    """

    def __init__(self, rows: int | None = None, *, lasts: bool = True) -> None:
        self._rows = rows
        self._lasts = lasts
        self._live = Live(console=Console(), auto_refresh=False, screen=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, outcome: Outcome, chosen: set[WorkloadId], history: Histories | None = None) -> None:
        """The present outcome."""
        rows = sorted((row for row in outcome.recommendations if row.id in chosen), key=_urgency)
        most = self._rows or self._free_rows() or len(rows)
        table = table_of(rows[:most], terminal_width(), history) if rows else Text("")
        more = [Text(f"{len(rows) - most} more; `forecaster once` lists all", style="dim")] if len(rows) > most else []
        failures = [Text(line, no_wrap=True, overflow="ellipsis") for line in failure_lines(outcome)[:3]]
        end = "; Ctrl-C ends it" if self._lasts else ""
        picture = Group(Text(headline(outcome, rows) + end, style="bold"), table, *more, *failures)
        if self._live.console.is_terminal:
            self._live.update(picture, refresh=True)
        else:
            self._live.console.print(picture, soft_wrap=True)

    def _free_rows(self) -> int:
        """Rows of the terminal beside the other lines; 0 without any."""
        return max(1, self._live.console.height - 5) if self._live.console.is_terminal else 0


def headline(outcome: Outcome, rows: Sequence[Recommendation]) -> str:
    """Return the instant of the cycle and the number of workloads by verdict."""
    counts = Counter(verdict_of(row.replicas_now, _recommended(row)) for row in rows)
    text = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("up", "down", "keep", "hold") if counts[verdict])
    return f"{outcome.report.at:%Y-%m-%d %H:%M} UTC: {counted(len(rows), 'workload')}, {text or 'nothing to show'}"


def _urgency(recommendation: Recommendation) -> tuple[float, WorkloadId]:
    """Large changes first, as shares of what there is; holds before what stays."""
    desired, now = _recommended(recommendation), recommendation.replicas_now
    moved = 0.001 if desired is None else abs(desired - now) / max(1, now)
    return -moved, recommendation.id


def _recommended(recommendation: Recommendation) -> int | None:
    return recommendation.replicas.replicas if isinstance(recommendation.replicas, Scale) else None

"""Recommendations as a table for people; used by `once` and by the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from forecaster.domain.amounts import UNKNOWN, amount, cpu_of, memory_of
from forecaster.domain.decision import Hold, Reason, Resize, Scale

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.domain.decision import Recommendation, SignalView

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
        amount(view.measured, view.signal) if view else UNKNOWN,
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
    peak, low, high = (amount(value, view.signal) for value in (ahead.peak, ahead.low, ahead.high))
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

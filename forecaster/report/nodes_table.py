"""Node pools ahead of time as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from forecaster.domain.amounts import memory
from forecaster.report.printed import output_console

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.cycle.node_forecast import NodeForecast
    from forecaster.vertical.nodes.forecast import PoolForecast
    from forecaster.vertical.nodes.joint_samples import JointSum

MOST_NODES_SHOWN = 10


def print_tables(ahead: NodeForecast) -> None:
    """Pools with their windows, headroom, and the nodes whose memory fills up."""
    console = output_console()
    if not ahead.pools:
        console.print("No nodes are known: give --objects, or let Prometheus scrape kube-state-metrics.")
        return
    for one in ahead.pools:
        console.print(_title(one, ahead), markup=False)
        console.print(_windows_table(one, ahead))
    for wanted in ahead.headroom:
        console.print(f"headroom {wanted.pool}: {wanted.replicas} placeholders ({wanted.reason})", markup=False)
    if ahead.pressures:
        console.print(_pressure_table(ahead))
    if ahead.unplaced:
        console.print(f"on no known node: {', '.join(ahead.unplaced)}", markup=False)


def _title(one: PoolForecast, ahead: NodeForecast) -> str:
    peak = one.peak
    grows = f"{one.nodes_needed} needed from {peak.begin:%a %H:%M}" if peak and peak.packing.new_nodes else "enough"
    free = f"{one.requested_cpu:.1f} of {one.allocatable_cpu:.1f} cores requested"
    return f"pool {one.pool.name}: {len(one.pool.nodes)} nodes, {grows}; {free}; quantile {ahead.quantile:g}"


def _windows_table(one: PoolForecast, ahead: NodeForecast) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("AHEAD", "CPU REQUESTED", "MEMORY REQUESTED", "CPU USED", "MEMORY USED", "NEW NODES"):
        table.add_column(name, no_wrap=True)
    for window in one.windows:
        table.add_row(
            f"{_minutes(window.begin, ahead)}…{_minutes(window.until, ahead)}",
            _spoken(window.requested_cpu, lambda value: f"{value:.1f}"),
            _spoken(window.requested_memory, memory),
            _spoken(window.used_cpu, lambda value: f"{value:.1f}"),
            _spoken(window.used_memory, memory),
            str(window.packing.new_nodes)
            + (f" +{window.packing.unplaced} unplaced" if window.packing.unplaced else ""),
        )
    return table


def _minutes(instant: Any, ahead: NodeForecast) -> str:
    minutes = int((instant - ahead.at).total_seconds()) // 60
    return f"{minutes}m" if minutes < 60 else f"{minutes // 60}h"  # noqa: PLR2004  minutes of an hour


def _spoken(one: JointSum, said: Callable[[float], str]) -> str:
    """The value, and in brackets what it would be if the workloads were independent, or all high at once."""
    low, high = said(one.independent), said(one.together)
    return said(one.value) if low == high else f"{said(one.value)} ({low}…{high})"


def _pressure_table(ahead: NodeForecast) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("NODE", "MEMORY NOW", "P95 AHEAD", "ROOM", "RISK", "EVICTED FIRST"):
        table.add_column(name, no_wrap=name != "EVICTED FIRST")
    for one in ahead.pressures[:MOST_NODES_SHOWN]:
        table.add_row(
            one.node,
            memory(one.used_now),
            memory(one.used_high),
            memory(one.free),
            f"{one.risk * 100:.0f} %",
            ", ".join(one.first) if one.risk else "",
        )
    return table

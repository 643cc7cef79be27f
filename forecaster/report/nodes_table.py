"""Node pools ahead of time as tables for people: cores, GiB, and a share of risk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.report.printed import PrintedColumn, print_table, print_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from forecaster.cycle.node_forecast import NodeForecast
    from forecaster.vertical.nodes.forecast import PoolForecast, PoolWindow
    from forecaster.vertical.nodes.joint_samples import JointSum

MOST_NODES_SHOWN = 10
GIB = 2**30


def print_tables(ahead: NodeForecast, *, wide: bool = False) -> None:
    """Pools with their windows, headroom, and the nodes whose memory fills up."""
    if not ahead.pools:
        print_text("No nodes are known: give --objects, or let Prometheus scrape kube-state-metrics.")
        return
    for one in ahead.pools:
        print_text(_title(one, ahead))
        print_table(window_columns(one, ahead), wide=wide)
    print_text(*(f"headroom {one.pool}: {one.replicas} placeholders ({one.reason})" for one in ahead.headroom))
    if ahead.pressures:
        print_table(pressure_columns(ahead), wide=wide)
    if ahead.unplaced:
        print_text(f"on no known node: {', '.join(ahead.unplaced)}")


def _title(one: PoolForecast, ahead: NodeForecast) -> str:
    peak = one.peak
    grows = f"{one.nodes_needed} needed from {peak.begin:%a %H:%M}" if peak and peak.packing.new_nodes else "enough"
    free = f"{one.requested_cpu:.1f} of {one.allocatable_cpu:.1f} cores requested"
    return f"pool {one.pool.name}: {len(one.pool.nodes)} nodes, {grows}; {free}; quantile {ahead.quantile:g}"


SUMS: tuple[tuple[str, Callable[[PoolWindow], JointSum], float, int], ...] = (
    ("CPU REQUESTED", lambda one: one.requested_cpu, 1, 0),
    ("GIB REQUESTED", lambda one: one.requested_memory, GIB, 1),
    ("CPU USED", lambda one: one.used_cpu, 1, 2),
    ("GIB USED", lambda one: one.used_memory, GIB, 3),
)


def window_columns(one: PoolForecast, ahead: NodeForecast) -> list[PrintedColumn]:
    """Sums of one pool by window; between which extremes they lie is the first to be left out."""
    windows = one.windows
    spans = [f"{_ahead(each.begin, ahead)}…{_ahead(each.until, ahead)}" for each in windows]
    sums = [
        column
        for head, of, unit, rank in SUMS
        for column in (
            PrintedColumn(head, [f"{of(each).value / unit:.1f}" for each in windows], rank=rank, right=True),
            PrintedColumn("BETWEEN", [_between(of(each), unit) for each in windows], rank=6 + rank),
        )
    ]
    return [
        PrintedColumn("AHEAD", spans),
        *sums,
        PrintedColumn("NEW NODES", [str(each.packing.new_nodes) for each in windows], right=True),
        PrintedColumn("UNPLACED PODS", [str(each.packing.unplaced) for each in windows], rank=4, right=True),
    ]


def _ahead(instant: datetime, ahead: NodeForecast) -> str:
    minutes = int((instant - ahead.at).total_seconds()) // 60
    return f"{minutes}m" if minutes < 60 else f"{minutes // 60}h"  # noqa: PLR2004  minutes of an hour


def _between(one: JointSum, unit: float) -> str:
    """What the sum would be if the workloads were independent, and if all were high at once."""
    return f"{one.independent / unit:.1f}…{one.together / unit:.1f}"


def pressure_columns(ahead: NodeForecast) -> list[PrintedColumn]:
    """The nodes whose memory is most likely to run out."""
    nodes = ahead.pressures[:MOST_NODES_SHOWN]
    return [
        PrintedColumn("NODE", [one.node for one in nodes]),
        PrintedColumn("GIB NOW", [f"{one.used_now / GIB:.1f}" for one in nodes], rank=2, right=True),
        PrintedColumn("P95 AHEAD", [f"{one.used_high / GIB:.1f}" for one in nodes], rank=1, right=True),
        PrintedColumn("GIB FREE", [f"{one.free / GIB:.1f}" for one in nodes], right=True),
        PrintedColumn("RISK", [f"{one.risk:.0%}" for one in nodes], right=True),
        PrintedColumn("EVICTED FIRST", [", ".join(one.first) if one.risk else "" for one in nodes], rank=3, words=True),
    ]

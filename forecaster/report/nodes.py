"""Node pools ahead of time on standard output: for people, for machines, for Prometheus."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import yaml
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from forecaster.cycle.node_document import document, flat_window
from forecaster.domain.amounts import counted
from forecaster.domain.workload import GIB
from forecaster.report.formats import NodesOutput, Output
from forecaster.report.printed import Printable, PrintedColumn, print_as, print_table, print_text
from forecaster.vertical.nodes.headroom import buffers, manifests

if TYPE_CHECKING:
    from forecaster.cycle.node_forecast import NodeForecast
    from forecaster.vertical.nodes.forecast import PoolForecast
    from forecaster.vertical.nodes.joint_samples import JointSum


def print_nodes(ahead: NodeForecast, output: NodesOutput, image: str = "") -> None:
    """Print the forecast in the requested format; `image` is that of headroom pods."""
    match output:
        case NodesOutput.HEADROOM:
            yaml.safe_dump_all(headroom_manifests(ahead, image), sys.stdout, sort_keys=False)
        case NodesOutput.CAPACITY_BUFFER:
            yaml.safe_dump_all(capacity_buffers(ahead), sys.stdout, sort_keys=False)
        case NodesOutput.METRICS:
            sys.stdout.write(generate_latest(pool_metrics(ahead)).decode())
        case _:
            print_as(Output(output.value), _printable(ahead))


def _printable(ahead: NodeForecast) -> Printable:
    """A row of CSV is a window of a pool, a name that of a pool."""
    return Printable(
        table=lambda wide: print_tables(ahead, wide=wide),
        document=lambda: document(ahead),
        rows=lambda: [{"pool": pool.pool.name, **flat_window(each)} for pool in ahead.pools for each in pool.windows],
        ids=lambda: (pool.pool.name for pool in ahead.pools),
    )


def capacity_buffers(ahead: NodeForecast) -> list[dict[str, Any]]:
    """A PodTemplate and a CapacityBuffer for each pool; a pool that needs none has a buffer of no replicas."""
    pools = {pool.pool.name: pool.pool for pool in ahead.pools}
    return [each for headroom in ahead.headroom for each in buffers(headroom, pools[headroom.pool])]


def headroom_manifests(ahead: NodeForecast, image: str) -> list[dict[str, Any]]:
    """One priority class, and a Deployment for each pool; a pool that needs none has one of no replicas."""
    pools = {pool.pool.name: pool.pool for pool in ahead.pools}
    objects: list[dict[str, Any]] = []
    for headroom in ahead.headroom:
        priority, deployment = manifests(headroom, pools[headroom.pool], image)
        objects += [deployment] if objects else [priority, deployment]
    return objects


def pool_metrics(ahead: NodeForecast) -> CollectorRegistry:
    """`forecaster_node_pool_*`: labels are the pool and, for what is ahead, the minutes until the window begins."""
    registry = CollectorRegistry()

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"forecaster_node_pool_{name}", text, ["pool", *labels], registry=registry)

    nodes, needed = gauge("nodes", "Nodes there are."), gauge("nodes_needed", "Nodes at the forecast peak of a day.")
    placeholders = gauge("headroom_replicas", "Placeholder pods that keep the coming load warm.")
    ahead_of = {
        "requested_cpu": gauge("requested_cpu_cores", "Requests ahead, quantile of the sum.", "ahead_minutes"),
        "requested_memory": gauge("requested_memory_bytes", "Requests ahead.", "ahead_minutes"),
        "used_cpu": gauge("used_cpu_cores", "Usage ahead.", "ahead_minutes"),
        "used_memory": gauge("used_memory_bytes", "Usage ahead.", "ahead_minutes"),
    }
    for pool in ahead.pools:
        nodes.labels(pool.pool.name).set(len(pool.pool.nodes))
        needed.labels(pool.pool.name).set(pool.nodes_needed)
        for window in pool.windows:
            minutes = str(int((window.begin - ahead.at).total_seconds()) // 60)
            for name, each in ahead_of.items():
                each.labels(pool.pool.name, minutes).set(getattr(window, name).value)
    for headroom in ahead.headroom:
        placeholders.labels(headroom.pool).set(headroom.replicas)
    return registry


MAX_NODES_SHOWN = 10


def print_tables(ahead: NodeForecast, *, wide: bool = False) -> None:
    """Print pools with their windows, spare capacity, and the nodes that run out of memory."""
    if not ahead.pools:
        print_text("No nodes are known: give --objects, or let Prometheus scrape kube-state-metrics.")
        return
    for pool in ahead.pools:
        print_text(_title(pool, ahead))
        print_table(window_columns(pool, ahead), wide=wide)
        if pool.unforecast:
            print_text(f"no forecast, taken to stay as now, and not in what is used: {', '.join(pool.unforecast)}")
    for headroom in ahead.headroom:
        print_text(f"headroom {headroom.pool}: {counted(headroom.replicas, 'placeholder')} ({headroom.reason})")
    if ahead.pressures:
        print_table(pressure_columns(ahead), wide=wide)
    if ahead.unplaced:
        print_text(f"on no known node: {', '.join(ahead.unplaced)}")


def _title(pool: PoolForecast, ahead: NodeForecast) -> str:
    there, most = len(pool.pool.nodes), pool.nodes_needed - len(pool.pool.nodes)
    reached = [[each for each in pool.windows if each.packing.new_nodes >= least] for least in (1, most)]
    needs = {each[0].packing.new_nodes: each[0].begin for each in reached if each and most}
    grows = [f"{there + more} needed from {since:%a %H:%M}" for more, since in needs.items()]
    unplaced = max((each.packing.unplaced for each in pool.windows), default=0)
    grows += [f"no node takes {counted(unplaced, 'pod')}"] if unplaced else []
    free = f"{pool.requested_cpu:.1f} of {pool.allocatable_cpu:.1f} cores requested; quantile {ahead.quantile:g}"
    return f"pool {pool.pool.name}: {counted(there, 'node')}, {', '.join(grows) or 'enough'}; {free}"


SHOWN_SUMS = (
    ("CPU REQUESTED", "requested_cpu", 1, 0),
    ("GIB REQUESTED", "requested_memory", GIB, 1),
    ("CPU USED", "used_cpu", 1, 2),
    ("GIB USED", "used_memory", GIB, 3),
)


def window_columns(pool: PoolForecast, ahead: NodeForecast) -> list[PrintedColumn]:
    """Sums of one pool by window; their values at no and at full dependence are the first to be left out."""
    windows = pool.windows
    spans = [f"{_ahead(each.begin, ahead)}…{_ahead(each.until, ahead)}" for each in windows]
    sums = [
        column
        for head, name, unit, rank in SHOWN_SUMS
        for column in (
            PrintedColumn(head, [f"{getattr(each, name).value / unit:.1f}" for each in windows], rank=rank, right=True),
            PrintedColumn("APART…TOGETHER", [_between(getattr(each, name), unit) for each in windows], rank=6 + rank),
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


def _between(joint: JointSum, unit: float) -> str:
    """Return the sum for independent workloads, and the sum if all were high at once."""
    return f"{joint.independent / unit:.1f}…{joint.together / unit:.1f}"


def pressure_columns(ahead: NodeForecast) -> list[PrintedColumn]:
    """Return the nodes that are most likely to run out of memory."""
    pressures = ahead.pressures[:MAX_NODES_SHOWN]
    evicted_first = [", ".join(pressure.first) if pressure.risk else "" for pressure in pressures]
    return [
        PrintedColumn("NODE", [pressure.node for pressure in pressures]),
        PrintedColumn("GIB NOW", [f"{pressure.used_now / GIB:.1f}" for pressure in pressures], rank=2, right=True),
        PrintedColumn("P95 AHEAD", [f"{pressure.used_high / GIB:.1f}" for pressure in pressures], rank=1, right=True),
        PrintedColumn("GIB FREE", [f"{pressure.free / GIB:.1f}" for pressure in pressures], right=True),
        PrintedColumn("RISK", [f"{pressure.risk:.0%}" for pressure in pressures], right=True),
        PrintedColumn("EVICTED FIRST", evicted_first, rank=3, words=True),
    ]

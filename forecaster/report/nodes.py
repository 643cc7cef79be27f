"""Node pools ahead of time on standard output: for people, for machines, for Prometheus, for a scheduler."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import yaml
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from forecaster.report.formats import NodesOutput, Output
from forecaster.report.nodes_table import print_tables
from forecaster.report.printed import Printable, print_as
from forecaster.vertical.nodes.headroom import manifests

if TYPE_CHECKING:
    from forecaster.cycle.node_forecast import NodeForecast
    from forecaster.vertical.nodes.forecast import PoolForecast, PoolWindow
    from forecaster.vertical.nodes.joint_samples import JointSum
    from forecaster.vertical.nodes.pressure import Pressure


def print_nodes(ahead: NodeForecast, output: NodesOutput, image: str = "") -> None:
    """Print what was asked for; `image` is what headroom pods run."""
    match output:
        case NodesOutput.HEADROOM:
            yaml.safe_dump_all(headroom_manifests(ahead, image), sys.stdout, sort_keys=False)
        case NodesOutput.WATCHER:
            sys.stdout.write(json.dumps(ahead.watcher, indent=2) + "\n")
        case NodesOutput.METRICS:
            sys.stdout.write(metrics_text(ahead))
        case _:
            print_as(Output(output.value), _printable(ahead))


def _printable(ahead: NodeForecast) -> Printable:
    """A row of CSV is a window of a pool, a name that of a pool."""
    return Printable(
        table=lambda wide: print_tables(ahead, wide=wide),
        document=lambda: document(ahead),
        rows=lambda: [{"pool": pool.pool.name, **_flat(each)} for pool in ahead.pools for each in pool.windows],
        ids=lambda: (one.pool.name for one in ahead.pools),
    )


def _flat(one: PoolWindow) -> dict[str, Any]:
    view = _window(one)
    return {name: of["value"] if name in SUMS else of for name, of in view.items() if name != "replicas"}


SUMS = ("requested_cpu_cores", "requested_memory_bytes", "used_cpu_cores", "used_memory_bytes")


def headroom_manifests(ahead: NodeForecast, image: str) -> list[dict[str, Any]]:
    """One priority class, and a Deployment for each pool; a pool that needs none has one of no replicas."""
    pools = {one.pool.name: one.pool for one in ahead.pools}
    found: list[dict[str, Any]] = []
    for wanted in ahead.headroom:
        priority, deployment = manifests(wanted, pools[wanted.pool], image)
        found += [deployment] if found else [priority, deployment]
    return found


def document(ahead: NodeForecast) -> dict[str, Any]:
    """Everything in cores and bytes."""
    return {
        "at": ahead.at.isoformat(),
        "quantile": ahead.quantile,
        "pools": [_pool(one) for one in ahead.pools],
        "headroom": [
            {
                "pool": one.pool,
                "replicas": one.replicas,
                "cpu_cores": one.cpu,
                "memory_bytes": one.memory,
                "until": one.until.isoformat() if one.until else None,
                "reason": one.reason,
            }
            for one in ahead.headroom
        ],
        "memory_pressure": [_pressure(one) for one in ahead.pressures],
        "workloads_without_a_node": list(ahead.unplaced),
    }


def _pool(one: PoolForecast) -> dict[str, Any]:
    peak = one.peak
    return {
        "pool": one.pool.name,
        "label": one.pool.label or None,
        "nodes": len(one.pool.nodes),
        "nodes_needed": one.nodes_needed,
        "needed_from": peak.begin.isoformat() if peak and peak.packing.new_nodes else None,
        "requested": {"cpu_cores": one.requested_cpu, "memory_bytes": one.requested_memory},
        "allocatable": {"cpu_cores": one.allocatable_cpu, "memory_bytes": one.allocatable_memory},
        "windows": [_window(each) for each in one.windows],
        "workloads_without_a_forecast": list(one.unforecast),
    }


def _window(one: PoolWindow) -> dict[str, Any]:
    return {
        "begin": one.begin.isoformat(),
        "until": one.until.isoformat(),
        "requested_cpu_cores": _sum(one.requested_cpu),
        "requested_memory_bytes": _sum(one.requested_memory),
        "used_cpu_cores": _sum(one.used_cpu),
        "used_memory_bytes": _sum(one.used_memory),
        "new_nodes": one.packing.new_nodes,
        "pods_that_no_node_takes": one.packing.unplaced,
        "replicas": dict(one.replicas),
    }


def _sum(one: JointSum) -> dict[str, Any]:
    """The quantile of the sum, between its two extremes; `samples` 0 means that the dependence is assumed."""
    return {
        "value": one.value,
        "if_independent": one.independent,
        "if_all_at_once": one.together,
        "dependence": round(one.dependence, 3),
        "samples": one.samples,
    }


def _pressure(one: Pressure) -> dict[str, Any]:
    return {
        "node": one.node,
        "risk": one.risk,
        "free_bytes": one.free,
        "used_now_bytes": one.used_now,
        "used_median_bytes": one.used_median,
        "used_p95_bytes": one.used_high,
        "evicted_first": list(one.first),
        "pods_without_usage": one.unmeasured,
    }


def metrics_text(ahead: NodeForecast) -> str:
    """Gauges by pool, in the text format of Prometheus; also what the service may add to its own."""
    registry = CollectorRegistry()
    pool_metrics(registry, ahead)
    return generate_latest(registry).decode()


def pool_metrics(registry: CollectorRegistry, ahead: NodeForecast) -> None:
    """`forecaster_node_pool_*`: labels are the pool and, for what is ahead, the minutes until the window begins."""

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"forecaster_node_pool_{name}", text, ["pool", *labels], registry=registry)

    nodes, needed = gauge("nodes", "Nodes there are."), gauge("nodes_needed", "Nodes at the forecast peak of a day.")
    placeholders = gauge("headroom_replicas", "Placeholder pods that keep the coming load warm.")
    ahead_of = {
        "requested_cpu_cores": gauge("requested_cpu_cores", "Requests ahead, quantile of the sum.", "ahead_minutes"),
        "requested_memory_bytes": gauge("requested_memory_bytes", "Requests ahead.", "ahead_minutes"),
        "used_cpu_cores": gauge("used_cpu_cores", "Usage ahead.", "ahead_minutes"),
        "used_memory_bytes": gauge("used_memory_bytes", "Usage ahead.", "ahead_minutes"),
    }
    for one in ahead.pools:
        nodes.labels(one.pool.name).set(len(one.pool.nodes))
        needed.labels(one.pool.name).set(one.nodes_needed)
        for window in one.windows:
            minutes = str(int((window.begin - ahead.at).total_seconds()) // 60)
            for name, value in _amounts(window).items():
                ahead_of[name].labels(one.pool.name, minutes).set(value)
    for wanted in ahead.headroom:
        placeholders.labels(wanted.pool).set(wanted.replicas)


def _amounts(window: PoolWindow) -> dict[str, float]:
    return {
        "requested_cpu_cores": window.requested_cpu.value,
        "requested_memory_bytes": window.requested_memory.value,
        "used_cpu_cores": window.used_cpu.value,
        "used_memory_bytes": window.used_memory.value,
    }

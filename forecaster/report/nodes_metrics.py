"""Node pools ahead of time as gauges of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge, generate_latest

if TYPE_CHECKING:
    from forecaster.cycle.node_forecast import NodeForecast
    from forecaster.vertical.nodes.forecast import PoolWindow


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

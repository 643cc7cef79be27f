"""Node load ahead of time in the JSON of load-watcher, which load-aware scheduler plugins (Trimaran) read.

`GET /watcher` answers with percentages of a node's capacity: `AVG` and `STD` by type `CPU` and `Memory`. Here they are
the mean and the standard deviation of the forecast for the coming window. The window that is stated ends now, not at
the end of the forecast: the plugins add what they have scheduled since that end by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.vertical.cluster_rules.resource_list import CPU_RESOURCE, MEMORY_RESOURCE, MILLI

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from forecaster.vertical.cluster_rules.node import Node, Resident
    from forecaster.vertical.nodes.joint_samples import DemandWindow, Floats

DURATION = "15m"
SOURCE = "forecaster"
_QUARTER_HOUR = 15 * 60


def watcher_metrics(
    nodes: Sequence[Node],
    residents: Iterable[Resident],
    now: tuple[Mapping[str, float], Mapping[str, float]],
    ahead: DemandWindow,
    at: datetime,
) -> dict[str, Any]:
    """The whole answer. `now` is each workload's total of cores and of bytes.

    A node's load is the sum over its pods of their part of their workload's forecast, in equal parts for CPU, and in
    proportion to their own use for memory. Nodes without any measured pod are left out: what is not known is not 0.
    """
    here: dict[str, list[Resident]] = {}
    pods: dict[str, int] = {}
    for one in residents:
        here.setdefault(one.node, []).append(one)
        pods[one.workload] = pods.get(one.workload, 0) + 1
    loads = {node.name: _metrics(node, here.get(node.name, []), pods, now, ahead) for node in nodes}
    end = int(at.timestamp())
    return {
        "timestamp": end,
        "window": {"duration": DURATION, "start": end - _QUARTER_HOUR, "end": end},
        "source": SOURCE,
        "data": {"NodeMetricsMap": {name: _node(metrics) for name, metrics in loads.items() if metrics}},
    }


def _node(metrics: list[dict[str, Any]]) -> dict[str, Any]:
    return {"metrics": metrics, "tags": {}, "metadata": {"dataCenter": ""}}


def _metrics(
    node: Node,
    residents: Sequence[Resident],
    pods: Mapping[str, int],
    now: tuple[Mapping[str, float], Mapping[str, float]],
    ahead: DemandWindow,
) -> list[dict[str, Any]]:
    cores, bytes_ = now
    rows = ahead.rows
    cpu = [ahead.cpu[rows[one.workload]] / pods[one.workload] for one in residents if one.workload in rows]
    memory = [
        ahead.memory[rows[one.workload]] * (one.memory_bytes / bytes_[one.workload])
        for one in residents
        if one.workload in rows and one.memory_bytes is not None and bytes_.get(one.workload, 0) > 0
    ]
    steady = sum(one.memory_bytes or 0 for one in residents if one.workload not in rows)
    others = [cores.get(one.workload, 0.0) / pods[one.workload] for one in residents if one.workload not in rows]
    return [
        *_pair("CPU", cpu, sum(others), node.scheduler_allocatable.get(CPU_RESOURCE, 0) / MILLI),
        *_pair(
            "Memory",
            memory,
            float(steady),
            float(node.memory_capacity or node.scheduler_allocatable.get(MEMORY_RESOURCE, 0)),
        ),
    ]


def _pair(kind: str, parts: Sequence[Floats], steady: float, capacity: float) -> list[dict[str, Any]]:
    if not parts or capacity <= 0:
        return []
    total = np.sum(parts, axis=0) + steady
    return [
        _metric(kind, "AVG", float(total.mean()) / capacity),
        _metric(kind, "STD", float(total.std()) / capacity),
    ]


def _metric(kind: str, operator: str, ratio: float) -> dict[str, Any]:
    """Percent, as the format has it; never more than all of it."""
    value = round(min(ratio, 1.0) * 100, 3)
    name = f"forecaster_node_{kind.lower()}_ahead"
    return {"name": name, "type": kind, "operator": operator, "rollup": DURATION, "value": value}

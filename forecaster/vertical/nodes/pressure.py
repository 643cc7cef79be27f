"""Whether a node will run short of memory, and which pods would be evicted first (§6.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.vertical.cluster_rules.memory_pressure import MemoryUser, eviction_order
from forecaster.vertical.cluster_rules.resource_list import MEMORY_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.vertical.cluster_rules.node import Node, Resident
    from forecaster.vertical.nodes.forecast import DemandWindow
    from forecaster.vertical.nodes.joint_samples import Floats

THRESHOLD = 100 * 2**20
"""The kubelet's default hard threshold: memory.available < 100Mi."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Pressure:
    """One node in one window; bytes."""

    node: str
    free: int
    """What may be used before the kubelet evicts."""
    used_now: float
    used_median: float
    used_high: float
    """95 % quantile."""
    risk: float
    """Share of the joint samples in which that is exceeded."""
    first: tuple[str, ...]
    """Pods in the order in which they would go, at their forecast usage."""
    unmeasured: int = 0
    """Pods of unknown usage; they are not counted."""


def pressures(
    nodes: Sequence[Node], residents: Iterable[Resident], now: Mapping[str, float], ahead: DemandWindow
) -> list[Pressure]:
    """Every node, the most endangered first.

    `now` is each workload's total memory in bytes. A pod is taken to grow as its workload does, and to stay where it
    is. Nodes without a measured pod are left out.
    """
    growth = _growth(now, ahead)
    here: dict[str, list[Resident]] = {}
    for one in residents:
        here.setdefault(one.node, []).append(one)
    found = [_pressure(node, here.get(node.name, []), growth, ahead) for node in nodes]
    return sorted(
        (one for one in found if one), key=lambda one: (-one.risk, -one.used_high / max(one.free, 1), one.node)
    )


def _growth(now: Mapping[str, float], ahead: DemandWindow) -> dict[str, Floats]:
    """Forecast total over today's, by workload: [sample]."""
    return {
        workload: ahead.memory[i] / now[workload]
        for i, workload in enumerate(ahead.workloads)
        if now.get(workload, 0) > 0
    }


def _pressure(
    node: Node, residents: Sequence[Resident], growth: Mapping[str, Floats], ahead: DemandWindow
) -> Pressure | None:
    measured = [one for one in residents if one.memory_bytes is not None]
    free = (node.memory_capacity or node.scheduler_allocatable.get(MEMORY_RESOURCE, 0)) - THRESHOLD
    if not measured or free <= 0:
        return None
    steady = np.ones(ahead.memory.shape[1])
    used = np.array([(one.memory_bytes or 0) * growth.get(one.workload, steady) for one in measured])
    total = used.sum(axis=0)
    high = np.quantile(used, 0.95, axis=1)
    users = [
        MemoryUser(one.name, int(usage), one.requests.get(MEMORY_RESOURCE, 0), one.priority)
        for one, usage in zip(measured, high, strict=True)
    ]
    return Pressure(
        node=node.name,
        free=free,
        used_now=float(sum(one.memory_bytes or 0 for one in measured)),
        used_median=float(np.quantile(total, 0.5)),
        used_high=float(np.quantile(total, 0.95)),
        risk=float(np.mean(total > free)),
        first=tuple(user.name for user in eviction_order(users)[:_SHOWN]),
        unmeasured=len(residents) - len(measured),
    )

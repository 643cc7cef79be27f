"""Headroom and pressure of node pools.

Headroom pods: pods of low priority that do nothing and that keep the capacity of the coming peak warm.

They ask for nodes now; when real pods come they are preempted, which takes seconds, and not a node's start.

Pressure: whether a node will run short of memory, and which pods would be evicted first (§6.5).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

import numpy as np

from forecaster.domain.amounts import counted
from forecaster.domain.workload import GIB
from forecaster.vertical.admission.cluster import HEADROOM
from forecaster.vertical.cluster_rules.node import Node, Resident
from forecaster.vertical.cluster_rules.qos import MemoryUser, eviction_order
from forecaster.vertical.cluster_rules.resource_list import MEMORY_RESOURCE, MILLI, text_of
from forecaster.vertical.nodes.forecast import PoolForecast
from forecaster.vertical.nodes.joint_samples import DemandWindow, Floats
from forecaster.vertical.nodes.pools import Pool

PRIORITY_CLASS = HEADROOM
PRIORITY = -10
"""Below the default priority of pods, and still high enough for the cluster autoscaler to add nodes (its default
`--expendable-pods-priority-cutoff` is -10)."""
_UNIT_CPU, _UNIT_MEMORY = 0.1, 64 * 2**20
LABEL_MAX = 63
"""Longest value of a label."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """Placeholders of one size and their number, which may be 0; CPU in cores, memory in bytes."""

    pool: str
    replicas: int
    cpu: float
    memory: float
    until: datetime | None
    reason: str


def headroom(forecast: PoolForecast, before: datetime) -> Headroom:
    """Return the growth of requests, over the present ones and waiting pods, in windows that begin until `before`.

    One placeholder is as large as the largest pod that may come, so that any of them fits in its place.
    """
    near = [window for window in forecast.windows if window.begin <= before]
    cpu = max((window.unasked_cpu - forecast.requested_cpu for window in near), default=0.0)
    memory = max((window.unasked_memory - forecast.requested_memory for window in near), default=0.0)
    growing = [
        member for member in forecast.members if any(w.replicas[member.workload] > member.replicas for w in near)
    ]
    if not growing or max(cpu, memory) <= 0:
        return Headroom(forecast.pool.name, 0, 0.0, 0.0, None, "no window ahead requests more than is requested now")
    size_cpu = _rounded(max(member.cpu for member in growing), _UNIT_CPU)
    size_memory = _rounded(max(member.memory for member in growing), _UNIT_MEMORY)
    count = max(_count(cpu, size_cpu), _count(memory, size_memory))
    grown = f"{max(cpu, 0):.1f} cores and {max(memory, 0) / GIB:.1f} GiB of requests"
    reason = f"{counted(len(growing), 'workload')} {'grows' if len(growing) == 1 else 'grow'} by {grown}"
    return Headroom(forecast.pool.name, count, size_cpu, size_memory, max(window.until for window in near), reason)


def _count(total: float, size: float) -> int:
    return math.ceil(total / size - 1e-9) if total > 0 and size > 0 else 0


def _rounded(value: float, unit: float) -> float:
    return math.ceil(value / unit - 1e-9) * unit


def manifests(placeholders: Headroom, pool: Pool, image: str, namespace: str = "forecaster") -> list[dict[str, Any]]:
    """The priority class and the Deployment of one pool; apply them, and scale the Deployment as it is renewed."""
    name, labels = _name_and_labels(placeholders)
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": PRIORITY_CLASS},
            "value": PRIORITY,
            "preemptionPolicy": "Never",
            "globalDefault": False,
            "description": "Placeholders that keep capacity warm; every other pod displaces them.",
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {
                "replicas": placeholders.replicas,
                "selector": {"matchLabels": labels},
                "strategy": {"type": "Recreate"},
                "template": {"metadata": {"labels": labels}, "spec": _pod(placeholders, pool, image)},
            },
        },
    ]


BUFFER_VERSION = "autoscaling.x-k8s.io/v1beta1"
NOTHING_RUNS = "headroom"
"""Image of a buffer's template: an autoscaler counts its pods and starts none, but a template has to name one."""


def buffers(placeholders: Headroom, pool: Pool, namespace: str = "forecaster") -> list[dict[str, Any]]:
    """The PodTemplate and the CapacityBuffer of one pool, for an autoscaler that keeps spare capacity by itself."""
    name, labels = _name_and_labels(placeholders)

    def described() -> dict[str, Any]:
        return {"name": name, "namespace": namespace, "labels": dict(labels)}

    pod = {"metadata": {"labels": labels}, "spec": _shape(placeholders, pool, NOTHING_RUNS)}
    spec = {"podTemplateRef": {"name": name}, "replicas": placeholders.replicas}
    return [
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": described(), "template": pod},
        {"apiVersion": BUFFER_VERSION, "kind": "CapacityBuffer", "metadata": described(), "spec": spec},
    ]


def _name_and_labels(placeholders: Headroom) -> tuple[str, dict[str, str]]:
    label = _label(placeholders.pool)
    return f"{HEADROOM}-{label}", {"app.kubernetes.io/name": HEADROOM, "forecaster/pool": label}


def _pod(placeholders: Headroom, pool: Pool, image: str) -> dict[str, Any]:
    """Specification of a pod that runs, and that every other pod displaces."""
    return {
        "priorityClassName": PRIORITY_CLASS,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        **_shape(placeholders, pool, image),
    }


def _shape(placeholders: Headroom, pool: Pool, image: str) -> dict[str, Any]:
    """Requests of a placeholder, and the nodes that it fits on."""
    cpu, memory = round(placeholders.cpu * MILLI), round(placeholders.memory) * MILLI
    resources = {"requests": {"cpu": text_of(cpu, "cpu"), "memory": text_of(memory, "memory")}}
    shape: dict[str, Any] = {"containers": [{"name": "headroom", "image": image, "resources": resources}]}
    if pool.label:
        shape["nodeSelector"] = {pool.label: pool.template.labels[pool.label]}
    if taints := [taint for taint in pool.template.taints if taint.effect != "PreferNoSchedule"]:
        shape["tolerations"] = [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect} for taint in taints
        ]
    return shape


def _label(name: str) -> str:
    """Return a pool's name as part of an object's name and as a label; a long one ends in a digest of the name."""
    label = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name.lower()).strip("-")
    if len(label) > LABEL_MAX:
        digest = sha256(name.encode()).hexdigest()[:8]
        label = f"{label[: LABEL_MAX - 9].strip('-')}-{digest}"
    return label or "pool"


THRESHOLD = 100 * 2**20
"""The kubelet's default hard threshold: memory.available < 100Mi."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Pressure:
    """One node in one window; bytes."""

    node: str
    free: int
    """Bytes that may be used before the kubelet evicts."""
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
    nodes: Sequence[Node], residents: Iterable[Resident], now: Mapping[str, float], demand: DemandWindow
) -> list[Pressure]:
    """Every node, the most endangered first.

    `now` is each workload's total memory in bytes. A pod is taken to grow as its workload does, and to stay where it
    is. Nodes without a measured pod are left out.
    """
    growth = _growth(now, demand)
    by_node: dict[str, list[Resident]] = {}
    for resident in residents:
        by_node.setdefault(resident.node, []).append(resident)
    known_pressures = [_pressure(node, by_node.get(node.name, []), growth, demand) for node in nodes]
    return sorted(
        (pressure for pressure in known_pressures if pressure),
        key=lambda pressure: (-pressure.risk, -pressure.used_high / max(pressure.free, 1), pressure.node),
    )


def _growth(now: Mapping[str, float], demand: DemandWindow) -> dict[str, Floats]:
    """Forecast total over today's, by workload: [sample]."""
    return {
        workload: demand.memory[i] / now[workload]
        for i, workload in enumerate(demand.workloads)
        if now.get(workload, 0) > 0
    }


def _pressure(
    node: Node, residents: Sequence[Resident], growth: Mapping[str, Floats], demand: DemandWindow
) -> Pressure | None:
    measured = [resident for resident in residents if resident.memory_bytes is not None]
    free = (node.memory_capacity or node.scheduler_allocatable.get(MEMORY_RESOURCE, 0)) - THRESHOLD
    if not measured or free <= 0:
        return None
    steady = np.ones(demand.memory.shape[1])
    used = np.array([(resident.memory_bytes or 0) * growth.get(resident.workload, steady) for resident in measured])
    total = used.sum(axis=0)
    high = np.quantile(used, 0.95, axis=1)
    users = [
        MemoryUser(resident.name, int(usage), resident.requests.get(MEMORY_RESOURCE, 0), resident.priority)
        for resident, usage in zip(measured, high, strict=True)
    ]
    return Pressure(
        node=node.name,
        free=free,
        used_now=float(sum(resident.memory_bytes or 0 for resident in measured)),
        used_median=float(np.quantile(total, 0.5)),
        used_high=float(np.quantile(total, 0.95)),
        risk=float(np.mean(total > free)),
        first=tuple(user.name for user in eviction_order(users)[:_SHOWN]),
        unmeasured=len(residents) - len(measured),
    )

"""Headroom pods: pods of low priority that do nothing and that keep the capacity of the coming peak warm.

They ask for nodes now; when real pods come they are preempted, which takes seconds, and not a node's start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forecaster.vertical.admission.cluster import HEADROOM
from forecaster.vertical.cluster_rules.resource_list import MILLI, text_of

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.vertical.nodes.forecast import PoolForecast
    from forecaster.vertical.nodes.pools import Pool

PRIORITY_CLASS = HEADROOM
PRIORITY = -10
"""Below every pod that states none, and not below what the cluster autoscaler still adds nodes for (its default
`--expendable-pods-priority-cutoff` is -10)."""
_UNIT_CPU, _UNIT_MEMORY = 0.1, 64 * 2**20


@dataclass(frozen=True, slots=True)
class Headroom:
    """So many placeholders of one size; CPU in cores, memory in bytes. None at all is an answer, too."""

    pool: str
    replicas: int
    cpu: float
    memory: float
    until: datetime | None
    reason: str


def headroom(ahead: PoolForecast, before: datetime) -> Headroom:
    """What windows that begin until `before` will request beyond what is requested now.

    One of them is as large as the largest pod that may come, so that any of them fits where it stood.
    """
    near = [one for one in ahead.windows if one.begin <= before]
    cpu = max((one.requested_cpu.value - ahead.requested_cpu for one in near), default=0.0)
    memory = max((one.requested_memory.value - ahead.requested_memory for one in near), default=0.0)
    growing = [one for one in ahead.members if any(w.replicas[one.workload] > one.replicas for w in near)]
    if not growing or max(cpu, memory) <= 0:
        return Headroom(ahead.pool.name, 0, 0.0, 0.0, None, "no window ahead requests more than is requested now")
    size_cpu = _rounded(max(one.cpu for one in growing), _UNIT_CPU)
    size_memory = _rounded(max(one.memory for one in growing), _UNIT_MEMORY)
    count = max(_count(cpu, size_cpu), _count(memory, size_memory))
    said = f"{len(growing)} workloads grow by {max(cpu, 0):.1f} cores and {max(memory, 0) / 2**30:.1f} GiB of requests"
    return Headroom(ahead.pool.name, count, size_cpu, size_memory, max(one.until for one in near), said)


def _count(total: float, size: float) -> int:
    return math.ceil(total / size - 1e-9) if total > 0 and size > 0 else 0


def _rounded(value: float, unit: float) -> float:
    return math.ceil(value / unit - 1e-9) * unit


def manifests(placeholders: Headroom, pool: Pool, image: str, namespace: str = "forecaster") -> list[dict[str, Any]]:
    """The priority class and the Deployment of one pool; apply them, and scale the Deployment as it is renewed."""
    name = f"{HEADROOM}-{_label(placeholders.pool)}"
    labels = {"app.kubernetes.io/name": HEADROOM, "forecaster/pool": _label(placeholders.pool)}
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


def _pod(placeholders: Headroom, pool: Pool, image: str) -> dict[str, Any]:
    cpu, memory = round(placeholders.cpu * MILLI), round(placeholders.memory) * MILLI
    resources = {"requests": {"cpu": text_of(cpu, "cpu"), "memory": text_of(memory, "memory")}}
    taints = [taint for taint in pool.template.taints if taint.effect != "PreferNoSchedule"]
    return {
        "priorityClassName": PRIORITY_CLASS,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        **({"nodeSelector": {pool.label: pool.name}} if pool.label else {}),
        **(
            {
                "tolerations": [
                    {"key": one.key, "operator": "Equal", "value": one.value, "effect": one.effect} for one in taints
                ]
            }
            if taints
            else {}
        ),
        "containers": [{"name": "headroom", "image": image, "resources": resources}],
    }


def _label(name: str) -> str:
    """A pool's name as part of an object's name."""
    kept = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name.lower()).strip("-")
    return kept[:40].strip("-") or "pool"

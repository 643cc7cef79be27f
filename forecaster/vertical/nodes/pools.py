"""Node pools, the workloads on them, and how many more nodes a pool needs for more pods."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from forecaster.vertical.cluster_rules.node import HOSTNAME, POOL_LABELS, Node, Occupancy, Resident, scheduled
from forecaster.vertical.cluster_rules.node_fit import Placing
from forecaster.vertical.cluster_rules.pod import Pod, pod_requests
from forecaster.vertical.cluster_rules.resource_list import CPU_RESOURCE, MEMORY_RESOURCE, MILLI
from forecaster.vertical.cluster_rules.server import Server
from forecaster.vertical.nodes.joint_samples import Floats

UNNAMED = "nodes"
MAX_NEW_NODES = 1000


@dataclass(frozen=True, slots=True)
class Member:
    """One workload of a pool."""

    workload: str
    """Path of the workload: namespace, kind and name."""
    pod: Pod
    replicas: int
    per_pod: float | None = None
    """Cores of demand that one pod carries when its autoscaler is content; None: the count does not follow demand."""
    min_replicas: int = 1
    max_replicas: int | None = None

    @property
    def cpu(self) -> float:
        """Cores that one pod requests."""
        return self._request(CPU_RESOURCE) / MILLI

    @property
    def memory(self) -> float:
        """Bytes that one pod requests."""
        return float(self._request(MEMORY_RESOURCE))

    def replicas_for(self, demand: Floats) -> Floats:
        """Return the pods for each total demand of CPU in cores: the count of its autoscaler, within its bounds.

        An HPA lets a workload without replicas be, so its minimum does not count there.
        """
        if self.per_pod is None or self.per_pod <= 0:
            return np.full(demand.shape, float(self.replicas))
        highest = math.inf if self.max_replicas is None else self.max_replicas
        # A sliver above a whole pod is the rounding of a quotient, not a reason for one more.
        return np.clip(np.ceil(demand / self.per_pod - 1e-9), self.min_replicas if self.replicas else 0, highest)

    def _request(self, name: str) -> int:
        return scheduled(pod_requests(self.pod)).get(name, 0)


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one kind, and the label that says so."""

    name: str
    label: str
    nodes: tuple[Node, ...]

    @property
    def template(self) -> Node:
        """Template of one more node: the largest present one, since a pool grows by nodes of its kind."""
        return max(self.nodes, key=lambda node: (node.scheduler_allocatable.get(CPU_RESOURCE, 0), node.name))


def pools_of(nodes: Iterable[Node]) -> list[Pool]:
    """Return every pool, by name; nodes without any of these labels are one pool of their own.

    Where pools of two labels have the same value, their names contain the label, too, because names identify pools.
    """
    nodes_by_label: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        label = next((candidate for candidate in POOL_LABELS if candidate in node.labels), "")
        nodes_by_label.setdefault((node.labels.get(label, UNNAMED), label), []).append(node)
    alike = Counter(value for value, _ in nodes_by_label)
    return [
        Pool(f"{label}={value}" if label and alike[value] > 1 else value, label, tuple(members))
        for (value, label), members in sorted(nodes_by_label.items())
    ]


def homes_of(residents: Iterable[Resident], pools: Iterable[Pool]) -> dict[str, str]:
    """Return the pool of most pods by workload; absent where none of them is on a known node."""
    pool_of = {node.name: pool.name for pool in pools for node in pool.nodes}
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for resident in residents:
        if resident.node in pool_of:
            counted[resident.workload][pool_of[resident.node]] += 1
    return {workload: max(sorted(pods), key=pods.__getitem__) for workload, pods in counted.items()}


@dataclass(frozen=True, slots=True)
class Packing:
    """Result of adding pods to a pool."""

    new_nodes: int
    unplaced: int = 0
    """Pods that not even a new node takes."""


def pack(pool: Pool, growth: Iterable[tuple[Member, int]], residents: Sequence[Resident], server: Server) -> Packing:
    """Return the nodes to add for `growth` more pods of each member, the largest pods first.

    New nodes are like the pool's template, with the daemons of that node on them.
    """
    growing = _GrowingPool(pool, residents, server)
    unplaced = 0
    for member, more in sorted(growth, key=lambda growing: (-growing[0].cpu, -growing[0].memory, growing[0].workload)):
        unplaced += growing.place(member, more)
    return Packing(growing.added, unplaced)


class _GrowingPool:
    """The pool while it grows."""

    def __init__(self, pool: Pool, residents: Iterable[Resident], server: Server) -> None:
        self.name = pool.name
        self.template = pool.template
        self.server = server
        self.occupancy = Occupancy(pool.nodes, residents)
        self.added = 0
        self.daemons = self.occupancy.daemons(self.template.name)

    def place(self, member: Member, count: int) -> int:
        """Place `count` pods; return how many find no node, however many nodes are added."""
        placing = Placing(member.pod, self.occupancy, self.server)
        left = count - self._fitted(placing, member, count)
        while left > 0 and self.added < MAX_NEW_NODES:
            node = self._another()
            placing.add_node(node)
            placed = self._fitted(placing, member, left)
            if not placed:
                self.occupancy.remove_node(node)
                break
            self.added += 1
            left -= placed
        return left

    def _another(self) -> Node:
        """Add one node with its daemons."""
        name = f"new-{self.name}-{self.added + 1}"
        labels = {**self.template.labels, HOSTNAME: name}
        node = replace(self.template, name=name, labels=labels, unschedulable=False)
        self.occupancy.add_node(node)
        for daemon in self.daemons:
            self.occupancy.add(replace(daemon, node=name))
        return node

    def _fitted(self, placing: Placing, member: Member, count: int) -> int:
        fit = placing.fit(count)
        resident = replace(Resident.of(member.pod, "", self.server), workload=member.workload)
        for name, pods in fit.placed.items():
            for _ in range(pods):
                self.occupancy.add(replace(resident, node=name))
        return fit.count

"""Nodes as the scheduler's filters see them, and the pods on them, indexed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from forecaster.vertical.cluster_rules.placement import ANYWHERE, Placement, Taint
from forecaster.vertical.cluster_rules.pod import Pod, pod_requests
from forecaster.vertical.cluster_rules.resource_list import CPU_RESOURCE, NO_AMOUNTS, Amounts, added, whole
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server

POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "node.kubernetes.io/instance-type",
)
"""Labels that identify node pools, the most specific first."""
HOSTNAME = "kubernetes.io/hostname"
"""Label that identifies one node among nodes of a kind."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node; allocatable in milli-units."""

    name: str
    allocatable: Amounts = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    memory_capacity: int | None = None
    """Bytes of memory it has in all; None where only allocatable is known."""

    scheduler_allocatable: Amounts = field(init=False, repr=False, compare=False)
    """Allocatable as the scheduler counts: cpu in thousandths, everything else in whole units."""

    def __post_init__(self) -> None:
        """Count once: it is read for each pod."""
        object.__setattr__(self, "scheduler_allocatable", scheduled(self.allocatable))


@dataclass(frozen=True, slots=True)
class Resident:
    """A pod on a node: its requests, and the fields that filters of other pods read."""

    node: str
    requests: Amounts = field(default_factory=dict)
    """Requests as the scheduler counts: cpu in thousandths, everything else in whole units."""
    placement: Placement = ANYWHERE
    priority: int = 0
    workload: str = ""
    """Path of the owner of the pod: namespace, kind and name."""
    daemon: bool = False
    """Whether every node of its kind runs one."""
    memory_bytes: int | None = None
    """Bytes that it uses; None where they are not measured."""
    name: str = ""

    @classmethod
    def of(cls, pod: Pod, node: str, server: Server = LATEST_SERVER) -> Resident:
        """A pod on this node."""
        return cls(node, scheduled(pod_requests(pod, server, status=True)), pod.placement, pod.priority)


def scheduled(amounts: Amounts) -> dict[str, int]:
    """Amounts in milli-units as the scheduler counts them: each rounded up to its own unit."""
    return {name: milli if name == CPU_RESOURCE else whole(milli) for name, milli in amounts.items()}


class Occupancy:
    """Nodes and the pods on them. Amounts are in the scheduler's units.

    `without` names a workload; its pods are left out.
    """

    def __init__(self, nodes: Iterable[Node] = (), residents: Iterable[Resident] = ()) -> None:
        self.nodes: list[Node] = []
        self.by_name: dict[str, Node] = {}
        self.repelling: list[Resident] = []
        """Residents with a required pod anti-affinity."""
        self.reaching: list[Resident] = []
        """Residents with an affinity term that names other namespaces."""
        self._on: dict[str, list[Resident]] = defaultdict(list)
        self._of: dict[str, dict[str, list[Resident]]] = defaultdict(lambda: defaultdict(list))
        self._in: dict[str, list[Resident]] = defaultdict(list)
        self._taken: dict[str, dict[str, int]] = defaultdict(dict)
        self._kinds: list[Node] | None = None
        for node in nodes:
            self.add_node(node)
        for resident in residents:
            self.add(resident)

    def add_node(self, node: Node) -> None:
        """One more node."""
        self.nodes.append(node)
        self.by_name[node.name] = node
        self._kinds = None

    def remove_node(self, node: Node) -> None:
        """The node and the pods on it are gone."""
        for resident in self._on.pop(node.name, ()):
            self._in[resident.placement.namespace].remove(resident)
            self._of[resident.workload].pop(node.name, None)
        for index in (self.repelling, self.reaching):
            index[:] = [resident for resident in index if resident.node != node.name]
        self._taken.pop(node.name, None)
        self.nodes.remove(node)
        del self.by_name[node.name]
        self._kinds = None

    def add(self, resident: Resident) -> None:
        """One more pod."""
        self._on[resident.node].append(resident)
        self._of[resident.workload][resident.node].append(resident)
        self._in[resident.placement.namespace].append(resident)
        if resident.placement.pod_anti_affinity:
            self.repelling.append(resident)
            if any(term.namespaces is not None for term in resident.placement.pod_anti_affinity):
                self.reaching.append(resident)
        taken = self._taken[resident.node]
        for name, amount in resident.requests.items():
            taken[name] = taken.get(name, 0) + amount

    def residents(self) -> Iterable[Resident]:
        """All residents, node by node."""
        return (resident for on_node in self._on.values() for resident in on_node)

    def on(self, node: str, without: str = "") -> Sequence[Resident]:
        """Pods on a node."""
        residents = self._on.get(node, [])
        return [resident for resident in residents if resident.workload != without] if without else residents

    def of(self, workload: str) -> Mapping[str, Sequence[Resident]]:
        """Pods of a workload by node."""
        return self._of.get(workload, {}) if workload else {}

    def in_namespace(self, namespace: str, without: str = "") -> Sequence[Resident]:
        """Pods of a namespace."""
        return [resident for resident in self._in.get(namespace, []) if not without or resident.workload != without]

    def taken(self, node: str, without: str = "") -> Amounts:
        """Sum of the requests of the pods on a node."""
        taken = self._taken.get(node, NO_AMOUNTS)
        own = added(*(resident.requests for resident in self.of(without).get(node, ())))
        return {name: amount - own.get(name, 0) for name, amount in taken.items()} if own else taken

    def pods(self, node: str, without: str = "") -> int:
        """Number of pods on a node."""
        return len(self._on.get(node, ())) - len(self.of(without).get(node, ()))

    def daemons(self, node: str) -> list[Resident]:
        """Pods that every node of a kind carries."""
        return [resident for resident in self._on.get(node, ()) if resident.daemon]

    @property
    def kinds(self) -> list[Node]:
        """One node of each kind: equal allocatable, taints, labels but the host's name, and daemons."""
        if self._kinds is None:
            nodes_by_kind: dict[object, Node] = {}
            for node in self.nodes:
                nodes_by_kind.setdefault(self._kind(node), node)
            self._kinds = list(nodes_by_kind.values())
        return self._kinds

    def _kind(self, node: Node) -> object:
        labels = frozenset((key, value) for key, value in node.labels.items() if key != HOSTNAME)
        daemons = added(*(resident.requests for resident in self.daemons(node.name)))
        return (frozenset(node.allocatable.items()), node.taints, labels, frozenset(daemons.items()))

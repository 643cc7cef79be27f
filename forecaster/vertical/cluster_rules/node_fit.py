"""How many pods the nodes can take, what stops the next one, and what it could preempt (§6.13)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.vertical.cluster_rules.node import Node, Occupancy, Resident, scheduled
from forecaster.vertical.cluster_rules.node_filters import PodAffinity, admits, spread_counts, tolerates, untolerated
from forecaster.vertical.cluster_rules.placement import Placement, Taint
from forecaster.vertical.cluster_rules.pod import Pod, pod_requests
from forecaster.vertical.cluster_rules.resource_list import Amounts, added
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forecaster.vertical.cluster_rules.node_filters import SpreadCount

_PODS = "pods"
CORDONED = Taint("node.kubernetes.io/unschedulable")
SPREAD, NEIGHBOURS = "topology spread", "pod affinity"


@dataclass(frozen=True, slots=True)
class Fit:
    """How many pods were placed where, and, if not all were, how many nodes each filter turned down."""

    placed: Mapping[str, int]
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Pods that found a node."""
        return sum(self.placed.values())


def fit(pod: Pod, count: int, occupancy: Occupancy, server: Server = LATEST_SERVER, *, without: str = "") -> Fit:
    """Rules §6.13: place up to `count` pods, each on the first node of the list that passes every filter.

    `pod` is defaulted; pods of the workload `without` are left out, and so are the scheduler's scores: they choose
    among nodes that pass, here the order does. `occupancy` stays as it is.
    """
    request = scheduled(pod_requests(pod, server))
    placement = pod.placement
    if placement.spread or placement.pod_affinity or placement.pod_anti_affinity or occupancy.repelling:
        return _one_by_one(_Placing.of(pod, request, occupancy, without), count)
    return _node_by_node(pod, count, request, occupancy, without)


def _node_by_node(pod: Pod, count: int, request: Amounts, occupancy: Occupancy, without: str) -> Fit:
    """Fill each node before the next, where no filter reads other pods."""
    placed: Counter[str] = Counter()
    turned_down: Counter[str] = Counter()
    left = count
    for node in occupancy.nodes:
        if not left:
            break
        why, places = _places(node, pod, request, occupancy, without)
        if why:
            turned_down[why] += 1
            continue
        placed[node.name] = min(places, left)
        turned_down["full"] += places <= left
        left -= placed[node.name]
    return Fit(placed, +turned_down if left else {})


def _one_by_one(placing: _Placing, count: int) -> Fit:
    placed: Counter[str] = Counter()
    for _ in range(count):
        node = placing.first_that_passes()
        if node is None:
            return Fit(placed, placing.refusals())
        placing.place(node)
        placed[node.name] += 1
    return Fit(placed)


def _places(node: Node, pod: Pod, request: Amounts, occupancy: Occupancy, without: str) -> tuple[str, int]:
    """Why a node takes none, or how many it takes."""
    if why := node_refuses(node, pod.placement):
        return why, 0
    taken, pods = occupancy.taken(node.name, without), occupancy.pods(node.name, without)
    return scarcest(node.scheduler_allocatable, taken, pods, request), places_left(
        node.scheduler_allocatable, taken, pods, request
    )


def node_refuses(node: Node, placement: Placement) -> str:
    """Which filter of those that do not depend on other pods turns a node down; empty if none does."""
    if node.unschedulable and not any(tolerates(one, CORDONED) for one in placement.tolerations):
        return "unschedulable"
    if taint := untolerated(node.taints, placement.tolerations):
        return f"taint {taint.key}"
    return "" if admits(placement, node.labels, node.name) else "node selector or affinity"


def places_left(allocatable: Amounts, taken: Amounts, pods: int, request: Amounts) -> int:
    """How many pods with this request still fit on a node, by resources; all in the scheduler's units.

    A request of zero fits anywhere, even where a node is overcommitted.
    """
    free = [allocatable.get(_PODS, 0) - pods]
    free += [(allocatable.get(name, 0) - taken.get(name, 0)) // amount for name, amount in request.items() if amount]
    return max(min(free), 0)


def scarcest(allocatable: Amounts, taken: Amounts, pods: int, request: Amounts) -> str:
    """The resource that stops the next pod; empty if none does."""
    if allocatable.get(_PODS, 0) <= pods:
        return _PODS
    short = [
        name for name, amount in request.items() if amount and taken.get(name, 0) + amount > allocatable.get(name, 0)
    ]
    return f"not enough {short[0]}" if short else ""


@dataclass(slots=True)
class _Placing:
    """The nodes while pods are placed on them one by one, because filters look at the other pods."""

    pod: Pod
    nodes: Sequence[Node]
    places: Callable[[Node], tuple[str, int]]
    spread: list[SpreadCount]
    affinity: PodAffinity
    left: dict[str, int] = field(default_factory=dict)
    """Places on each node that was looked at; most pods find one on the first nodes."""
    turned_down: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, pod: Pod, request: Amounts, occupancy: Occupancy, without: str) -> _Placing:
        return cls(
            pod,
            occupancy.nodes,
            places=lambda node: _places(node, pod, request, occupancy, without),
            spread=spread_counts(pod.placement, occupancy, without),
            affinity=PodAffinity.of(pod.placement, occupancy, without),
        )

    def first_that_passes(self) -> Node | None:
        return next((node for node in self.nodes if self._has_place(node) and not self._refused_by_pods(node)), None)

    def place(self, node: Node) -> None:
        self.left[node.name] -= 1
        self.turned_down["full"] += not self.left[node.name]
        for one in self.spread:
            one.count(node)
        self.affinity.add(self.pod.placement, node)

    def refusals(self) -> Counter[str]:
        return +self.turned_down + Counter(self._refused_by_pods(node) for node in self.nodes if self.left[node.name])

    def _has_place(self, node: Node) -> bool:
        if node.name not in self.left:
            why, self.left[node.name] = self.places(node)
            self.turned_down[why] += bool(why)
        return self.left[node.name] > 0

    def _refused_by_pods(self, node: Node) -> str:
        if not all(one.admits(node) for one in self.spread):
            return SPREAD
        return "" if self.affinity.admits(node) else NEIGHBOURS


@dataclass(frozen=True, slots=True)
class Preemption:
    """One node on which a pod fits once these have left."""

    node: str
    victims: tuple[Resident, ...]


def preemption(pod: Pod, request: Amounts, occupancy: Occupancy) -> Preemption | None:
    """The node that costs least: lowest highest priority, then lowest sum of priorities, then fewest victims.

    `request` is in the scheduler's units. Resources, taints, selector and affinity decide; disruption budgets, spread
    and neighbours are not looked at. None: the pod may not preempt, or no pod of lower priority is in the way.
    """
    if not pod.preempts:
        return None
    found = [one for node in occupancy.nodes if (one := _on(node, pod, request, occupancy.on(node.name)))]
    return min(found, key=_cost, default=None)


def _on(node: Node, pod: Pod, request: Amounts, residents: Sequence[Resident]) -> Preemption | None:
    """Take all pods of lower priority off, then put back those that still fit, the highest priority first."""
    lower = [one for one in residents if one.priority < pod.priority]
    if not lower or node_refuses(node, pod.placement):
        return None
    staying = [one for one in residents if one.priority >= pod.priority]
    if not _takes(node, request, staying):
        return None
    victims = []
    for resident in sorted(lower, key=lambda one: -one.priority):
        if _takes(node, request, [*staying, resident]):
            staying.append(resident)
        else:
            victims.append(resident)
    return Preemption(node.name, tuple(victims)) if victims else None


def _takes(node: Node, request: Amounts, residents: Sequence[Resident]) -> bool:
    allocatable = {_PODS: len(residents) + 1, **node.scheduler_allocatable}
    return places_left(allocatable, added(*(one.requests for one in residents)), len(residents), request) > 0


def _cost(one: Preemption) -> tuple[int, int, int]:
    priorities = [victim.priority for victim in one.victims]
    return max(priorities), sum(priorities), len(priorities)

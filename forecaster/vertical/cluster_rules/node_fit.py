"""Number of pods that the nodes can take, the limit that stops the next one, and the pods it could preempt (§6.13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from forecaster.vertical.cluster_rules.node import Node, Occupancy, Resident, scheduled
from forecaster.vertical.cluster_rules.node_filters import PodAffinity, admits, spread_counts, tolerates, untolerated
from forecaster.vertical.cluster_rules.placement import Placement, Taint
from forecaster.vertical.cluster_rules.pod import Pod, pod_requests
from forecaster.vertical.cluster_rules.resource_list import Amounts, added
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server

_PODS = "pods"
CORDONED = Taint("node.kubernetes.io/unschedulable")
SPREAD, NEIGHBOURS = "topology spread", "pod affinity"


@dataclass(frozen=True, slots=True)
class Fit:
    """Number of pods placed on each node and, if not all were, the number of nodes that each filter excluded."""

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
    return Placing(pod, occupancy, server, without).fit(count)


def node_refuses(node: Node, placement: Placement) -> str:
    """Return the filter that excludes a node, of those that do not depend on other pods; empty if none does."""
    if node.unschedulable and not any(tolerates(toleration, CORDONED) for toleration in placement.tolerations):
        return "unschedulable"
    if taint := untolerated(node.taints, placement.tolerations):
        return f"taint {taint.key}"
    return "" if admits(placement, node.labels, node.name) else "node selector or affinity"


def places_left(allocatable: Amounts, taken: Amounts, pods: int, request: Amounts) -> int:
    """Return the number of further pods with this request that fit on a node, in the scheduler's units.

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


class Placing:
    """The nodes while like pods are placed on them; pods of the workload `without` are left out."""

    def __init__(self, pod: Pod, occupancy: Occupancy, server: Server = LATEST_SERVER, without: str = "") -> None:
        self._placement = pod.placement
        self._request = scheduled(pod_requests(pod, server))
        self._occupancy = occupancy
        self._without = without
        self._spread = spread_counts(pod.placement, occupancy, without)
        self._affinity = PodAffinity.of(pod.placement, occupancy, without)
        self._left: dict[str, int] = {}
        """Places on each node that was looked at; most pods find one on the first nodes."""
        self._turned_down: Counter[str] = Counter()
        self._passed = 0
        """Nodes at the head of the list that take no further pod until a spread constraint allows more."""

    def fit(self, count: int) -> Fit:
        """Place up to `count` more pods."""
        apart = self._spread or self._placement.pod_affinity or self._placement.pod_anti_affinity
        placed: Counter[str] = Counter()
        while count:
            node = self._first_that_passes()
            if node is None:
                return Fit(placed, self._refusals())
            pods = 1 if apart else min(count, self._left[node.name])
            self._place(node, pods)
            placed[node.name] += pods
            count -= pods
        return Fit(placed)

    def add_node(self, node: Node) -> None:
        """Look at a node, too, that was added to the occupancy."""
        for resident in self._occupancy.on(node.name):
            self._affinity.add(resident.placement, node)
        if self._spread:
            self._spread = spread_counts(self._placement, self._occupancy, self._without)
            self._passed = 0

    def _first_that_passes(self) -> Node | None:
        while self._passed < len(self._occupancy.nodes):
            node = self._occupancy.nodes[self._passed]
            if self._has_place(node) and not self._refused_by_pods(node):
                return node
            self._passed += 1
        return None

    def _place(self, node: Node, pods: int) -> None:
        self._left[node.name] -= pods
        self._turned_down["full"] += not self._left[node.name]
        admits_more = [spread.count(node) for spread in self._spread]
        if any(admits_more):
            self._passed = 0
        self._affinity.add(self._placement, node)

    def _refusals(self) -> Counter[str]:
        there = [node for node in self._occupancy.nodes if self._left[node.name]]
        return +self._turned_down + Counter(self._refused_by_pods(node) for node in there)

    def _has_place(self, node: Node) -> bool:
        if node.name not in self._left:
            why, self._left[node.name] = self._places(node)
            self._turned_down[why] += bool(why)
        return self._left[node.name] > 0

    def _places(self, node: Node) -> tuple[str, int]:
        """Return the number of pods that a node takes, or the reason why it takes none."""
        if why := node_refuses(node, self._placement):
            return why, 0
        taken = self._occupancy.taken(node.name, self._without)
        state = node.scheduler_allocatable, taken, self._occupancy.pods(node.name, self._without), self._request
        return scarcest(*state), places_left(*state)

    def _refused_by_pods(self, node: Node) -> str:
        if not all(spread.admits(node) for spread in self._spread):
            return SPREAD
        return "" if self._affinity.admits(node) else NEIGHBOURS


class Preemption(NamedTuple):
    """One node on which a pod fits once its victims have left, and what stays there."""

    node: Node
    victims: tuple[Resident, ...]
    staying: tuple[Resident, ...]


def preemptions(
    pod: Pod, request: Amounts, nodes: Iterable[tuple[Node, Sequence[Resident]]], count: int
) -> list[Preemption]:
    """Return for up to `count` pods, one after the other, the node that costs least, of `nodes` and their residents.

    That is the lowest highest priority, then the lowest sum of priorities, then fewest victims. `request` is in the
    scheduler's units. Resources, taints, selector and affinity decide; disruption budgets, spread and neighbours are
    not looked at. None for a pod that may not preempt, or where no pod of lower priority is in the way.
    """
    new = Resident("", request, pod.placement, pod.priority)
    candidates = (_on(node, pod, request, residents) for node, residents in nodes if pod.preempts)
    possible = {preemption.node.name: preemption for preemption in candidates if preemption}
    preemptions: list[Preemption] = []
    while possible and len(preemptions) < count:
        cheapest = min(possible.values(), key=_cost)
        preemptions.append(cheapest)
        if again := _on(cheapest.node, pod, request, (*cheapest.staying, new)):
            possible[cheapest.node.name] = again
        else:
            del possible[cheapest.node.name]
    return preemptions


def _on(node: Node, pod: Pod, request: Amounts, residents: Sequence[Resident]) -> Preemption | None:
    """Take all pods of lower priority off, then put back those that still fit, the highest priority first."""
    lower = [resident for resident in residents if resident.priority < pod.priority]
    if not lower or node_refuses(node, pod.placement):
        return None
    staying = [resident for resident in residents if resident.priority >= pod.priority]
    taken = added(*(resident.requests for resident in staying))
    if not places_left(node.scheduler_allocatable, taken, len(staying), request):
        return None
    victims = []
    for resident in sorted(lower, key=lambda resident: -resident.priority):
        beside = added(taken, resident.requests)
        if places_left(node.scheduler_allocatable, beside, len(staying) + 1, request):
            staying.append(resident)
            taken = beside
        else:
            victims.append(resident)
    return Preemption(node, tuple(victims), tuple(staying)) if victims else None


def _cost(preemption: Preemption) -> tuple[int, int, int]:
    priorities = [victim.priority for victim in preemption.victims]
    return max(priorities), sum(priorities), len(priorities)

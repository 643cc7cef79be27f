"""How many pods the nodes can take, what stops the next one, and what it could preempt (§6.13)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.vertical.cluster_rules.node import scheduled
from forecaster.vertical.cluster_rules.node_filters import Neighbours, admits, spreadings, tolerates, untolerated
from forecaster.vertical.cluster_rules.placement import Taint
from forecaster.vertical.cluster_rules.pod_resources import pod_requests
from forecaster.vertical.cluster_rules.resource_list import added
from forecaster.vertical.cluster_rules.server import NEWEST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.vertical.cluster_rules.node import Node, Occupancy, Resident
    from forecaster.vertical.cluster_rules.node_filters import Spreading
    from forecaster.vertical.cluster_rules.placement import Placement
    from forecaster.vertical.cluster_rules.pod import Pod
    from forecaster.vertical.cluster_rules.resource_list import Amounts
    from forecaster.vertical.cluster_rules.server import Server

PODS = "pods"
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


def fit(pod: Pod, count: int, here: Occupancy, server: Server = NEWEST, *, without: str = "") -> Fit:
    """Rules §6.13: place up to `count` pods, each on the first node of the list that passes every filter.

    `pod` is defaulted; pods of the workload `without` are thought away. The scheduler's scores are left out: they
    choose among nodes that pass, here the order does. Nobody is added to `here`.
    """
    request = scheduled(pod_requests(pod, server))
    placement = pod.placement
    if placement.spread or placement.near or placement.apart or here.shy:
        return _one_by_one(_Floor.of(pod, request, here, without), count)
    return _node_by_node(pod, count, request, here, without)


def _node_by_node(pod: Pod, count: int, request: Amounts, here: Occupancy, without: str) -> Fit:
    """Where pods do not mind each other, each node is filled before the next."""
    placed: Counter[str] = Counter()
    turned_down: Counter[str] = Counter()
    left = count
    for node in here.nodes:
        if not left:
            break
        why, places = _places(node, pod, request, here, without)
        if why:
            turned_down[why] += 1
            continue
        placed[node.name] = min(places, left)
        turned_down["full"] += places <= left
        left -= placed[node.name]
    return Fit(placed, +turned_down if left else {})


def _one_by_one(floor: _Floor, count: int) -> Fit:
    placed: Counter[str] = Counter()
    for _ in range(count):
        node = floor.first_that_passes()
        if node is None:
            return Fit(placed, floor.refusals())
        floor.place(node)
        placed[node.name] += 1
    return Fit(placed)


def _places(node: Node, pod: Pod, request: Amounts, here: Occupancy, without: str) -> tuple[str, int]:
    """Why a node takes none, or how many it takes."""
    if why := node_refuses(node, pod.placement):
        return why, 0
    taken, pods = here.taken(node.name, without), here.pods(node.name, without)
    return scarcest(node.schedulable, taken, pods, request), places_left(node.schedulable, taken, pods, request)


def node_refuses(node: Node, placement: Placement) -> str:
    """Which filter of those that do not depend on other pods turns a node down; empty if none does."""
    if node.unschedulable and not any(tolerates(one, CORDONED) for one in placement.tolerations):
        return "unschedulable"
    if taint := untolerated(node.taints, placement.tolerations):
        return f"taint {taint.key}"
    return "" if admits(placement, node.labels, node.name) else "node selector or affinity"


def places_left(room: Amounts, taken: Amounts, pods: int, request: Amounts) -> int:
    """How many pods with this request still fit on a node, by resources; all in the scheduler's units.

    A request of zero fits anywhere, even where a node is overcommitted.
    """
    free = [room.get(PODS, 0) - pods]
    free += [(room.get(name, 0) - taken.get(name, 0)) // amount for name, amount in request.items() if amount]
    return max(min(free), 0)


def scarcest(room: Amounts, taken: Amounts, pods: int, request: Amounts) -> str:
    """The resource that stops the next pod; empty if none does."""
    if room.get(PODS, 0) <= pods:
        return PODS
    short = [name for name, amount in request.items() if amount and taken.get(name, 0) + amount > room.get(name, 0)]
    return f"not enough {short[0]}" if short else ""


@dataclass(slots=True)
class _Floor:
    """The nodes while pods that mind each other are placed on them."""

    pod: Pod
    open: list[Node]
    """Nodes that may still take one; a node whose resources are used up is dropped for good."""
    left: dict[str, int]
    turned_down: Counter[str]
    spread: list[Spreading]
    neighbours: Neighbours

    @classmethod
    def of(cls, pod: Pod, request: Amounts, here: Occupancy, without: str) -> _Floor:
        found = {node.name: _places(node, pod, request, here, without) for node in here.nodes}
        return cls(
            pod,
            open=[node for node in here.nodes if not found[node.name][0]],
            left={name: places for name, (why, places) in found.items() if not why},
            turned_down=Counter(why for why, _ in found.values() if why),
            spread=spreadings(pod.placement, here, without),
            neighbours=Neighbours.of(pod.placement, here, without),
        )

    def first_that_passes(self) -> Node | None:
        return next((node for node in self.open if not self._refused_by_pods(node)), None)

    def place(self, node: Node) -> None:
        self.left[node.name] -= 1
        if not self.left[node.name]:
            self.open.remove(node)
            self.turned_down["full"] += 1
        for one in self.spread:
            one.count(node)
        self.neighbours.meet(self.pod.placement, node)

    def refusals(self) -> Counter[str]:
        return self.turned_down + Counter(self._refused_by_pods(node) for node in self.open)

    def _refused_by_pods(self, node: Node) -> str:
        if not all(one.admits(node) for one in self.spread):
            return SPREAD
        return "" if self.neighbours.admits(node) else NEIGHBOURS


@dataclass(frozen=True, slots=True)
class Preemption:
    """One node on which a pod fits once these have left."""

    node: str
    victims: tuple[Resident, ...]


def preemption(pod: Pod, request: Amounts, here: Occupancy, *, without: str = "") -> Preemption | None:
    """The node that costs least: lowest highest priority, then lowest sum of priorities, then fewest victims.

    `request` is in the scheduler's units. Resources, taints, selector and affinity decide; disruption budgets, spread
    and neighbours are not looked at. None: the pod may not preempt, or nobody of lower priority is in the way.
    """
    if not pod.preempts:
        return None
    found = [one for node in here.nodes if (one := _on(node, pod, request, here.on(node.name, without)))]
    return min(found, key=_cost, default=None)


def _on(node: Node, pod: Pod, request: Amounts, residents: Sequence[Resident]) -> Preemption | None:
    """Take everybody of lower priority off, then let back in whom there is room for, the most important first."""
    lower = [one for one in residents if one.priority < pod.priority]
    if not lower or node_refuses(node, pod.placement):
        return None
    staying = [one for one in residents if one.priority >= pod.priority]
    if not _has_room(node, request, staying):
        return None
    victims = []
    for resident in sorted(lower, key=lambda one: -one.priority):
        if _has_room(node, request, [*staying, resident]):
            staying.append(resident)
        else:
            victims.append(resident)
    return Preemption(node.name, tuple(victims)) if victims else None


def _has_room(node: Node, request: Amounts, residents: Sequence[Resident]) -> bool:
    room = {PODS: len(residents) + 1, **node.schedulable}
    return places_left(room, added(*(one.requests for one in residents)), len(residents), request) > 0


def _cost(one: Preemption) -> tuple[int, int, int]:
    priorities = [victim.priority for victim in one.victims]
    return max(priorities), sum(priorities), len(priorities)

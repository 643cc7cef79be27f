"""The scheduler's filters by placement: taints, node affinity, topology spread, pod affinity (§6.13)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.vertical.cluster_rules.node import Node, Occupancy, Resident
    from forecaster.vertical.cluster_rules.placement import (
        Neighbourhood,
        NodeCondition,
        NodeTerm,
        Placement,
        Spread,
        Taint,
        Toleration,
    )

REPELLING = frozenset({"NoSchedule", "NoExecute"})
_NAME = "metadata.name"
_Domain = tuple[str, str]


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Rules §6.13: the first taint that keeps a pod away; PreferNoSchedule never does."""
    for taint in taints:
        if taint.effect in REPELLING and not any(tolerates(one, taint) for one in tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Rules §6.13: effect empty or equal, key equal (or empty, with Exists), and Exists or the same value."""
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and bool(toleration.key) and toleration.value == taint.value


def admits(placement: Placement, labels: Mapping[str, str], name: str) -> bool:
    """Rules §6.13: all pairs of the selector and, where there is affinity, at least one of its terms."""
    if any(labels.get(key) != value for key, value in placement.node_selector.items()):
        return False
    return placement.node_terms is None or any(_holds(term, labels, name) for term in placement.node_terms)


def _holds(term: NodeTerm, labels: Mapping[str, str], name: str) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(condition_holds(one, labels) for one in term.labels) and all(
        condition_holds(one, {_NAME: name}) for one in term.fields
    )


def condition_holds(condition: NodeCondition, labels: Mapping[str, str]) -> bool:
    """Rules §6.13: NotIn holds without the label; Gt and Lt compare integers, and nothing else matches them."""
    value = labels.get(condition.key)
    match condition.operator:
        case "In":
            return value in condition.values
        case "NotIn":
            return value not in condition.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(condition, value)
        case _:
            return False


def _compares(condition: NodeCondition, value: str | None) -> bool:
    try:
        ours, bound = int(value or ""), int(condition.values[0])
    except (ValueError, IndexError):
        return False
    return ours > bound if condition.operator == "Gt" else ours < bound


@dataclass(frozen=True, slots=True)
class Spreading:
    """One constraint with the pods it has counted, by domain."""

    rule: Spread
    counted: frozenset[str]
    """Nodes whose pods count."""
    domains: Counter[str]
    own: bool
    """Whether the pod itself is one of those it counts."""

    def admits(self, node: Node) -> bool:
        """Whether one more pod on this node keeps the skew."""
        domain = node.labels.get(self.rule.topology_key)
        if domain is None:
            return False
        lowest = 0 if len(self.domains) < self.rule.min_domains else min(self.domains.values(), default=0)
        return self.domains[domain] + self.own - lowest <= self.rule.max_skew

    def count(self, node: Node) -> None:
        """One more pod like this runs there."""
        if self.own and node.name in self.counted and not self.rule.selector.is_empty:
            self.domains[node.labels[self.rule.topology_key]] += 1


def spreadings(placement: Placement, here: Occupancy, without: str = "") -> list[Spreading]:
    """Rules §6.13: every constraint of the pod with what it counts now."""
    if not placement.spread:
        return []
    keys = {one.topology_key for one in placement.spread}
    eligible = [node for node in here.nodes if keys <= node.labels.keys()]
    neighbours = here.in_namespace(placement.namespace, without)
    return [_spreading(rule, placement, eligible, neighbours) for rule in placement.spread]


def _spreading(rule: Spread, placement: Placement, nodes: Sequence[Node], neighbours: Sequence[Resident]) -> Spreading:
    counted = {node.name: node for node in nodes if _counts(rule, placement, node)}
    domains = Counter({node.labels[rule.topology_key]: 0 for node in counted.values()})
    for one in neighbours:
        if one.node in counted and _is_meant(rule, one):
            domains[counted[one.node].labels[rule.topology_key]] += 1
    return Spreading(rule, frozenset(counted), domains, rule.selector.matches(placement.labels))


def _counts(rule: Spread, placement: Placement, node: Node) -> bool:
    if rule.honours_affinity and not admits(placement, node.labels, node.name):
        return False
    return not (rule.honours_taints and untolerated(node.taints, placement.tolerations))


def _is_meant(rule: Spread, resident: Resident) -> bool:
    """A selector without conditions matches the pod itself but, as in the scheduler, counts nobody."""
    return not rule.selector.is_empty and rule.selector.matches(resident.placement.labels)


@dataclass(slots=True)
class Neighbours:
    """Which topology domains a pod must avoid, and which it must join."""

    placement: Placement
    forbidden: set[_Domain] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    """Topology keys of those."""
    joined: dict[int, set[_Domain]] = field(default_factory=dict)
    """For each affinity term, by its position, the domains where a pod it names runs."""
    anyone: bool = False
    """Whether some pod matches all affinity terms; while nobody does, the first of a group may start one."""

    @classmethod
    def of(cls, placement: Placement, here: Occupancy, without: str = "") -> Neighbours:
        """Around a pod with this placement. Who has no wishes of its own meets only those that have."""
        found = cls(placement, joined={i: set() for i in range(len(placement.near))})
        everybody = here.everybody() if placement.near or placement.apart else here.shy
        for resident in everybody:
            if resident.node in here.by_name and (not without or resident.workload != without):
                found.meet(resident.placement, here.by_name[resident.node])
        return found

    def meet(self, other: Placement, node: Node) -> None:
        """Another pod runs on this node."""
        ours = [term for term in self.placement.apart if _names(term, self.placement, other)]
        theirs = [term for term in other.apart if _names(term, other, self.placement)]
        self.forbidden |= {domain for term in (*ours, *theirs) if (domain := _domain(term, node))}
        self.keys |= {term.topology_key for term in (*ours, *theirs)}
        if self.placement.near and all(_names(term, self.placement, other) for term in self.placement.near):
            self.anyone = True
            for i, term in enumerate(self.placement.near):
                self.joined[i] |= {domain for domain in [_domain(term, node)] if domain}

    def admits(self, node: Node) -> bool:
        """Whether this pod may run there, as far as its neighbours go."""
        if any((key, node.labels.get(key)) in self.forbidden for key in self.keys):
            return False
        return all(self._joins(i, term, node) for i, term in enumerate(self.placement.near))

    def _joins(self, i: int, term: Neighbourhood, node: Node) -> bool:
        domain = _domain(term, node)
        if domain is None:
            return False
        return domain in self.joined[i] or (not self.anyone and _names(term, self.placement, self.placement))


def _names(term: Neighbourhood, of: Placement, other: Placement) -> bool:
    """Whether a term of one pod means another pod."""
    in_reach = (
        other.namespace == of.namespace
        if term.namespaces is None
        else not term.namespaces or (other.namespace in term.namespaces)
    )
    return in_reach and term.selector.matches(other.labels)


def _domain(term: Neighbourhood, node: Node) -> _Domain | None:
    value = node.labels.get(term.topology_key)
    return None if value is None else (term.topology_key, value)

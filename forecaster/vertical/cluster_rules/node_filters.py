"""The scheduler's filters by placement: taints, node affinity, topology spread, pod affinity (§6.13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from forecaster.vertical.cluster_rules.node import Node, Occupancy, Resident
from forecaster.vertical.cluster_rules.placement import (
    NodeTerm,
    Placement,
    PodAffinityTerm,
    Taint,
    Toleration,
    TopologySpread,
)

REPELLING = frozenset({"NoSchedule", "NoExecute"})
_NAME = "metadata.name"
_Domain = tuple[str, str]


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Rules §6.13: the first taint that keeps a pod away; PreferNoSchedule never does."""
    for taint in taints:
        if taint.effect in REPELLING and not any(tolerates(toleration, taint) for toleration in tolerations):
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
    labels_hold = all(condition.holds(labels) for condition in term.labels)
    return labels_hold and all(condition.holds({_NAME: name}) for condition in term.fields)


@dataclass(slots=True)
class SpreadCount:
    """One constraint with the pods it has counted, by domain."""

    rule: TopologySpread
    counted: frozenset[str]
    """Nodes on which pods count."""
    domains: Counter[str]
    own: bool
    """Whether the pod itself is one of those it counts."""
    lowest: int = field(init=False)
    """Pods in the domain with the fewest, from which the skew is counted."""

    def __post_init__(self) -> None:
        """Find the lowest domain once: it is read for each node."""
        self.lowest = self._lowest()

    def admits(self, node: Node) -> bool:
        """Whether one more pod on this node keeps the skew."""
        domain = node.labels.get(self.rule.topology_key)
        return domain is not None and self.domains[domain] + self.own - self.lowest <= self.rule.max_skew

    def count(self, node: Node) -> bool:
        """Count one more pod like this on a node; whether others are admitted now."""
        if not self.own or node.name not in self.counted or self.rule.selector.is_empty:
            return False
        self.domains[node.labels[self.rule.topology_key]] += 1
        before, self.lowest = self.lowest, self._lowest()
        return self.lowest > before

    def _lowest(self) -> int:
        return 0 if len(self.domains) < self.rule.min_domains else min(self.domains.values(), default=0)


def spread_counts(placement: Placement, occupancy: Occupancy, without: str = "") -> list[SpreadCount]:
    """Rules §6.13: every constraint of the pod with what it counts now."""
    if not placement.spread:
        return []
    keys = {constraint.topology_key for constraint in placement.spread}
    eligible = [node for node in occupancy.nodes if keys <= node.labels.keys()]
    others = occupancy.in_namespace(placement.namespace, without)
    return [_spreading(rule, placement, eligible, others) for rule in placement.spread]


def _spreading(
    rule: TopologySpread, placement: Placement, nodes: Sequence[Node], others: Sequence[Resident]
) -> SpreadCount:
    counted = {node.name: node for node in nodes if _counts(rule, placement, node)}
    domains = Counter({node.labels[rule.topology_key]: 0 for node in counted.values()})
    for resident in others:
        if resident.node in counted and _is_selected(rule, resident):
            domains[counted[resident.node].labels[rule.topology_key]] += 1
    return SpreadCount(rule, frozenset(counted), domains, rule.selector.matches(placement.labels))


def _counts(rule: TopologySpread, placement: Placement, node: Node) -> bool:
    if rule.honours_affinity and not admits(placement, node.labels, node.name):
        return False
    return not (rule.honours_taints and untolerated(node.taints, placement.tolerations))


def _is_selected(rule: TopologySpread, resident: Resident) -> bool:
    """A selector without conditions matches the pod itself but, as in the scheduler, counts no pod."""
    return not rule.selector.is_empty and rule.selector.matches(resident.placement.labels)


@dataclass(slots=True)
class PodAffinity:
    """Required pod (anti-)affinity in both directions: the topology domains that a pod must avoid, and must join."""

    placement: Placement
    forbidden: set[_Domain] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    """Topology keys of those."""
    joined: dict[int, set[_Domain]] = field(default_factory=dict)
    """Domains by position of the affinity term in which a pod that it names runs."""
    any_match: bool = False
    """Whether a running pod matches all affinity terms; until one does, the first pod of a group may start anywhere."""

    @classmethod
    def of(cls, placement: Placement, occupancy: Occupancy, without: str = "") -> PodAffinity:
        """Return the domains of a pod with this placement; terms without namespaces mean the pod's own."""
        affinity = cls(placement, joined={i: set() for i in range(len(placement.pod_affinity))})
        far = any(term.namespaces is not None for term in (*placement.pod_affinity, *placement.pod_anti_affinity))
        others = [resident for resident in occupancy.reaching if resident.placement.namespace != placement.namespace]
        for resident in occupancy.residents() if far else (*occupancy.in_namespace(placement.namespace), *others):
            if resident.node in occupancy.by_name and (not without or resident.workload != without):
                affinity.add(resident.placement, occupancy.by_name[resident.node])
        return affinity

    def add(self, other: Placement, node: Node) -> None:
        """Count another pod, which runs on this node."""
        own_terms = [term for term in self.placement.pod_anti_affinity if _names(term, self.placement, other)]
        other_terms = [term for term in other.pod_anti_affinity if _names(term, other, self.placement)]
        self.forbidden |= {domain for term in (*own_terms, *other_terms) if (domain := _domain(term, node))}
        self.keys |= {term.topology_key for term in (*own_terms, *other_terms)}
        if self.placement.pod_affinity and all(
            _names(term, self.placement, other) for term in self.placement.pod_affinity
        ):
            self.any_match = True
            for i, term in enumerate(self.placement.pod_affinity):
                self.joined[i] |= {domain for domain in [_domain(term, node)] if domain}

    def admits(self, node: Node) -> bool:
        """Whether this pod may run there by the affinity of both sides."""
        if any((key, node.labels.get(key)) in self.forbidden for key in self.keys):
            return False
        return all(self._joins(i, term, node) for i, term in enumerate(self.placement.pod_affinity))

    def _joins(self, i: int, term: PodAffinityTerm, node: Node) -> bool:
        domain = _domain(term, node)
        if domain is None:
            return False
        return domain in self.joined[i] or (not self.any_match and _names(term, self.placement, self.placement))


def _names(term: PodAffinityTerm, owner: Placement, other: Placement) -> bool:
    """Whether an affinity term of one pod selects another pod."""
    in_reach = (
        other.namespace == owner.namespace
        if term.namespaces is None
        else not term.namespaces or (other.namespace in term.namespaces)
    )
    return in_reach and term.selector.matches(other.labels)


def _domain(term: PodAffinityTerm, node: Node) -> _Domain | None:
    value = node.labels.get(term.topology_key)
    return None if value is None else (term.topology_key, value)

"""Topology spread constraints that refuse (§6.13)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.vertical.rules.node_affinity import admits
from forecaster.vertical.rules.taints import untolerated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.vertical.rules.node import Node, Resident
    from forecaster.vertical.rules.occupancy import Occupancy
    from forecaster.vertical.rules.placement import Placement, Spread


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

"""Required pod affinity and anti-affinity, in both directions (§6.13)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecaster.vertical.rules.node import Node
    from forecaster.vertical.rules.occupancy import Occupancy
    from forecaster.vertical.rules.placement import Neighbourhood, Placement

_Domain = tuple[str, str]


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

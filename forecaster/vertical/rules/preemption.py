"""Who would have to go so that a pod of higher priority can run (§6.13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.vertical.rules.node_fit import PODS, node_refuses, places_left
from forecaster.vertical.rules.resource_list import added

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.vertical.rules.node import Node, Resident
    from forecaster.vertical.rules.occupancy import Occupancy
    from forecaster.vertical.rules.pod import Pod
    from forecaster.vertical.rules.resource_list import Amounts


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
    room = {PODS: len(residents) + 1, **node.room}
    return places_left(room, added(*(one.requests for one in residents)), len(residents), request) > 0


def _cost(one: Preemption) -> tuple[int, int, int]:
    priorities = [victim.priority for victim in one.victims]
    return max(priorities), sum(priorities), len(priorities)

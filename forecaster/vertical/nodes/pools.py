"""Node pools: nodes that are made alike, by a label that whoever makes them sets."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forecaster.vertical.cluster_rules.node import HOSTNAME
from forecaster.vertical.cluster_rules.resource_list import CPU

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forecaster.vertical.cluster_rules.node import Node, Resident

LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
"""Labels that tell pools apart, the most specific first."""
UNNAMED = "nodes"


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one kind, and the label that says so."""

    name: str
    label: str
    nodes: tuple[Node, ...]

    @property
    def template(self) -> Node:
        """What one more node would be: the largest there is, since a pool grows by what it is made of."""
        return max(self.nodes, key=lambda node: (node.schedulable.get(CPU, 0), node.name))

    def another(self, number: int) -> Node:
        """A node that does not exist yet."""
        name = f"new-{self.name}-{number}"
        return replace(self.template, name=name, labels={**self.template.labels, HOSTNAME: name}, unschedulable=False)


def pools_of(nodes: Iterable[Node], labels: Sequence[str] = LABELS) -> list[Pool]:
    """Every pool, by name; nodes without any of these labels are one pool of their own."""
    found: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        label = next((one for one in labels if one in node.labels), "")
        found.setdefault((node.labels.get(label, UNNAMED), label), []).append(node)
    return [Pool(name, label, tuple(members)) for (name, label), members in sorted(found.items())]


def homes_of(residents: Iterable[Resident], pools: Iterable[Pool]) -> dict[str, str]:
    """By workload, the pool where most of its pods run; absent where none of them is on a known node."""
    pool_of = {node.name: pool.name for pool in pools for node in pool.nodes}
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for one in residents:
        if one.node in pool_of:
            counted[one.workload][pool_of[one.node]] += 1
    return {workload: max(sorted(pods), key=pods.__getitem__) for workload, pods in counted.items()}

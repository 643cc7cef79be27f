"""`nodes_with_room`: what nodes have for a new pod beside their DaemonSets, one of each kind. Pure.

A size that no node could take would keep its pods waiting for ever. Cordoned nodes take no pod; what other pods take of
a node is left out, since these come and go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from forecaster.vertical.admission.cluster import requirements_of
from forecaster.vertical.cluster_rules.manifest import node_of
from forecaster.vertical.cluster_rules.node import HOSTNAME, Node, Occupancy
from forecaster.vertical.cluster_rules.resource_list import MILLI, added, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.domain.workload import Resources
    from forecaster.vertical.cluster_rules.resource_list import Amounts

Document = dict[str, Any]
PODS = "pods"
MOST_KINDS = 200
"""Kinds of nodes that are kept, the roomiest: each answer of the webhook looks at all of them."""


def nodes_with_room(nodes: Iterable[Document], daemons: Mapping[str, Sequence[Resources]]) -> list[Document]:
    """Nodes as the API server has them, with allocatable less what DaemonSets request there. Raises ManifestError."""
    known = (node_of(one) for one in nodes)
    left = [_left(one, daemons.get(one.name, ())) for one in known if not one.unschedulable]
    kinds = sorted(Occupancy(left).kinds, key=lambda one: sorted(one.allocatable.items()), reverse=True)
    return [_document(one) for one in kinds[:MOST_KINDS]]


def _left(node: Node, daemons: Sequence[Resources]) -> Node:
    taken = added(*(requirements_of(one).requests for one in daemons), {PODS: MILLI * len(daemons)})
    return replace(node, allocatable=_less(node.allocatable, taken))


def _less(amounts: Amounts, taken: Amounts) -> dict[str, int]:
    return {name: max(0, milli - taken.get(name, 0)) for name, milli in amounts.items()}


def _document(node: Node) -> Document:
    taints = [{"key": one.key, "value": one.value, "effect": one.effect} for one in node.taints]
    labels = {name: value for name, value in node.labels.items() if name != HOSTNAME}
    meta = {"name": node.name, "labels": {**labels, HOSTNAME: node.labels.get(HOSTNAME, node.name)}}
    return {"metadata": meta, "spec": {"taints": taints}, "status": {"allocatable": texts(node.allocatable)}}

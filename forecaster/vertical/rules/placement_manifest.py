"""Where a pod may run, read from its specification. Raises KeyError and TypeError where a field is missing or wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from forecaster.vertical.rules.label_selector import selector_of
from forecaster.vertical.rules.placement import (
    Neighbourhood,
    NodeCondition,
    NodeTerm,
    Placement,
    Spread,
    Toleration,
)

Wire = Mapping[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def placement_of(spec: Wire, metadata: Wire) -> Placement:
    """Where a pod may run."""
    affinity = spec.get("affinity") or {}
    labels = metadata.get("labels") or {}
    node_affinity = (affinity.get("nodeAffinity") or {}).get(_REQUIRED)
    spread = [one for one in spec.get("topologySpreadConstraints") or () if one["whenUnsatisfiable"] == "DoNotSchedule"]
    return Placement(
        labels=labels,
        namespace=metadata.get("namespace") or "",
        node_selector=spec.get("nodeSelector") or {},
        node_terms=None if node_affinity is None else _node_terms(node_affinity.get("nodeSelectorTerms")),
        tolerations=tuple(_toleration(one) for one in spec.get("tolerations") or ()),
        spread=tuple(_spread(one, labels) for one in spread),
        near=_neighbourhoods(affinity.get("podAffinity"), labels),
        apart=_neighbourhoods(affinity.get("podAntiAffinity"), labels),
    )


def _node_terms(terms: Iterable[Wire] | None) -> tuple[NodeTerm, ...]:
    return tuple(
        NodeTerm(_node_conditions(term.get("matchExpressions")), _node_conditions(term.get("matchFields")))
        for term in terms or ()
    )


def _node_conditions(expressions: Iterable[Wire] | None) -> tuple[NodeCondition, ...]:
    return tuple(
        NodeCondition(one["key"], one["operator"], tuple(one.get("values") or ())) for one in expressions or ()
    )


def _toleration(wire: Wire) -> Toleration:
    return Toleration(
        wire.get("key") or "", wire.get("operator") or "Equal", wire.get("value") or "", wire.get("effect") or ""
    )


def _spread(wire: Wire, labels: Mapping[str, str]) -> Spread:
    own = {key: labels[key] for key in wire.get("matchLabelKeys") or () if key in labels}
    return Spread(
        max_skew=wire["maxSkew"],
        topology_key=wire["topologyKey"],
        selector=selector_of(wire.get("labelSelector")).narrowed(own),
        min_domains=wire.get("minDomains") or 1,
        honours_affinity=wire.get("nodeAffinityPolicy") != "Ignore",
        honours_taints=wire.get("nodeTaintsPolicy") == "Honor",
    )


def _neighbourhoods(wire: Wire | None, labels: Mapping[str, str]) -> tuple[Neighbourhood, ...]:
    return tuple(_neighbourhood(one, labels) for one in (wire or {}).get(_REQUIRED) or ())


def _neighbourhood(wire: Wire, labels: Mapping[str, str]) -> Neighbourhood:
    """One affinity term. Namespaces chosen by their labels count as all of them: those labels are not at hand."""
    named, chosen = wire.get("namespaces"), wire.get("namespaceSelector")
    namespaces = frozenset(named) if named else None
    own = {key: labels[key] for key in wire.get("matchLabelKeys") or () if key in labels}
    return Neighbourhood(
        topology_key=wire["topologyKey"],
        selector=selector_of(wire.get("labelSelector")).narrowed(own),
        namespaces=namespaces if chosen is None else frozenset(),
    )

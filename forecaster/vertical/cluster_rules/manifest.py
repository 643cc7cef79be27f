"""Pods, nodes, LimitRanges and ResourceQuotas in their JSON form, read into the values that the rules work on.

Raises `ManifestError`, naming the object and the value, where an object cannot be understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from forecaster.domain.quantity import QuantityError
from forecaster.vertical.cluster_rules.limit_range import LimitRange, LimitRangeItem
from forecaster.vertical.cluster_rules.node import Node
from forecaster.vertical.cluster_rules.placement import (
    NodeTerm,
    Placement,
    PodAffinityTerm,
    Taint,
    Toleration,
    TopologySpread,
    conditions_of,
    selector_of,
)
from forecaster.vertical.cluster_rules.pod import Container, ContainerStatus, Pod, PodStatus, Requirements
from forecaster.vertical.cluster_rules.quota import Quota, Scope
from forecaster.vertical.cluster_rules.resource_list import MEMORY_RESOURCE, Amounts, parsed, whole

Wire = Mapping[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_MIRROR = "kubernetes.io/config.mirror"
_ALWAYS = "Always"
NOT_UNDERSTOOD = (QuantityError, KeyError, TypeError, AttributeError)


def placement_of(spec: Wire, metadata: Wire) -> Placement:
    """Return the constraints on the nodes of a pod."""
    affinity = spec.get("affinity") or {}
    labels = metadata.get("labels") or {}
    node_affinity = (affinity.get("nodeAffinity") or {}).get(_REQUIRED)
    constraints = spec.get("topologySpreadConstraints") or ()
    spread = [constraint for constraint in constraints if constraint["whenUnsatisfiable"] == "DoNotSchedule"]
    return Placement(
        labels=labels,
        namespace=metadata.get("namespace") or "",
        node_selector=spec.get("nodeSelector") or {},
        node_terms=None if node_affinity is None else _node_terms(node_affinity.get("nodeSelectorTerms")),
        tolerations=tuple(_toleration(toleration) for toleration in spec.get("tolerations") or ()),
        spread=tuple(_spread(constraint, labels) for constraint in spread),
        pod_affinity=_neighbourhoods(affinity.get("podAffinity"), labels),
        pod_anti_affinity=_neighbourhoods(affinity.get("podAntiAffinity"), labels),
    )


def _node_terms(terms: Iterable[Wire] | None) -> tuple[NodeTerm, ...]:
    return tuple(
        NodeTerm(conditions_of(term.get("matchExpressions")), conditions_of(term.get("matchFields")))
        for term in terms or ()
    )


def _toleration(wire: Wire) -> Toleration:
    return Toleration(
        wire.get("key") or "", wire.get("operator") or "Equal", wire.get("value") or "", wire.get("effect") or ""
    )


def _spread(wire: Wire, labels: Mapping[str, str]) -> TopologySpread:
    own = {key: labels[key] for key in wire.get("matchLabelKeys") or () if key in labels}
    return TopologySpread(
        max_skew=wire["maxSkew"],
        topology_key=wire["topologyKey"],
        selector=selector_of(wire.get("labelSelector")).narrowed(own),
        min_domains=wire.get("minDomains") or 1,
        honours_affinity=wire.get("nodeAffinityPolicy") != "Ignore",
        honours_taints=wire.get("nodeTaintsPolicy") == "Honor",
    )


def _neighbourhoods(wire: Wire | None, labels: Mapping[str, str]) -> tuple[PodAffinityTerm, ...]:
    return tuple(_neighbourhood(term, labels) for term in (wire or {}).get(_REQUIRED) or ())


def _neighbourhood(wire: Wire, labels: Mapping[str, str]) -> PodAffinityTerm:
    """One affinity term. Namespaces chosen by their labels count as all of them: those labels are not at hand."""
    named, chosen = wire.get("namespaces"), wire.get("namespaceSelector")
    namespaces = frozenset(named) if named else None
    own = {key: labels[key] for key in wire.get("matchLabelKeys") or () if key in labels}
    return PodAffinityTerm(
        topology_key=wire["topologyKey"],
        selector=selector_of(wire.get("labelSelector")).narrowed(own),
        namespaces=namespaces if chosen is None else frozenset(),
    )


class ManifestError(ValueError):
    """An object that cannot be read; the message names it, the value and the remedy."""


def pod_of(wire: Wire) -> Pod:
    """A Pod object, or a pod template: anything with `metadata` and `spec`."""
    metadata = wire.get("metadata") or {}
    name = f"pod {metadata.get('namespace', '')}/{metadata.get('name', '')}"
    try:
        return read_spec(wire.get("spec") or {}, metadata, wire.get("status") or {})
    except NOT_UNDERSTOOD as error:
        raise ManifestError(f"{name}: not a pod as the API writes it: {error}") from error


def read_spec(spec: Wire, metadata: Wire, status: Wire) -> Pod:
    """A pod from its three parts; raises QuantityError and KeyError."""
    return Pod(
        containers=tuple(container_of(container) for container in spec.get("containers") or ()),
        init_containers=tuple(container_of(container) for container in spec.get("initContainers") or ()),
        pod_level=None if spec.get("resources") is None else requirements_of(spec["resources"]),
        overhead=parsed(spec.get("overhead")),
        restart_policy=spec.get("restartPolicy") or _ALWAYS,
        os=(spec.get("os") or {}).get("name") or "",
        static=_MIRROR in (metadata.get("annotations") or {}),
        priority=spec.get("priority") or 0,
        priority_class=spec.get("priorityClassName") or "",
        preempts=spec.get("preemptionPolicy") != "Never",
        active_deadline_seconds=spec.get("activeDeadlineSeconds"),
        placement=placement_of(spec, metadata),
        status=status_of(status),
    )


def container_of(wire: Wire) -> Container:
    """One entry of containers or initContainers."""
    return Container(
        name=wire.get("name") or "",
        resources=requirements_of(wire.get("resources")),
        sidecar=wire.get("restartPolicy") == _ALWAYS,
        resize_policy={rule["resourceName"]: rule["restartPolicy"] for rule in wire.get("resizePolicy") or ()},
    )


def requirements_of(wire: Wire | None) -> Requirements:
    """One `resources` block."""
    block = wire or {}
    return Requirements(parsed(block.get("requests")), parsed(block.get("limits")))


def status_of(wire: Wire) -> PodStatus:
    """A pod's status; a container that is in both lists counts as an init container."""
    statuses = [*(wire.get("containerStatuses") or ()), *(wire.get("initContainerStatuses") or ())]
    pending = [condition for condition in wire.get("conditions") or () if condition.get("type") == "PodResizePending"]
    return PodStatus(
        containers={status["name"]: _container_status(status) for status in statuses},
        qos=wire.get("qosClass") or "",
        resize_pending=(pending[0].get("reason") or "") if pending else "",
    )


def _container_status(wire: Wire) -> ContainerStatus:
    resources = wire.get("resources") or {}
    return ContainerStatus(
        requests=_reported(resources.get("requests")),
        limits=_reported(resources.get("limits")),
        allocated=_reported(wire.get("allocatedResources")),
        has_resources=wire.get("resources") is not None,
    )


def _reported(amounts: Mapping[str, str] | None) -> Amounts | None:
    return None if amounts is None else parsed(amounts)


def node_of(wire: Wire) -> Node:
    """A Node object."""
    metadata, spec, status = (wire.get(part) or {} for part in ("metadata", "spec", "status"))
    try:
        return Node(
            name=metadata["name"],
            allocatable=parsed(status.get("allocatable")),
            labels=metadata.get("labels") or {},
            taints=tuple(taint_of(taint) for taint in spec.get("taints") or ()),
            unschedulable=bool(spec.get("unschedulable")),
            memory_capacity=whole(parsed(status.get("capacity")).get(MEMORY_RESOURCE, 0)) or None,
        )
    except NOT_UNDERSTOOD as error:
        raise ManifestError(f"node {metadata.get('name', '')}: not a node as the API writes it: {error}") from error


def taint_of(wire: Wire) -> Taint:
    """One entry of a node's taints."""
    return Taint(wire["key"], wire.get("value") or "", wire.get("effect") or "")


def limit_range_of(wire: Wire) -> LimitRange:
    """A LimitRange object as the API server stores it."""
    name = (wire.get("metadata") or {}).get("name") or ""
    try:
        items = tuple(limit_range_item_of(limit) for limit in (wire.get("spec") or {}).get("limits") or ())
    except NOT_UNDERSTOOD as error:
        raise ManifestError(f"LimitRange {name}: {error}") from error
    return LimitRange(items, name)


def limit_range_item_of(wire: Wire) -> LimitRangeItem:
    """One entry of `spec.limits`."""
    return LimitRangeItem(
        type=wire.get("type") or "",
        min=parsed(wire.get("min")),
        max=parsed(wire.get("max")),
        default=parsed(wire.get("default")),
        default_request=parsed(wire.get("defaultRequest")),
        ratio=parsed(wire.get("maxLimitRequestRatio")),
    )


def quota_of(wire: Wire) -> Quota:
    """A ResourceQuota object with its status."""
    metadata, spec, status = (wire.get(part) or {} for part in ("metadata", "spec", "status"))
    name = metadata.get("name") or ""
    try:
        hard = parsed(status.get("hard") or spec.get("hard"))
        return Quota(hard, parsed(status.get("used")), _scopes(spec), name)
    except NOT_UNDERSTOOD as error:
        raise ManifestError(f"ResourceQuota {name}: {error}") from error


def _scopes(spec: Wire) -> tuple[Scope, ...]:
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return (
        *(Scope(name) for name in spec.get("scopes") or ()),
        *(Scope(scope["scopeName"], scope["operator"], frozenset(scope.get("values") or ())) for scope in expressions),
    )

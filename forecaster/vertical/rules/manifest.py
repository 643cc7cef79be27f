"""Pods in their JSON form, read into the values that the rules work on.

Raises `ManifestError`, naming the object and the value, where an object cannot be understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecaster.domain.quantity import QuantityError
from forecaster.vertical.rules.placement_manifest import placement_of
from forecaster.vertical.rules.pod import Container, ContainerStatus, Pod, PodStatus, Requirements
from forecaster.vertical.rules.resource_list import Amounts, parsed

Wire = Mapping[str, Any]
_MIRROR = "kubernetes.io/config.mirror"
_ALWAYS = "Always"


class ManifestError(ValueError):
    """An object that cannot be read; the message names it, the value and the remedy."""


def pod_of(wire: Wire) -> Pod:
    """A Pod object, or a pod template: anything with `metadata` and `spec`."""
    metadata = wire.get("metadata") or {}
    name = f"pod {metadata.get('namespace', '')}/{metadata.get('name', '')}"
    try:
        return read_spec(wire.get("spec") or {}, metadata, wire.get("status") or {})
    except (QuantityError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(f"{name}: not a pod as the API writes it: {error}") from error


def read_spec(spec: Wire, metadata: Wire, status: Wire) -> Pod:
    """A pod from its three parts; raises QuantityError and KeyError."""
    return Pod(
        containers=tuple(container_of(one) for one in spec.get("containers") or ()),
        init_containers=tuple(container_of(one) for one in spec.get("initContainers") or ()),
        pod_level=None if spec.get("resources") is None else requirements_of(spec["resources"]),
        overhead=parsed(spec.get("overhead")),
        restart_policy=spec.get("restartPolicy") or _ALWAYS,
        os=_os(spec.get("os")),
        static=_MIRROR in (metadata.get("annotations") or {}),
        priority=spec.get("priority") or 0,
        priority_class=spec.get("priorityClassName") or "",
        preempts=spec.get("preemptionPolicy") != "Never",
        active_deadline_seconds=spec.get("activeDeadlineSeconds"),
        placement=placement_of(spec, metadata),
        status=status_of(status),
    )


def _os(value: Any) -> str:
    return str(value.get("name") or "") if isinstance(value, Mapping) else str(value or "")


def container_of(wire: Wire) -> Container:
    """One entry of containers or initContainers."""
    return Container(
        name=wire.get("name") or "",
        resources=requirements_of(wire.get("resources")),
        sidecar=wire.get("restartPolicy") == _ALWAYS,
        resize_policy={one["resourceName"]: one["restartPolicy"] for one in wire.get("resizePolicy") or ()},
    )


def requirements_of(wire: Wire | None) -> Requirements:
    """One `resources` block."""
    block = wire or {}
    return Requirements(parsed(block.get("requests")), parsed(block.get("limits")))


def status_of(wire: Wire) -> PodStatus:
    """A pod's status; a container that is in both lists counts as an init container."""
    statuses = [*(wire.get("containerStatuses") or ()), *(wire.get("initContainerStatuses") or ())]
    pending = [one for one in wire.get("conditions") or () if one.get("type") == "PodResizePending"]
    return PodStatus(
        containers={one["name"]: _container_status(one) for one in statuses},
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

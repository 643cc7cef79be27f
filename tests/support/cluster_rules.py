"""Pods, nodes and surroundings in few words; a story names only what it is about."""

from __future__ import annotations

from typing import Any

from forecaster.vertical.admission.context import AdmissionContext, Rollout
from forecaster.vertical.cluster_rules.limit_range import LimitRange, LimitRangeItem
from forecaster.vertical.cluster_rules.manifest import placement_of
from forecaster.vertical.cluster_rules.node import Node, Occupancy, Resident, scheduled
from forecaster.vertical.cluster_rules.placement import Taint
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.quota import Quota
from forecaster.vertical.cluster_rules.resource_list import parsed

APP = "app"


def block(
    cpu: str | None = None, memory: str | None = None, *, limits: tuple[str | None, str | None] = (None, None)
) -> Requirements:
    """Requests of cpu and memory, and limits of both; None leaves one out."""
    return Requirements(_amounts(cpu, memory), _amounts(*limits))


def guaranteed(cpu: str, memory: str) -> Requirements:
    return block(cpu, memory, limits=(cpu, memory))


def _amounts(cpu: str | None, memory: str | None) -> dict[str, int]:
    return parsed({name: text for name, text in (("cpu", cpu), ("memory", memory)) if text is not None})


def pod(
    resources: Requirements | None = None, *, name: str = APP, spec: dict[str, Any] | None = None, **more: Any
) -> Pod:
    """Pod of one container, by default with half a core and a GiB; `spec` is where it may run, as a manifest has it."""
    placement = placement_of(spec or {}, {"namespace": "shop", "labels": {"app": "web"}})
    return Pod((Container(name, resources or block("500m", "1Gi")),), placement=placement, **more)


def node(
    name: str = "n1",
    cpu: str = "4",
    memory: str = "16Gi",
    *,
    pods: str = "110",
    labels: dict[str, str] | None = None,
    taint: str = "",
) -> Node:
    allocatable = parsed({"cpu": cpu, "memory": memory, "pods": pods})
    return Node(name, allocatable, labels or {}, (Taint(taint),) if taint else ())


def resident(on: str = "n1", cpu: str = "1", memory: str = "1Gi", **more: Any) -> Resident:
    return Resident(on, scheduled(_amounts(cpu, memory)), **more)


def limits(type: str = "Container", **bounds: dict[str, str]) -> LimitRange:  # noqa: A002  the name of the field
    """`limits(max={"cpu": "2"})`."""
    return LimitRange((LimitRangeItem(type, **{key: parsed(value) for key, value in bounds.items()}),), "limits")


def quota(hard: dict[str, str], used: dict[str, str] | None = None) -> Quota:
    return Quota(parsed(hard), parsed({**dict.fromkeys(hard, "0"), **(used or {})}), name="quota")


def context(template: Pod | None = None, **facts: Any) -> AdmissionContext:
    """Three replicas with surge one, no LimitRange, no quota, nodes unknown."""
    nodes, residents = facts.pop("nodes", None), facts.pop("residents", ())
    if nodes is not None:
        facts["occupancy"] = Occupancy(nodes, residents)
    return AdmissionContext(template or pod(), **{"rollout": Rollout(3), "workload": "shop/web", **facts})

"""A cluster from its own objects, as `kubectl get -o json` prints them.

    kubectl get deploy,rs,sts,ds,cj,pods,nodes,limitranges,resourcequotas,priorityclasses -A -o json > cluster.json
    kubectl get verticalpodautoscalers -A -o json > vpas.json

The most exact source of the admission proof: templates with every container, affinity, taints, priorities. Items of
kind PodMetrics (`kubectl get --raw /apis/metrics.k8s.io/v1beta1/pods`) add what pods use.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from forecaster.domain.quantity import QuantityError
from forecaster.domain.workload import WorkloadId
from forecaster.errors import SourceRefused
from forecaster.resources.neighbours import Neighbours, vpa_of_document
from forecaster.vertical.admission.advice import CRON_JOB
from forecaster.vertical.admission.cluster import Cluster
from forecaster.vertical.admission.context import Rollout
from forecaster.vertical.cluster_rules.manifest import ManifestError, limit_range_of, node_of, pod_of, quota_of
from forecaster.vertical.cluster_rules.node import Resident
from forecaster.vertical.cluster_rules.pod import Pod
from forecaster.vertical.cluster_rules.resource_list import milli_of, whole
from forecaster.vertical.cluster_rules.server import Server
from forecaster.vertical.recommenders.baselines import VpaSizes

Wire = Mapping[str, Any]
Items = Mapping[str, list[Wire]]
_TEMPLATED = (CRON_JOB, "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
_LIVING = ("Pending", "Running", "Unknown", "")


def read_cluster(paths: Iterable[Path], server: Server | None = None) -> Cluster:
    """Read every object of these files.

    Raises:
        SourceRefused: a file cannot be read, or holds no Kubernetes object.
    """
    items: dict[str, list[Wire]] = defaultdict(list)
    for path in paths:
        for item in _items(path):
            items[str(item.get("kind"))].append(item)
    return cluster_of(items, server)


def _items(path: Path) -> Iterable[Wire]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise SourceRefused(f"{path}: not a JSON file of Kubernetes objects: {error}") from error
    objects = value.get("items") if isinstance(value, Mapping) and "items" in value else [value]
    if not isinstance(objects, list) or not all(
        isinstance(item, Mapping) and "kind" in item and isinstance(item.get("metadata") or {}, Mapping)
        for item in objects
    ):
        raise SourceRefused(f"{path}: expected a List of objects with `kind`, as `kubectl get -o json` prints it")
    return objects


BUILT_IN_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def cluster_of(items: Items, server: Server | None = None) -> Cluster:
    """A cluster from its objects by kind. They are taken as complete: a LimitRange that is not here does not exist.

    Only nodes may be missing, because every cluster has some.
    """
    faults: list[str] = []
    classes = {_key(wire)[1]: int(wire.get("value") or 0) for wire in items.get("PriorityClass", ())}
    priorities = BUILT_IN_PRIORITIES | classes
    pods = list(_placed(items, faults))
    usage = dict(_usage(wire) for wire in items.get("PodMetrics", ()))
    nodes = _read(items.get("Node", ()), node_of, faults)
    node_infos = ((wire.get("status") or {}).get("nodeInfo") or {} for wire in items.get("Node", ()))
    return Cluster(
        nodes=tuple(nodes) if "Node" in items else None,
        residents=tuple(_resident(pod, usage, priorities) for pod in pods),
        limit_ranges=_by_namespace(items, "LimitRange", limit_range_of, faults),
        quotas=_by_namespace(items, "ResourceQuota", quota_of, faults),
        templates=_templates(items, priorities, faults),
        rollouts={_id(kind, wire): _rollout(kind, wire) for kind in _TEMPLATED for wire in items.get(kind, ())},
        running=_running(pods),
        vpas=_vpas(items, faults),
        server=server or Server.latest(str(info.get("kubeletVersion") or "") for info in node_infos),
        faults=tuple(faults),
    )


class _PlacedPod(NamedTuple):
    """A living pod that has a node."""

    pod: Pod
    name: str
    owner: WorkloadId
    node: str
    runs: bool


def _placed(items: Items, faults: list[str]) -> Iterator[_PlacedPod]:
    owners = {_key(wire): _controller(wire) for wire in items.get("ReplicaSet", ())}
    for wire in items.get("Pod", ()):
        node = str((wire.get("spec") or {}).get("nodeName") or "")
        phase = str((wire.get("status") or {}).get("phase") or "")
        namespace, name = _key(wire)
        kind, owner = _controller(wire) or ("Pod", name)
        if kind == "ReplicaSet":
            kind, owner = owners.get((namespace, owner)) or (kind, owner)
        for pod in _read([wire], pod_of, faults) if node and phase in _LIVING else ():
            yield _PlacedPod(pod, name, WorkloadId(namespace, kind, owner), node, phase == "Running")


def _resident(placed: _PlacedPod, usage: Mapping[tuple[str, str], int], priorities: Mapping[str, int]) -> Resident:
    return replace(
        Resident.of(_with_priority(placed.pod, priorities), placed.node),
        workload=placed.owner.path,
        daemon=placed.owner.kind == "DaemonSet",
        memory_bytes=usage.get((placed.owner.namespace, placed.name)),
        name=f"{placed.owner.namespace}/{placed.name}",
    )


def _running(pods: Iterable[_PlacedPod]) -> dict[WorkloadId, tuple[tuple[Pod, str], ...]]:
    pods_by_owner: dict[WorkloadId, list[tuple[Pod, str]]] = defaultdict(list)
    for placed in pods:
        if placed.runs:
            pods_by_owner[placed.owner].append((placed.pod, placed.node))
    return {id_: tuple(running) for id_, running in pods_by_owner.items()}


def _vpas(items: Items, faults: list[str]) -> dict[WorkloadId, tuple[VpaSizes, ...]]:
    vpas = []
    for wire in items.get("VerticalPodAutoscaler", ()):
        try:
            vpas.append(vpa_of_document(wire))
        except ValueError as error:
            faults.append(f"VerticalPodAutoscaler {'/'.join(_key(wire))}: {error}")
    return Neighbours(vpas=vpas).sizes()


def _templates(items: Items, priorities: Mapping[str, int], faults: list[str]) -> dict[WorkloadId, Pod]:
    templates = {}
    for kind in _TEMPLATED:
        for wire in items.get(kind, ()):
            spec = wire.get("spec") or {}
            spec = (spec.get("jobTemplate") or {}).get("spec") or {} if kind == CRON_JOB else spec
            template = spec.get("template") or {}
            metadata = {**(template.get("metadata") or {}), "namespace": _key(wire)[0], "name": _key(wire)[1]}
            for pod in _read([{"metadata": metadata, "spec": template.get("spec")}], pod_of, faults):
                templates[_id(kind, wire)] = _with_priority(pod, priorities)
    return templates


def _with_priority(pod: Pod, priorities: Mapping[str, int]) -> Pod:
    """Return a pod template with the value of its priority class, which admission would write."""
    name = pod.priority_class
    return pod if pod.priority or name not in priorities else replace(pod, priority=priorities[name])


def _rollout(kind: str, wire: Wire) -> Rollout:
    """Return the pods that the strategy allows: percentages of the replicas, surge rounded up, unavailable down."""
    spec = wire.get("spec") or {}
    replicas = spec.get("replicas")
    count = 1 if replicas is None else int(replicas)
    owner = " ".join(_controller(wire) or ())
    if kind == CRON_JOB:
        return Rollout(made_by=owner)  # between its runs it has no pod of which a quota would be freed
    if kind != "Deployment":
        return Rollout(count, surge=0, unavailable=1, made_by=owner)
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return Rollout(count, surge=0, unavailable=count, made_by=owner)
    rolling = strategy.get("rollingUpdate") or {}
    surge = _share(rolling.get("maxSurge", "25%"), count, math.ceil)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), count, math.floor)
    return Rollout(count, surge, unavailable if surge or unavailable else 1, owner)


def _share(value: int | str, replicas: int, rounded: Callable[[float], int]) -> int:
    text = str(value)
    return rounded(int(text[:-1]) * replicas / 100) if text.endswith("%") else int(text)


def _by_namespace(items: Items, kind: str, read: Callable[[Wire], Any], faults: list[str]) -> dict[str, Any]:
    """Read the objects of each namespace; None where one of them is not understood, since it may refuse anything."""
    wires: dict[str, list[Wire]] = defaultdict(list)
    for wire in items.get(kind, ()):
        wires[_key(wire)[0]].append(wire)
    readable = {namespace: _read(listed, read, faults) for namespace, listed in wires.items()}
    return {name: tuple(objects) if len(objects) == len(wires[name]) else None for name, objects in readable.items()}


def _read(wires: Iterable[Wire], read: Callable[[Wire], Any], faults: list[str]) -> list[Any]:
    """Read the objects that are understood; the others are named in `faults`."""
    objects = []
    for wire in wires:
        try:
            objects.append(read(wire))
        except ManifestError as error:
            faults.append(str(error))
    return objects


def _usage(wire: Wire) -> tuple[tuple[str, str], int]:
    used = [(container.get("usage") or {}).get("memory", "0") for container in wire.get("containers") or ()]
    try:
        return _key(wire), sum(whole(milli_of(str(text))) for text in used)
    except QuantityError as error:
        raise SourceRefused(f"PodMetrics {'/'.join(_key(wire))}: {error}") from error


def _key(wire: Wire) -> tuple[str, str]:
    metadata = wire.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _id(kind: str, wire: Wire) -> WorkloadId:
    namespace, name = _key(wire)
    return WorkloadId(namespace, kind, name)


def _controller(wire: Wire) -> tuple[str, str] | None:
    references = (wire.get("metadata") or {}).get("ownerReferences") or ()
    return next(((str(owner["kind"]), str(owner["name"])) for owner in references if owner.get("controller")), None)

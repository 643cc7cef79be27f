"""`admitted_pod`: the requests and limits that a new pod gets, and why others stay unchanged. Pure.

Sizes and proof are those of running pods (`resize`). The template's values are stored in the same annotation, so that
the pod is watched, rolled back and released like one that was resized.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from forecaster.actuators.headroom import NamespaceAdmission, admitted
from forecaster.actuators.resize.pods import BEFORE, LABEL, SIZE, WATCHED, resizable_pod, resized_text
from forecaster.actuators.resize.sized_pod import ResizablePod, Resized, Sizes, sizes_text
from forecaster.domain.workload import WorkloadId
from forecaster.publish.new_pods import NewPods, NewPodSize
from forecaster.publish.values import CLOCK_SKEW
from forecaster.vertical.admission.context import PART_SIZED, as_stated, with_values
from forecaster.vertical.cluster_rules.manifest import ManifestError, limit_range_of, node_of, quota_of, requirements_of
from forecaster.vertical.cluster_rules.node import Occupancy
from forecaster.vertical.cluster_rules.pod import Pod, Requirements
from forecaster.vertical.cluster_rules.resize import resize
from forecaster.vertical.cluster_rules.resource_list import CPU_RESOURCE
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server

Document = dict[str, Any]
WHY_MAX = 1000
MAX_CONTAINERS = 100
"""Containers of a pod beyond which it is not read: whatever may create pods states them, also by a dry run."""
TEMPLATE_HASHES = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
"""Pod label whose value ends the name of a ReplicaSet → kind of the object that made this ReplicaSet."""


class AdmissionOutcome(StrEnum):
    """Result for a new pod. There are few values, because they are labels of a metric."""

    SIZED = "sized"
    FITS = "fits"
    """The pod has the size already."""
    NOT_OFFERED = "not-offered"
    """The workload has another mode, is held, backs off, or is not known."""
    NOT_KNOWN = "not-known"
    """No cycle says anything: its file is absent, old, or cannot be read."""
    PAUSED = "paused"
    """All writing is paused by the annotation of the Lease."""
    OWNED = "owned"
    """Another writer sized it."""
    BUSY = "busy"
    """Too many pods are being answered; the pod is made as its template says."""
    INADMISSIBLE = "inadmissible"
    UNREADABLE = "unreadable"
    """The pod, or a rule of its namespace."""


@dataclass(frozen=True, slots=True)
class AdmittedPod:
    """Changes to a new pod; empty unless it is sized."""

    outcome: AdmissionOutcome
    why: str = ""
    sizes: Sizes = field(default_factory=dict)
    """Sizes of the containers that change."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def admitted_pod(document: Document, namespace: str, known: NewPods | None, now: datetime) -> AdmittedPod:
    """Return the size that a pod about to be created in a namespace gets, by the decisions of a cycle."""
    if known is None or not known.at - CLOCK_SKEW <= now < known.ends:
        return AdmittedPod(AdmissionOutcome.NOT_KNOWN, "no present cycle says a size")
    try:
        if sum(len(document["spec"].get(kind) or ()) for kind in ("containers", "initContainers")) > MAX_CONTAINERS:
            return AdmittedPod(AdmissionOutcome.UNREADABLE, f"more than {MAX_CONTAINERS} containers")
        pod = resizable_pod(_placed(document, namespace), lambda owner: owner_by_name(owner, document))
        id_ = pod.workload
        offered = known.sizes.get(id_.namespace, {}).get(id_.kind, {}).get(id_.name)
        if offered is None:
            return AdmittedPod(AdmissionOutcome.NOT_OFFERED, f"{id_} is offered no size")
        return _sized(pod, offered, admission_of(known, namespace), now)
    except (ManifestError, KeyError, TypeError, AttributeError, ValueError) as error:
        return AdmittedPod(AdmissionOutcome.UNREADABLE, str(error))


def owner_by_name(owner: WorkloadId, document: Document) -> WorkloadId:
    """The workload above a ReplicaSet, by the hash that both the pod and the ReplicaSet's name have; else the owner."""
    labels = document.get("metadata", {}).get("labels") or {}
    for label, kind in TEMPLATE_HASHES.items():
        end = f"-{labels.get(label, '')}"
        if owner.kind == "ReplicaSet" and label in labels and owner.name.endswith(end):
            return WorkloadId(owner.namespace, kind, owner.name.removesuffix(end))
    return owner


def admission_of(known: NewPods, namespace: str) -> NamespaceAdmission:
    """Return the admission rules of a namespace. Raises ManifestError."""
    ranges = tuple(limit_range_of(document) for document in known.limit_ranges.get(namespace, ()))
    quotas = tuple(quota_of(document) for document in known.quotas.get(namespace, ()))
    try:
        server = Server.parse(known.server)
    except ValueError:
        server = LATEST_SERVER
    return NamespaceAdmission(server, ranges, quotas, Occupancy(map(node_of, known.nodes)) if known.nodes else None)


def _sized(pod: ResizablePod, offered: NewPodSize, admission: NamespaceAdmission, now: datetime) -> AdmittedPod:
    if pod.owner or pod.fault:
        outcome = AdmissionOutcome.OWNED if pod.owner else AdmissionOutcome.UNREADABLE
        return AdmittedPod(outcome, pod.owner or pod.fault)
    before = pod.sizes if pod.resized is None else {**pod.sizes, **pod.resized.before}  # it may be asked for twice
    recommended = {name: requirements_of(block) for name, block in offered.containers.items()}
    own = replace(pod, pod=with_values(pod.pod, before))
    stated = as_stated(own.pod, recommended)
    unsized = PART_SIZED if recommended and not stated else ""
    nearest, refused = admitted(own.pod, stated, admission, replicas=offered.replicas) if stated else ({}, unsized)
    base = {**before, **nearest}
    more = boosted(own.pod, base, offered, admission)
    sizes = {name: size for name, size in {**base, **more}.items() if size != before[name]}
    if not sizes:
        outcome = AdmissionOutcome.INADMISSIBLE if refused else AdmissionOutcome.FITS
        return AdmittedPod(outcome, refused or f"it has the size.{offered.boost_why}".removesuffix("."))
    was = sizes_text({name: before[name] for name in sizes})
    nearly = f", as near as it is admitted: {refused}" if refused else ""
    boost = f" CPU limits are times {offered.boost:g} until it has started." if more and not offered.boosts else ""
    why = f"sized for {pod.workload}{nearly}. {offered.why}{boost}{offered.boost_why}"[:WHY_MAX]
    until = now + timedelta(seconds=offered.boost_seconds) if more else None
    had = Resized(before, now, 0, new=True, started={name: base[name] for name in more}, boosted_until=until)
    marks = {BEFORE: resized_text(had), SIZE: f"{was} → {sizes_text(sizes)}: {why}"}
    return AdmittedPod(AdmissionOutcome.SIZED, why, sizes, {LABEL: WATCHED}, marks)


def _placed(document: Document, namespace: str) -> Document:
    """Return the pod with namespace and name, which a new pod need not have yet."""
    meta = document.get("metadata") or {}
    return {**document, "metadata": {"name": meta.get("generateName", ""), **meta, "namespace": namespace}}


def boosted(pod: Pod, base: Sizes, offered: NewPodSize, admission: NamespaceAdmission) -> dict[str, Requirements]:
    """Return the sizes [container] of a new pod with more CPU than `base`; none where it could not go back.

    A Guaranteed pod has the limit of its request, and no resize changes the class of a pod; nor may the way back
    restart a container. It is as near to the factor as LimitRanges and quotas of its namespace admit. Requests stay,
    so where the pod runs, what quotas of requests count, and what an HPA divides by stay, too.
    """
    learned = {name: boost.factor for name, boost in offered.boosts.items()}
    factors = {container.name: learned.get(container.name, offered.boost) for container in pod.containers}
    more = {
        name: _times(size, factors[name])
        for name, size in base.items()
        if factors.get(name, 1.0) > 1.0 and size.limits.get(CPU_RESOURCE)
    }
    if not more:
        return {}
    own = with_values(pod, base)
    nearest, _ = admitted(own, more, admission, replicas=offered.replicas)
    raised = {name: nearest[name] for name in more if name in nearest and _raised(nearest[name], base[name])}
    back = resize(with_values(own, raised), own, admission.server)
    return raised if back.allowed and not back.restarts else {}


def _raised(size: Requirements, base: Requirements) -> bool:
    """Whether the limit is higher, and it alone: a Guaranteed pod is only admitted with a higher request, too."""
    return _limit(size) > _limit(base) and size.requests == base.requests


def _times(size: Requirements, factor: float) -> Requirements:
    return replace(size, limits={**size.limits, CPU_RESOURCE: round(_limit(size) * factor)})


def _limit(size: Requirements) -> int:
    return size.limits.get(CPU_RESOURCE, 0)

"""Watched objects in memory: workloads, HPAs and pods, each reduced as soon as it is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from forecaster.domain.quantity import QuantityError, parse_quantity
from forecaster.domain.workload import (
    LONGEST_NAME,
    Autoscaler,
    NamedContainer,
    Resources,
    Target,
    WorkloadId,
    scaled_workload,
    total,
)
from forecaster.hpa.manifest import spec_from_wire
from forecaster.hpa.selectors import selector_text
from forecaster.hpa.spec import HpaSpec
from forecaster.kube.objects import ANNOTATION_PREFIX, HorizontalPodAutoscalerMeta, ours
from forecaster.sources.live_targets import bounded_name, targets_of_hpa
from forecaster.sources.settings import ScalableKind

if TYPE_CHECKING:
    from forecaster.kube.objects import (
        ContainerObject,
        HorizontalPodAutoscaler,
        LabelledOnly,
        MetadataOnly,
        PodObject,
        PodSpec,
        Quantities,
        ResourceRequirements,
        Scalable,
    )

PODS_PATH = "/api/v1/pods"
REPLICA_SETS = "/apis/apps/v1/replicasets"
NODES_PATH = "/api/v1/nodes"
LONGEST_AMOUNT, FEW = 64, 32
"""Signs of an amount that is read, and containers whose sum is remembered: an owner can write a million each time."""
LIVING = frozenset({"Pending", "Running"})
"""Phases of pods that count; pods in other phases are not stored."""


BUILT_IN_KINDS = (
    ScalableKind(kind="Deployment", group="apps", version="v1", plural="deployments"),
    ScalableKind(kind="StatefulSet", group="apps", version="v1", plural="statefulsets"),
)


class LiveContainer(msgspec.Struct, frozen=True, gc=False):
    """One container of a template; native sidecars are distinguished from app containers."""

    name: str
    resources: Resources
    sidecar: bool = False


NO_TEXTS: Mapping[str, str] = MappingProxyType({})


class LiveWorkload(msgspec.Struct, frozen=True):
    """A Deployment, StatefulSet or custom resource. A change that leaves it equal is not passed on."""

    replicas: int
    ready: int
    selector: str
    containers: tuple[LiveContainer, ...]
    resources: Resources
    """Resources of one pod by the template, summed."""
    version: str
    """resourceVersion of the workload."""
    annotations: Mapping[str, str] = NO_TEXTS
    """Annotations of ours."""
    labels: Mapping[str, str] = NO_TEXTS
    """Labels without ours, which mark writes."""
    image: str = ""
    """Images of its app containers by the template, without tags."""
    revision: str = ""
    """Revision of a StatefulSet's template."""


class LiveHpa(msgspec.Struct, frozen=True):
    """An HPA: its specification with behavior, and its last action."""

    spec: HpaSpec
    targets: tuple[Target, ...]
    """Targets in the order of the inventory, as the scaled workload reads them."""
    meta: HorizontalPodAutoscalerMeta
    current: int
    desired: int
    written: int
    """Hash that distinguishes texts of the specification."""

    @property
    def scaled(self) -> WorkloadId:
        """Return the workload that it scales."""
        return scaled_id(self.meta.namespace, self.spec)


class Misread(NamedTuple):
    """An HPA that reads our demand in a way that has no answer, and what to mend."""

    hpa: HorizontalPodAutoscalerMeta
    why: str

    def __str__(self) -> str:
        return f"HPA {self.hpa.namespace}/{self.hpa.name}: {self.why}"


class LivePod(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A living pod. Instants are seconds since 1970, 0 for stages that it has not reached."""

    owner: WorkloadId
    """The controller: of a Deployment's pod its ReplicaSet."""
    created: float
    scheduled: float
    ready: float
    """Instant when it was first seen ready."""
    phase: str
    node: str
    resources: Resources
    unready: float = 0.0
    """Instant since which the pod is not ready again; 0 if it is ready, or never was."""
    restarts: int = 0
    """Restarts of all containers."""
    restarted: float = 0.0
    """Instant of the last end of a container that was restarted; not by the loss of its node."""
    lost: bool = False
    """Whether its node does not answer, so that the pod's state is not known."""


_NOTHING = Resources()
NODE_LOST = frozenset({"Unknown", "ContainerStatusUnknown"})
"""Reasons of the end of a container whose node was lost or restarted under it."""


def workload_of_object(workload: Scalable) -> LiveWorkload:
    """Reduce a workload. `spec.replicas` is 1 where it is absent. Raises ValueError where its count is elsewhere."""
    spec, pods = workload.spec, workload.status.replicas
    if spec.replicas is None and pods is None:
        raise ValueError("it states neither spec.replicas nor status.replicas")
    return LiveWorkload(
        replicas=max(1, pods or 0) if spec.replicas is None else spec.replicas,
        ready=workload.status.ready_replicas,
        selector=selector_text(spec.selector) if spec.selector else "",
        containers=_containers(spec.template.spec),
        resources=pod_resources(spec.template.spec),
        version=workload.metadata.resource_version,
        annotations=ours(workload.metadata.annotations) or NO_TEXTS,
        labels=_labels(workload.metadata.labels),
        image=_image(spec.template.spec),
        revision=_text(workload.status.update_revision),
    )


def hpa_of_object(hpa: HorizontalPodAutoscaler, before: LiveHpa | None = None) -> LiveHpa:
    """Reduce an HPA; the API server has filled in its defaults.

    Its status changes at every sync, its specification seldom: the parsed specification of `before` is reused if it is
    equal.
    """
    meta, status = hpa.metadata, hpa.status
    written = hash(bytes(hpa.spec))
    if before is not None and before.written == written:
        spec, targets = before.spec, before.targets
    else:
        spec = spec_from_wire(_wire.decode(hpa.spec), meta.name, meta.namespace)
        targets = targets_of_hpa(spec, scaled_id(meta.namespace, spec))
    return LiveHpa(spec, targets, meta.ours(), status.current_replicas, status.desired_replicas, written)


_wire = msgspec.json.Decoder(dict[str, Any])


def pod_of_object(pod: PodObject, before: LivePod | None = None) -> LivePod | None:
    """Reduce a pod; None if it has ended, is being deleted or has no controller.

    If the pod was ready `before` and is ready again, the first time counts.
    """
    owner = pod.metadata.controller()
    if owner is None or pod.status.phase not in LIVING or pod.metadata.deletion_timestamp is not None:
        return None
    since = {each.type: each.last_transition_time for each in pod.status.conditions if each.status == "True"}
    scheduled, ready = since.get("PodScheduled"), since.get("Ready")
    created = pod.metadata.creation_timestamp.timestamp() if pod.metadata.creation_timestamp else 0.0
    first = before.ready if before is not None and before.created == created else 0.0
    first = first or (ready.timestamp() if ready else 0.0)
    lost = next((each.last_transition_time for each in pod.status.conditions if each.type == "Ready"), None)
    last = [each.last_state.terminated for each in pod.status.container_statuses]
    ended = [each for each in last if each is None or each.reason not in NODE_LOST]
    return LivePod(
        owner=workload_id(pod.metadata.namespace, owner.kind, owner.name),
        created=created,
        scheduled=scheduled.timestamp() if scheduled else 0.0,
        ready=first,
        phase=_text(pod.status.phase),
        node=_text(pod.spec.node_name),
        resources=pod_resources(pod.spec),
        unready=lost.timestamp() if lost and first and not ready else 0.0,
        restarts=sum(each.restart_count for each in pod.status.container_statuses),
        restarted=max((each.finished_at.timestamp() for each in ended if each and each.finished_at), default=0.0),
        lost=_is_lost(pod),
    )


def _is_lost(pod: PodObject) -> bool:
    """Whether the node of a pod is NotReady: then the node controller alone takes Ready from it, without a reason.

    `MarkPodsNotReady` in Kubernetes' pkg/controller/util/node/controller_utils.go; a kubelet states a reason.
    """
    conditions = {each.type: each for each in pod.status.conditions}
    ready, containers = conditions.get("Ready"), conditions.get("ContainersReady")
    if ready is None or containers is None:
        return False
    return ready.status == "False" and not ready.reason and containers.status == "True"


SCHEDULING_SECONDS = 5.0
"""Normal time in the scheduler's queue; a pod without a node for longer is unschedulable, not slow."""


def start_up(pod: LivePod) -> timedelta:
    """Return the time from a ready pod's creation until it was ready, without the time in which it had no node."""
    placed = pod.scheduled or pod.created
    return timedelta(seconds=max(0.0, pod.ready - placed) + min(max(0.0, placed - pod.created), SCHEDULING_SECONDS))


def owner_of_object(replica_set: MetadataOnly) -> WorkloadId:
    """Return the controller of a ReplicaSet, or the ReplicaSet itself if it has none."""
    meta, owner = replica_set.metadata, replica_set.metadata.controller()
    return workload_id(meta.namespace, *(("ReplicaSet", meta.name) if owner is None else (owner.kind, owner.name)))


class NodePlace(NamedTuple):
    """Node pool and zone of a node; empty where no label states them."""

    pool: str = ""
    zone: str = ""


ZONE_LABEL = "topology.kubernetes.io/zone"


def place_of_object(node: LabelledOnly, labels: Sequence[str]) -> NodePlace:
    """Return the place of a node; its pool by the first of these labels that it has."""
    node_labels = node.metadata.labels
    pool = next((_text(node_labels[name]) for name in labels if node_labels.get(name)), "")
    return NodePlace(pool, _text(node_labels.get(ZONE_LABEL) or ""))


def workload_id(namespace: str, kind: str, name: str) -> WorkloadId:
    """Return the identity, one object for all pods of a workload."""
    return _one_id(namespace, bounded_name(kind), bounded_name(name))


_one_id = lru_cache(maxsize=1 << 17)(WorkloadId)


def scaled_id(namespace: str, spec: HpaSpec) -> WorkloadId:
    """Return the workload that an HPA counts and measures."""
    target = spec.scale_target
    return workload_id(*scaled_workload(namespace, target.kind, target.name, target.api_version))


def _image(spec: PodSpec) -> str:
    """The images of the app containers without tags and digests, which differ by release: `registry/shop/web`."""
    images = (container.image for container in spec.containers or ())
    return _text(", ".join(sorted({_repository(image) for image in images if image})))


def _repository(image: str) -> str:
    """Return the part before `@digest` and `:tag`; the port of a registry stays.

    >>> _repository("registry:5000/shop/web:1.2@sha256:abc"), _repository("web")
    ('registry:5000/shop/web', 'web')
    """
    host, slash, name = image.partition("@")[0].rpartition("/")
    return f"{host}{slash}{name.partition(':')[0]}"


def _labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return labels with shared keys and values, as many workloads have the same ones."""
    return {
        _text(key): _text(text) for key, text in labels.items() if not key.startswith(ANNOTATION_PREFIX)
    } or NO_TEXTS


def _text(text: str) -> str:
    """Return one object for equal texts; one that is longer than a name is not remembered for others."""
    return text if len(text) > LONGEST_NAME else _one_text(text)


_one_text = lru_cache(maxsize=1 << 14)(str)


def pod_resources(spec: PodSpec) -> Resources:
    """Return requests and limits of one pod as the HPA counts them (HPA rules §7).

    The pod's own if stated, else the sum over app containers and native sidecars; None where one of these states none.
    """
    running = [*(spec.containers or ()), *_sidecars(spec)]
    parts = tuple(_stated(container.resources) for container in running)
    summed = total(parts) if len(parts) > FEW else _total_of_few(parts)  # one object for equal parts
    if spec.resources is None:
        return summed
    own = _stated(spec.resources)
    return Resources(
        *(stated if stated is not None else other for stated, other in zip(own.amounts, summed.amounts, strict=True))
    )


def _containers(spec: PodSpec) -> tuple[LiveContainer, ...]:
    app = [LiveContainer(_text(container.name), _stated(container.resources)) for container in spec.containers or ()]
    sidecars = (LiveContainer(_text(each.name), _stated(each.resources), sidecar=True) for each in _sidecars(spec))
    return (*app, *sidecars)


def _sidecars(spec: PodSpec) -> Iterator[ContainerObject]:
    return (container for container in spec.init_containers or () if container.restart_policy == "Always")


def _stated(requirements: ResourceRequirements | None) -> Resources:
    if requirements is None:
        return _NOTHING
    requests, limits = requirements.requests or {}, requirements.limits or {}
    return _resources(
        _written(requests, "cpu"), _written(limits, "cpu"), _written(requests, "memory"), _written(limits, "memory")
    )


def _written(amounts: Quantities, resource: str) -> str:
    text = str(amounts.get(resource, ""))
    return text if len(text) <= LONGEST_AMOUNT else "too long"


@lru_cache(maxsize=1 << 14)
def _resources(*texts: str) -> Resources:
    """Return one object for equal texts; an amount that cannot be read is absent."""
    return Resources(*map(_amount, texts))


def _amount(text: str) -> float | None:
    if not text:
        return None
    try:
        return -(-parse_quantity(text).nano // 10**6) / 1000  # in milli-units, as kube-state-metrics has it
    except QuantityError:
        return None


_total_of_few = lru_cache(maxsize=1 << 14)(total)


def named_containers(workload: LiveWorkload, scaler: Autoscaler | None) -> tuple[NamedContainer, ...]:
    """Return the containers that an HPA names, with the template's values."""
    named = {target.container for target in scaler.targets} if scaler else set()
    return tuple(NamedContainer(each.name, each.resources) for each in workload.containers if each.name in named)


def mean_resources(pods: Sequence[tuple[Resources, int]]) -> Resources:
    """Return the mean over pods with their numbers; a pod without an amount does not count for that amount."""
    if len(pods) == 1:
        return pods[0][0]
    return Resources(*(_weighted([(resources.amounts[i], count) for resources, count in pods]) for i in range(4)))


def _weighted(amounts: Iterable[tuple[float | None, int]]) -> float | None:
    known = [(amount, count) for amount, count in amounts if amount is not None]
    return sum(amount * count for amount, count in known) / sum(count for _, count in known) if known else None

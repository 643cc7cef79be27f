"""Other controllers that scale or size workloads: HPAs, KEDA's ScaledObjects, VPAs; and what each leaves to us."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

import msgspec

from forecaster.domain.workload import WorkloadId, scaled_workload
from forecaster.kube.client import ApiClient, ApiError
from forecaster.kube.collection import PAGE_ITEMS, listed
from forecaster.kube.objects import AnnotatedMeta, Wire
from forecaster.kube.watch import Followed
from forecaster.resources.objects import TargetReference
from forecaster.vertical.recommenders.baselines import VpaSizes, vpa_sizes

HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/scaledobjects"
VPAS = "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"
KEDA = "autoscaling.keda.sh/"
PAUSED = (f"{KEDA}paused", f"{KEDA}paused-replicas", f"{KEDA}paused-scale-in", f"{KEDA}paused-scale-out")
OFF = "Off"
ALL_CONTAINERS = "*"
CPU, MEMORY = "cpu", "memory"


class ContainerPolicy(Wire, frozen=True):
    """Policy of a VerticalPodAutoscaler for one container or all."""

    container_name: str = ALL_CONTAINERS
    mode: str = "Auto"
    min_allowed: dict[str, Any] = msgspec.field(default_factory=dict)
    controlled_resources: tuple[str, ...] = (CPU, MEMORY)


class ResourcePolicy(Wire, frozen=True):
    """Resource policy of a VerticalPodAutoscaler."""

    container_policies: tuple[ContainerPolicy, ...] = ()


class UpdatePolicy(Wire, frozen=True):
    """Update policy of a VerticalPodAutoscaler; updateMode defaults to Auto."""

    update_mode: str = "Auto"


class NeighbourSpec(Wire, frozen=True):
    """The fields of an HPA, a ScaledObject or a VPA that are needed here."""

    scale_target_ref: TargetReference | None = None
    target_ref: TargetReference | None = None
    update_policy: UpdatePolicy | None = None
    resource_policy: ResourcePolicy | None = None


class NeighbourObject(Wire, frozen=True):
    """One of them on the wire."""

    metadata: AnnotatedMeta
    spec: NeighbourSpec = NeighbourSpec()
    status: msgspec.Raw = msgspec.Raw(b"null")
    """Needed of a VPA alone."""


class Hpa(NamedTuple):
    """A HorizontalPodAutoscaler."""

    name: str
    target: WorkloadId
    maker: str
    """KIND NAME of the object that it is made from; empty where it has none."""


class ScaledObject(NamedTuple):
    """KEDA's."""

    name: str
    target: WorkloadId
    paused: str
    """Value of the annotation that pauses it; empty where it is absent."""

    def __str__(self) -> str:
        return f"ScaledObject {self.name}" + (f" (paused by {self.paused})" if self.paused else "")


class VpaNeighbour(NamedTuple):
    """A VerticalPodAutoscaler."""

    name: str
    target: WorkloadId
    mode: str
    least: dict[str, Any]
    """`minAllowed` of every container."""
    resources: frozenset[str] = frozenset({CPU, MEMORY})
    """Resources whose requests it sets, in any container."""
    sizes: VpaSizes = VpaSizes("", "")
    """Its recommendation, in any mode."""

    @property
    def writes(self) -> bool:
        """Whether it sets requests: in every mode but Off, also `Initial`."""
        return self.mode != OFF


N = TypeVar("N", Hpa, ScaledObject, VpaNeighbour)


@dataclass(frozen=True)
class Neighbours:
    """Other autoscalers in a cluster."""

    hpas: Sequence[Hpa] = ()
    scaled_objects: Sequence[ScaledObject] = ()
    vpas: Sequence[VpaNeighbour] = ()
    unknown: dict[str, str] = field(default_factory=dict)
    """Collections that could not be read, by path, and why. A kind that is not installed is empty, and not unknown."""

    def scaled_object(self, id_: WorkloadId) -> ScaledObject | None:
        """Return the ScaledObject of a workload; also if paused: then KEDA has removed its HPA, and set the count."""
        scaled_objects = self._scaled_by.get(id_)
        return scaled_objects[-1] if scaled_objects else None

    def writes_sizes(self, id_: WorkloadId, resource: str = "") -> str:
        """Say why requests of a workload are not ours alone, for any resource or for one; empty where they are.

        A VPA in mode `Off` does not count. One that could not be read may exist: without knowledge nothing is written.
        """
        for vpa in self._sized_by.get(id_, ()):
            if vpa.writes and (not resource or resource in vpa.resources):
                mode = f"its updateMode is {vpa.mode}"
                return f"VPA {vpa.name} writes its requests, {mode}; set it to Off, or let it size alone"
        return self.not_known(VPAS)

    def sizes(self) -> dict[WorkloadId, tuple[VpaSizes, ...]]:
        """Return the recommendations of VPAs, by workload."""
        return {id_: tuple(vpa.sizes for vpa in vpas) for id_, vpas in self._sized_by.items()}

    def not_known(self, path: str) -> str:
        """Say why the objects of a collection are not known; empty where they are."""
        return f"{path} is not known: {self.unknown[path]}" if path in self.unknown else ""

    @cached_property
    def _scaled_by(self) -> Mapping[WorkloadId, list[ScaledObject]]:
        return by_target(self.scaled_objects)

    @cached_property
    def _sized_by(self) -> Mapping[WorkloadId, list[VpaNeighbour]]:
        return by_target(self.vpas)


def by_target(autoscalers: Iterable[N]) -> dict[WorkloadId, list[N]]:
    """Autoscalers by the workload that they are about, in their order."""
    grouped: dict[WorkloadId, list[N]] = {}
    for autoscaler in autoscalers:
        grouped.setdefault(autoscaler.target, []).append(autoscaler)
    return grouped


def neighbours_of(
    client: ApiClient,
    paths: Sequence[str] = (HPAS, SCALED_OBJECTS, VPAS),
    followed: Followed | None = None,
) -> Neighbours:
    """Return the other autoscalers in these collections; a collection that the API server refuses is unknown.

    What is `followed` is not listed again. Raises UnreachableError where the API server does not answer.
    """
    unknown: dict[str, str] = {}
    hpas, scaled, vpas = (
        _known(client, path, unknown, followed) if path in paths else () for path in (HPAS, SCALED_OBJECTS, VPAS)
    )
    return Neighbours(hpas, scaled, vpas, unknown)


def _known(client: ApiClient, path: str, unknown: dict[str, str], followed: Followed | None) -> Sequence[Any]:
    """Return the objects of a collection, reduced to the needed fields."""
    known, reduce = followed.objects(path) if followed else None, REDUCED[path]
    if known is not None:
        return known
    try:
        reduced = [reduce(object_) for object_ in listed(client, path, NeighbourObject, limit=PAGE_ITEMS)]
    except ApiError as error:
        if error.status == 0:
            raise
        if error.status != HTTPStatus.NOT_FOUND and not _is_of_no_kind(client, path, error):
            unknown[path] = str(error)
        return ()
    if followed:
        followed.begin(path, NeighbourObject, reduce)
    return reduced


def _is_of_no_kind(client: ApiClient, path: str, error: ApiError) -> bool:
    """Whether a refusal is of a kind that the cluster does not have: rights are judged before kinds."""
    if error.status != HTTPStatus.FORBIDDEN:
        return False
    try:
        client.get(path.rpartition("/")[0], dict)
    except ApiError as absent:
        if absent.status == 0:
            raise
        return absent.status == HTTPStatus.NOT_FOUND
    return False


def _hpa(object_: NeighbourObject) -> Hpa:
    maker = object_.metadata.controller()
    return Hpa(object_.metadata.name, _target(object_), f"{maker.kind} {maker.name}" if maker else "")


def _scaled_object(object_: NeighbourObject) -> ScaledObject:
    annotations = object_.metadata.annotations
    paused = [name for name in PAUSED if annotations.get(name, "false") != "false"]
    return ScaledObject(object_.metadata.name, _target(object_), paused[0] if paused else "")


def _vpa(object_: NeighbourObject) -> VpaNeighbour:
    policies = object_.spec.resource_policy.container_policies if object_.spec.resource_policy else ()
    least = next((policy.min_allowed for policy in policies if policy.container_name == ALL_CONTAINERS), {})
    mode = object_.spec.update_policy.update_mode if object_.spec.update_policy else "Auto"
    name, status = object_.metadata.name, msgspec.json.decode(object_.status)
    return VpaNeighbour(name, _target(object_), mode, dict(least), _controlled(policies), vpa_sizes(name, mode, status))


def vpa_of_document(document: Mapping[str, Any]) -> VpaNeighbour:
    """A VPA as `kubectl get -o json` prints it. Raises ValueError where it has another form."""
    return _vpa(msgspec.json.decode(msgspec.json.encode(document), type=NeighbourObject))


def _controlled(policies: Sequence[ContainerPolicy]) -> frozenset[str]:
    """Return the resources set in any container; both for containers without a policy."""
    written = [policy.controlled_resources for policy in policies if policy.mode != OFF]
    every = () if any(policy.container_name == ALL_CONTAINERS for policy in policies) else (CPU, MEMORY)
    return frozenset(every).union(*written)


def _target(object_: NeighbourObject) -> WorkloadId:
    reference = object_.spec.scale_target_ref or object_.spec.target_ref or TargetReference()
    return scaled_workload(object_.metadata.namespace, reference.kind, reference.name, reference.api_version or None)


REDUCED: Mapping[str, Callable[[NeighbourObject], Any]] = {HPAS: _hpa, SCALED_OBJECTS: _scaled_object, VPAS: _vpa}
"""Reduction of an object, by its collection."""

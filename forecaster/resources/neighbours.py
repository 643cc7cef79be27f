"""What else scales or sizes workloads: HPAs, KEDA's ScaledObjects, VPAs; and what each leaves to us."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec

from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiError
from forecaster.kube.objects import AnnotatedMeta, Wire
from forecaster.kube.watch import PAGE, ListMeta
from forecaster.resources.objects import TargetReference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.kube.client import ApiClient

HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/scaledobjects"
VPAS = "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"
KEDA = "autoscaling.keda.sh/"
PAUSED = (f"{KEDA}paused", f"{KEDA}paused-replicas", f"{KEDA}paused-scale-in", f"{KEDA}paused-scale-out")
OFF = "Off"
EVERY_CONTAINER = "*"


class ContainerPolicy(Wire, frozen=True):
    """Of a VPA, for one container or all."""

    container_name: str = EVERY_CONTAINER
    min_allowed: dict[str, Any] = msgspec.field(default_factory=dict)


class ResourcePolicy(Wire, frozen=True):
    """Of a VPA."""

    container_policies: tuple[ContainerPolicy, ...] = ()


class UpdatePolicy(Wire, frozen=True):
    """Of a VPA: `Auto` where it states none."""

    update_mode: str = "Auto"


class NeighbourSpec(Wire, frozen=True):
    """What is needed of an HPA, a ScaledObject or a VPA."""

    scale_target_ref: TargetReference | None = None
    target_ref: TargetReference | None = None
    update_policy: UpdatePolicy | None = None
    resource_policy: ResourcePolicy | None = None


class NeighbourObject(Wire, frozen=True):
    """One of them on the wire."""

    metadata: AnnotatedMeta
    spec: NeighbourSpec = NeighbourSpec()


class NeighbourPage(Wire, frozen=True):
    """A page of one kind."""

    metadata: ListMeta = ListMeta()
    items: tuple[NeighbourObject, ...] = ()


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
    """Its annotation that pauses it; empty where none does."""


class VpaNeighbour(NamedTuple):
    """A VerticalPodAutoscaler."""

    name: str
    target: WorkloadId
    mode: str
    least: dict[str, Any]
    """`minAllowed` of every container."""

    @property
    def writes(self) -> bool:
        """Whether it sets requests: in every mode but Off, also `Initial`."""
        return self.mode != OFF


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Those of a cluster."""

    hpas: Sequence[Hpa] = ()
    scaled_objects: Sequence[ScaledObject] = ()
    vpas: Sequence[VpaNeighbour] = ()
    unknown: dict[str, str] = field(default_factory=dict)
    """Collections that could not be read, by path, and why. One whose kind is not there is empty, and not unknown."""

    def writes_count(self, id_: WorkloadId) -> str:
        """Why the count of a workload is not ours to write by itself; empty where it is.

        A ScaledObject owns it also while it is paused: then KEDA has removed its HPA, and set the count.
        """
        for one in self.scaled_objects:
            if one.target == id_:
                return f"ScaledObject {one.name} scales it" + (f", paused by {one.paused}" if one.paused else "")
        for hpa in self.hpas:
            if hpa.target == id_:
                return f"HPA {hpa.name} scales it"
        return self._unknown(SCALED_OBJECTS, HPAS)

    def writes_sizes(self, id_: WorkloadId) -> str:
        """Why requests and limits of a workload are not ours to write; empty where they are, as beside a VPA `Off`."""
        for one in self.vpas:
            if one.target == id_ and one.writes:
                return f"VPA {one.name} writes them, its updateMode is {one.mode}; set it to Off, or let it size alone"
        return self._unknown(VPAS)

    def _unknown(self, *paths: str) -> str:
        """Not knowing is no leave to write."""
        return "; ".join(f"{path} is not known: {self.unknown[path]}" for path in paths if path in self.unknown)


def neighbours_of(client: ApiClient) -> Neighbours:
    """Those that the API server lists; what it refuses is unknown. Raises UnreachableError where it does not answer."""
    unknown: dict[str, str] = {}
    hpas, scaled, vpas = (_listed(client, path, unknown) for path in (HPAS, SCALED_OBJECTS, VPAS))
    return Neighbours([*map(_hpa, hpas)], [*map(_scaled_object, scaled)], [*map(_vpa, vpas)], unknown)


def _listed(client: ApiClient, path: str, unknown: dict[str, str]) -> tuple[NeighbourObject, ...]:
    found: tuple[NeighbourObject, ...] = ()
    after = ""
    try:
        while True:
            page = client.get(f"{path}?limit={PAGE}{after}", NeighbourPage)
            found += page.items
            if not page.metadata.more:
                return found
            after = f"&continue={quote(page.metadata.more, safe='')}"
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return ()
        if error.status == 0:
            raise
        unknown[path] = str(error)
        return ()


def _hpa(one: NeighbourObject) -> Hpa:
    maker = one.metadata.controller()
    return Hpa(one.metadata.name, _target(one), f"{maker.kind} {maker.name}" if maker else "")


def _scaled_object(one: NeighbourObject) -> ScaledObject:
    annotations = one.metadata.annotations
    paused = [name for name in PAUSED if annotations.get(name, "false") != "false"]
    return ScaledObject(one.metadata.name, _target(one), paused[0] if paused else "")


def _vpa(one: NeighbourObject) -> VpaNeighbour:
    policies = one.spec.resource_policy.container_policies if one.spec.resource_policy else ()
    least = next((each.min_allowed for each in policies if each.container_name == EVERY_CONTAINER), {})
    mode = one.spec.update_policy.update_mode if one.spec.update_policy else "Auto"
    return VpaNeighbour(one.metadata.name, _target(one), mode, dict(least))


def _target(one: NeighbourObject) -> WorkloadId:
    found = one.spec.scale_target_ref or one.spec.target_ref or TargetReference()
    return WorkloadId(one.metadata.namespace, found.kind, found.name)

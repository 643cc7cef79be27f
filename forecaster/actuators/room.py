"""What a namespace admits: room in its quotas for the pods of a raised count, and sizes of pods. Asked before a write.

Pods beyond a quota are refused one by one, in Events of a ReplicaSet that few look at. What a pod is charged is the
rule of the vertical side: the template's requests and limits, with the defaults of LimitRanges where it states none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from forecaster.actuators.writes import RefusalReason, WriteRefusal, WrittenObject
from forecaster.kube.client import ApiClient, ApiError, UnreachableError
from forecaster.kube.collection import ObjectPage
from forecaster.kube.objects import Wire
from forecaster.vertical.admission.context import WHOLE_POD, AdmissionContext, Rollout
from forecaster.vertical.admission.proof import prove
from forecaster.vertical.cluster_rules.manifest import ManifestError, pod_of
from forecaster.vertical.cluster_rules.quota import Quota, charge, charged_with, times_fitting
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from forecaster.actuators.resize.sized_pod import Sizes
    from forecaster.domain.workload import WorkloadId
    from forecaster.sources.settings import ScalableKind
    from forecaster.vertical.cluster_rules.limit_range import LimitRange
    from forecaster.vertical.cluster_rules.node import Occupancy
    from forecaster.vertical.cluster_rules.pod import Pod


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the cluster says to sizes in a namespace; None is not known."""

    server: Server
    limit_ranges: tuple[LimitRange, ...] | None = None
    quotas: tuple[Quota, ...] | None = None
    nodes: Occupancy | None = None
    """One of each kind, with nothing but daemons on it; of pods that run, their own node says what it grants."""


AroundAt: TypeAlias = "Callable[[str], Surroundings]"
"""What admits pods in a namespace. Raises ApiError."""
TemplateOf: TypeAlias = "Callable[[WorkloadId], Pod | None]"
"""A new pod of a workload; None where it is gone. Raises ApiError and ManifestError."""


class Room(NamedTuple):
    """How many of the pods that were asked for fit."""

    pods: int
    why: str = ""
    """Why no more do; empty where all fit."""
    quotas: tuple[Quota, ...] = ()
    """After them."""


def room(pod: Pod, more: int, quotas: Sequence[Quota], server: Server) -> Room:
    """How many of `more` new pods fit into all quotas, and which of them refuses the next one."""
    charged = [(one, charge(one, pod, server=server)) for one in quotas]
    fits = min([more, *(times_fitting(one, each.growth, more) if each.admitted else 0 for one, each in charged)])
    left = tuple(charged_with(one, each.growth, fits) for one, each in charged)
    refused = [f"quota {why}" for one in left if fits < more for why in charge(one, pod, server=server).refusals]
    return Room(fits, "; ".join(refused), left)


@dataclass(slots=True)
class Rooms:
    """The room of each namespace in one cycle: what one workload is given, the next one has no more."""

    around: AroundAt
    template: TemplateOf
    known: dict[str, Surroundings | None] = field(default_factory=dict)
    """None: quotas may not be read."""

    def take(self, id_: WorkloadId, more: int) -> Room:
        """The room for so many more pods of a workload; for all of them where quotas are not known. Raises ApiError."""
        around = self._around(id_.namespace)
        if around is None or not around.quotas or more <= 0:
            return Room(more)
        pod = self._template(id_)
        if pod is None:
            return Room(more)
        completed = AdmissionContext(pod, limit_ranges=around.limit_ranges, server=around.server).completed({})
        found = room(completed, more, around.quotas, around.server)
        self.known[id_.namespace] = replace(around, quotas=found.quotas)
        return found

    def _around(self, namespace: str) -> Surroundings | None:
        if namespace not in self.known:
            try:
                self.known[namespace] = self.around(namespace)
            except UnreachableError:
                raise
            except (ApiError, ManifestError):
                self.known[namespace] = None
        return self.known[namespace]

    def _template(self, id_: WorkloadId) -> Pod | None:
        try:
            return self.template(id_)
        except UnreachableError:
            raise
        except (ApiError, ManifestError):
            return None


TakeRoom: TypeAlias = "Callable[[WorkloadId, int], Room]"
"""The room for so many more pods of a workload. Raises ApiError."""


def no_quotas() -> Rooms:
    """Return no quotas, where none are read."""
    return Rooms(lambda _: Surroundings(LATEST_SERVER), lambda _: None)


def unbounded(_: WorkloadId, more: int) -> Room:
    """Return capacity for all pods asked for, where no quotas are read."""
    return Room(more)


def fitting(
    take: TakeRoom, one: WrittenObject, *, count: int, written: int, pods: int
) -> tuple[int, str] | WriteRefusal:
    """Return what of a raise from `written` to `count` fits beside `pods`, and why no more. Raises ApiError."""
    found = take(one.workload, count - pods)
    fits = pods + found.pods
    if not found.why or fits >= count:
        return count, ""
    if fits > written:
        return fits, f"{fits} fit: {found.why}"
    return WriteRefusal(one, RefusalReason.QUOTA, f"{one}: {count} do not fit: {found.why}")


class TemplateSpec(Wire, frozen=True):
    """What is needed of a workload's specification."""

    template: dict[str, Any]


class TemplateOwner(Wire, frozen=True):
    """A workload."""

    spec: TemplateSpec


class Templates:
    """Pod templates of the given kinds, which we may list."""

    def __init__(self, client: ApiClient, kinds: Iterable[ScalableKind]) -> None:
        self._client = client
        self._kinds = {one.kind: one for one in kinds}

    def of(self, id_: WorkloadId) -> Pod | None:
        """A new pod of a workload; None where that is gone, or of another kind. Raises ApiError and ManifestError."""
        kind = self._kinds.get(id_.kind)
        if kind is None:
            return None
        path = f"/apis/{kind.group}/{kind.version}/namespaces/{id_.namespace}/{kind.plural}"
        found = self._client.get(f"{path}?fieldSelector=metadata.name%3D{id_.name}", ObjectPage[TemplateOwner])
        return next((pod_of(one.spec.template) for one in found.items or ()), None)


def admitted(
    pod: Pod,
    wanted: Sizes,
    around: Surroundings,
    *,
    running: tuple[tuple[Pod, str], ...] = (),
    replicas: int = 1,
) -> tuple[Sizes, str]:
    """The sizes that the cluster takes, the nearest to those that are wanted; none where none are. And its refusals.

    Of a pod that is `running` on a node; else of one that is made, of `replicas` which are all to have this size.
    """
    context = AdmissionContext(
        template=pod,
        rollout=Rollout(replicas=replicas),
        limit_ranges=around.limit_ranges,
        quotas=around.quotas,
        occupancy=around.nodes,
        server=around.server,
        running=running,
        in_place=bool(running),
    )
    names = {WHOLE_POD, *(one.name for one in pod.every_container())}
    proof = prove({name: size for name, size in wanted.items() if name in names}, context)
    return proof.nearest or {}, "; ".join(map(str, proof.refusals))

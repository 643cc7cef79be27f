"""Capacity of a namespace: its quotas for the pods of a raised count, and sizes of pods; checked before a write.

Pods beyond a quota are refused one by one, in Events of a ReplicaSet that few people read. The charge of a pod is
computed by the vertical side: the template's requests and limits, with the defaults of LimitRanges where it states
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from forecaster.actuators.writes import RefusalReason, WriteRefusal, WrittenObject
from forecaster.kube.client import ApiClient, ApiError
from forecaster.kube.collection import ObjectPage
from forecaster.kube.objects import Wire
from forecaster.kube.watch import REFUSED_STATUS
from forecaster.vertical.admission.context import WHOLE_POD, AdmissionContext, Rollout
from forecaster.vertical.admission.proof import prove
from forecaster.vertical.cluster_rules.manifest import ManifestError, pod_of
from forecaster.vertical.cluster_rules.quota import Quota, charge, charged_with, times_fitting

if TYPE_CHECKING:
    from forecaster.actuators.resize.sized_pod import Sizes
    from forecaster.domain.workload import WorkloadId
    from forecaster.sources.settings import ScalableKind
    from forecaster.vertical.cluster_rules.limit_range import LimitRange
    from forecaster.vertical.cluster_rules.node import Occupancy
    from forecaster.vertical.cluster_rules.pod import Pod
    from forecaster.vertical.cluster_rules.server import Server


@dataclass(frozen=True, slots=True)
class NamespaceAdmission:
    """Admission rules of a namespace; None where one is not known."""

    server: Server
    limit_ranges: tuple[LimitRange, ...] | None = None
    quotas: tuple[Quota, ...] | None = None
    nodes: Occupancy | None = None
    """One node of each kind, with daemons only; a running pod is checked against its own node."""


T = TypeVar("T")
AdmissionAt: TypeAlias = "Callable[[str], NamespaceAdmission]"
"""Returns the admission rules of a namespace. Raises ApiError."""
TemplateOf: TypeAlias = "Callable[[WorkloadId], Pod | None]"
"""A new pod of a workload; None where it is gone. Raises ApiError and ManifestError."""


QUOTAS_NOT_READ = "without a look at quotas, which may not be read: `forecaster doctor` names the right"


class QuotaFit(NamedTuple):
    """Number of requested pods that fit."""

    pods: int
    why: str = ""
    """Reason why no more fit, or why that is not known; empty where all fit."""
    quotas: tuple[Quota, ...] = ()
    """The quotas after these pods."""


def quota_fit(pod: Pod, more: int, quotas: Sequence[Quota], server: Server) -> QuotaFit:
    """Return how many of `more` new pods fit into all quotas, and which quota refuses the next one."""
    charged = [(quota, charge(quota, pod, server=server)) for quota in quotas]
    fits = min([more, *(times_fitting(quota, added.growth, more) if added.admitted else 0 for quota, added in charged)])
    left = tuple(charged_with(quota, added.growth, fits) for quota, added in charged)
    refused = [f"quota {why}" for quota in left if fits < more for why in charge(quota, pod, server=server).refusals]
    return QuotaFit(fits, "; ".join(refused), left)


@dataclass(slots=True)
class QuotaHeadroom:
    """Free quota of each namespace in one cycle: each reservation reduces it."""

    admission: AdmissionAt
    template: TemplateOf
    known: dict[str, NamespaceAdmission | None] = field(default_factory=dict)
    """None: quotas may not be read."""

    def reserve(self, id_: WorkloadId, more: int) -> QuotaFit:
        """Reserve quota for `more` pods of a workload; all fit where quotas may not be read. Raises ApiError."""
        if id_.namespace not in self.known:
            self.known[id_.namespace] = _readable(lambda: self.admission(id_.namespace))
        admission = self.known[id_.namespace]
        if admission is None or not admission.quotas or more <= 0:
            return QuotaFit(more, QUOTAS_NOT_READ if admission is None and more > 0 else "")
        pod = _readable(lambda: self.template(id_))
        if pod is None:
            return QuotaFit(more)
        completed = AdmissionContext(pod, limit_ranges=admission.limit_ranges, server=admission.server).completed({})
        fit = quota_fit(completed, more, admission.quotas, admission.server)
        self.known[id_.namespace] = replace(admission, quotas=fit.quotas)
        return fit


def _readable(read: Callable[[], T]) -> T | None:
    """Return what is read; None where a right is missing or it is not understood. Raises ApiError."""
    try:
        return read()
    except (ApiError, ManifestError) as error:
        if isinstance(error, ApiError) and error.status not in REFUSED_STATUS:
            raise
        return None


ReserveQuota: TypeAlias = "Callable[[WorkloadId, int], QuotaFit]"
"""Reserves quota for so many more pods of a workload. Raises ApiError."""


def unbounded(_: WorkloadId, more: int) -> QuotaFit:
    """Return capacity for all requested pods, where no quotas are read."""
    return QuotaFit(more)


def fitting(
    reserve: ReserveQuota, subject: WrittenObject, *, count: int, written: int, pods: int
) -> tuple[int, str] | WriteRefusal:
    """Return the part of a raise from `written` to `count` that fits beside `pods`, and why. Raises ApiError."""
    fit = reserve(subject.workload, count - pods)
    fits = pods + fit.pods
    if not fit.why or fits >= count:
        return count, fit.why
    if fits > written:
        return fits, f"{fits} fit: {fit.why}"
    return WriteRefusal(subject, RefusalReason.QUOTA, f"{subject}: {count} do not fit: {fit.why}")


class TemplateSpec(Wire, frozen=True):
    """The fields of a workload's specification that quotas need."""

    template: dict[str, Any]


class TemplateOwner(Wire, frozen=True):
    """A workload."""

    spec: TemplateSpec


class Templates:
    """Pod templates of the given kinds, which we may list."""

    def __init__(self, client: ApiClient, kinds: Iterable[ScalableKind]) -> None:
        self._client = client
        self._kinds = {kind.kind: kind for kind in kinds}

    def of(self, id_: WorkloadId) -> Pod | None:
        """A new pod of a workload; None where that is gone, or of another kind. Raises ApiError and ManifestError."""
        kind = self._kinds.get(id_.kind)
        if kind is None:
            return None
        path = f"/apis/{kind.group}/{kind.version}/namespaces/{id_.namespace}/{kind.plural}"
        page = self._client.get(f"{path}?fieldSelector=metadata.name%3D{id_.name}", ObjectPage[TemplateOwner])
        return next((pod_of(owner.spec.template) for owner in page.items or ()), None)


def admitted(
    pod: Pod,
    desired: Sizes,
    admission: NamespaceAdmission,
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
        limit_ranges=admission.limit_ranges,
        quotas=admission.quotas,
        occupancy=admission.nodes,
        server=admission.server,
        running=running,
        in_place=bool(running),
    )
    names = {WHOLE_POD, *(container.name for container in pod.every_container())}
    proof = prove({name: size for name, size in desired.items() if name in names}, context)
    nearest, refusals = proof.nearest or {}, [*map(str, proof.refusals)]
    if running and (added := context.added_limits(nearest, desired)):
        nearest, refusals = {}, [*refusals, f"a resize would give it a limit of {added}, which none takes away again"]
    return nearest, "; ".join(refusals)

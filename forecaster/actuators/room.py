"""Whether the quotas of a namespace have room for the pods that a raised count asks for: told before it is written.

Pods beyond a quota are refused one by one, in Events of a ReplicaSet that few look at. What a pod is charged is the
rule of the vertical side: the template's requests and limits, with the defaults of LimitRanges where it states none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from forecaster.actuators.resize import Surroundings
from forecaster.actuators.writes import RefusalReason, WriteRefusal
from forecaster.kube.client import ApiError, UnreachableError
from forecaster.vertical.admission.context import AdmissionContext
from forecaster.vertical.cluster_rules.manifest import ManifestError
from forecaster.vertical.cluster_rules.quota import charge
from forecaster.vertical.cluster_rules.server import LATEST_SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forecaster.actuators.writes import WrittenObject
    from forecaster.domain.workload import WorkloadId
    from forecaster.vertical.cluster_rules.pod import Pod
    from forecaster.vertical.cluster_rules.quota import Quota
    from forecaster.vertical.cluster_rules.server import Server

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
    left = tuple(quotas)
    for fitting in range(more):
        charges = [charge(one, pod, server=server) for one in left]
        refused = [f"quota {one}" for each in charges for one in each.refusals]
        if refused:
            return Room(fitting, "; ".join(refused), left)
        left = tuple(replace(one, used=each.used_after) for one, each in zip(left, charges, strict=True))
    return Room(more, "", left)


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


@dataclass(frozen=True, slots=True)
class Fitting:
    """A raised count after a look at quotas."""

    count: int
    why: str = ""
    """Why it is not all that was to be written; empty where it is."""


def fitting(take: TakeRoom, one: WrittenObject, *, count: int, written: int, pods: int) -> Fitting | WriteRefusal:
    """What of a raise from `written` to `count` fits, where there are `pods`. Raises ApiError."""
    found = take(one.workload, count - pods)
    fits = pods + found.pods
    if not found.why or fits >= count:
        return Fitting(count)
    if fits > written:
        return Fitting(fits, f"{fits} fit: {found.why}")
    return WriteRefusal(one, RefusalReason.QUOTA, f"{one}: {count} do not fit: {found.why}")

"""Workloads without an API server: versions, field managers and our marks, as the scale subresource treats them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forecaster.actuators.scale.plan import LiveScale, ScaleWrite
from forecaster.actuators.writes import MANAGER, Change
from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiError

if TYPE_CHECKING:
    from datetime import datetime

OWNER = "kubectl-client-side-apply"


def live_scale_of(name: str = "web", replicas: int = 3) -> LiveScale:
    """A Deployment as its owner applied it."""
    return LiveScale(WorkloadId("shop", "Deployment", name), f"uid-{name}", "1", replicas, frozenset({OWNER}))


@dataclass
class FakeScales:
    """`Scales`; `dies` between the two steps of the next writes."""

    workloads: dict[WorkloadId, LiveScale]
    dies: bool = False
    written: list[ScaleWrite] = field(default_factory=list)
    recorded: list[ScaleWrite] = field(default_factory=list)
    looked_at: list[WorkloadId] = field(default_factory=list)

    @classmethod
    def of_all(cls, *workloads: LiveScale) -> FakeScales:
        return cls({workload.id: workload for workload in workloads})

    def marked(self) -> list[LiveScale]:
        return [workload for workload in self.workloads.values() if workload.marked]

    def of(self, id_: WorkloadId) -> LiveScale | None:
        self.looked_at.append(id_)
        return self.workloads.get(id_)

    def again(self, workload: LiveScale) -> LiveScale:
        return self.workloads[workload.id]

    def workload(self, name: str = "web") -> LiveScale:
        return self.workloads[WorkloadId("shop", "Deployment", name)]

    def change(self, name: str = "web", **fields: object) -> None:
        """A change by another client: a new version."""
        workload = self.workload(name)
        self.workloads[workload.id] = replace(workload, version=str(int(workload.version) + 1), **fields)  # type: ignore[arg-type]

    def owner_sets(self, count: int, name: str = "web") -> None:
        """The owner scales; the count that is there already claims nothing, and a 0 is noted as no client's."""
        if self.workload(name).replicas != count:
            self.change(name, replicas=count, writers=frozenset({OWNER} if count else ()))

    def write(self, write: ScaleWrite) -> None:
        workload = self.workloads[write.subject.id]
        if write.subject.version != workload.version:
            raise ApiError("the object has been modified", 409)
        self.written.append(write)
        name = workload.id.name
        if write.before is not None:
            since = {} if workload.before is not None else {"writers": frozenset[str]()}  # the owner's claim is older
            self.change(name, before=write.before, marked=True, watch=write.watch, **since)
            self.change(name, backed_off_until=write.backed_off_until)
            if self.dies:
                return
        if write.change in {Change.RAISE, Change.LOWER, Change.RESTORE, Change.ROLL_BACK}:
            claim = {"writers": frozenset({MANAGER})} if write.replicas != workload.replicas else {}
            self.change(name, replicas=write.replicas, **claim)
        if write.change == Change.YIELD:
            self.change(name, before=None, marked=True, backed_off_until=write.backed_off_until, watch=None)
        if write.change == Change.FORGET or (write.change == Change.RESTORE and not self.dies):
            writers = self.workload(name).writers - {MANAGER}
            self.change(name, before=None, marked=False, backed_off_until=None, watch=None, writers=writers)

    def record(self, write: ScaleWrite, at: datetime) -> None:
        self.recorded.append(write)

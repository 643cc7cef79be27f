"""A running pod: its sizes on the API server, the annotations we wrote, and one change of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias

from forecaster.actuators.limits import MIN_FALL, Move
from forecaster.actuators.writes import MANAGER, Change
from forecaster.domain.workload import WorkloadId
from forecaster.vertical.admission.context import WHOLE_POD
from forecaster.vertical.cluster_rules.pod import Pod, Requirements
from forecaster.vertical.cluster_rules.resize import ResizeStatus
from forecaster.vertical.cluster_rules.resource_list import COMPUTE, texts

Sizes: TypeAlias = "Mapping[str, Requirements]"
"""Requests and limits of CPU and memory by container."""


class Resized(NamedTuple):
    """Annotation of a pod that we resized: its former sizes, and when."""

    before: Sizes
    """Sizes by the template of the pod's owner."""
    at: datetime
    restarts: int
    """Restarts of all containers before the change."""
    new: bool = False
    """Whether the pod was created with this size."""
    errors: float | None = None
    """The signal of errors of its workload, before; None: not known."""
    started: Sizes = MappingProxyType({})
    """Sizes after the start of the containers that start with more CPU."""
    boosted_until: datetime | None = None
    """Instant until which it has more CPU at least."""

    @property
    def boosted_for(self) -> timedelta:
        """Time for which it has more CPU at least."""
        return self.boosted_until - self.at if self.boosted_until else timedelta()

    def age(self, now: datetime) -> timedelta:
        """Time since the size was written; where a clock was ahead then, from now to that instant."""
        return abs(now - self.at)


@dataclass(frozen=True, slots=True)
class ResizablePod:
    """One running pod on the API server."""

    namespace: str
    name: str
    uid: str
    version: str
    """`resourceVersion`."""
    workload: WorkloadId
    pod: Pod
    node: str = ""
    ready: bool = True
    restarts: int = 0
    status: ResizeStatus = ResizeStatus.NONE
    node_message: str = ""
    """Message of the node about the size."""
    writers: frozenset[str] = frozenset()
    """Field managers that resized it."""
    resized: Resized | None = None
    settled: bool = False
    """Whether the pod is no longer watched."""
    backed_off_until: datetime | None = None
    marked: bool = False
    """Whether the pod has our label."""
    deleted: bool = False
    owner: str = ""
    """Other controllers that set its size, in words; empty where there are none."""
    fault: str = ""
    """Reason why its own size is not known."""
    errors: float | None = None
    """The workload's signal of errors, read in this cycle."""
    unready: int | None = None
    """Requested pods of its workload that do not serve; None where not known."""
    worse: str = ""
    """Reason why the workload is worse off by that signal since the pod has its size; empty where it is not."""

    @property
    def key(self) -> tuple[str, ...]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def sizes(self) -> Sizes:
        """Sizes in its specification now."""
        whole = {WHOLE_POD: compute_of(self.pod.pod_level)} if self.pod.pod_level and self.pod.has_pod_level else {}
        return whole | {container.name: compute_of(container.resources) for container in self.pod.every_container()}

    @property
    def field_value(self) -> str:
        """Name of the present write, and its value."""
        return f"size {sizes_text(self.sizes)}"

    @property
    def other_writers(self) -> str:
        """Field managers beside ours that resized it, in words."""
        return ", ".join(sorted(self.writers - {MANAGER}))

    def __str__(self) -> str:
        return f"Pod {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ResizeWrite:
    """One change of one pod."""

    subject: ResizablePod
    change: Change
    sizes: Sizes
    """Sizes after the change, of the containers that change."""
    reason: str
    resized: Resized | None = None
    """Annotation after the write; None where ours is removed."""
    settled: bool = False
    backed_off_until: datetime | None = None
    marks: ClassVar[dict[str, Any]] = {}
    """Not remembered: pods are not replaced from files, as HPAs and workloads are."""

    @property
    def move(self) -> Move | None:
        """A change of a size counts as one workload, an undo that takes size away as one that falls; None for marks."""
        limited = {Change.RESIZE, Change.RESTORE, Change.ROLL_BACK}
        return Move(0, int(self._takes_away())) if self.change in limited else None

    def _takes_away(self) -> bool:
        """Whether an undo removes a significant share of a request; a resize may, as that is its purpose."""
        both = ((self.subject.sizes[name].requests, size.requests) for name, size in self.sizes.items())
        taken = any(new.get(name, milli) <= (1 - MIN_FALL) * milli for old, new in both for name, milli in old.items())
        return taken and self.change is Change.RESTORE

    def __str__(self) -> str:
        return f"{self.subject}: size {sizes_text(self.sizes)}"

    def facts(self) -> dict[str, object]:
        """Return the fields of the audit line."""
        was = {name: self.subject.sizes[name] for name in self.sizes}
        return {"size": sizes_text(self.sizes), "was": sizes_text(was), "workload": str(self.subject.workload)}

    def on(self, fresh: ResizablePod) -> ResizeWrite | None:
        """Return this change for the pod as it is now; None if the facts of the decision have changed."""
        same = (fresh.uid, fresh.sizes, fresh.status, fresh.ready, fresh.restarts, fresh.deleted)
        pod = self.subject
        decided = (pod.uid, pod.sizes, pod.status, pod.ready, pod.restarts, False)
        noted = any(fresh.resized == resized for resized in (None, pod.resized, self.resized))
        return replace(self, subject=fresh) if same == decided and noted else None

    def bounded(self, _count: int, reason: str) -> ResizeWrite:
        """Return this change with the reason: a size has no count."""
        return replace(self, reason=reason)


def changed(now: Sizes, desired: Sizes) -> dict[str, Requirements]:
    """Return the containers that do not have the desired size. A resize removes no value that is set."""
    resulting = {name: merged(now[name], size) for name, size in desired.items() if name in now}
    return {name: size for name, size in resulting.items() if size != now[name]}


def compute_of(block: Requirements, without: Container[str] = ()) -> Requirements:
    """CPU and memory of a block, but for the resources that are named."""
    requests, limits = (
        {name: milli for name, milli in amounts.items() if name in COMPUTE and name not in without}
        for amounts in (block.requests, block.limits)
    )
    return Requirements(requests, limits)


def sizes_text(sizes: Sizes) -> str:
    """Sizes in words: `app cpu 500m/1, memory 64Mi`."""
    return "; ".join(f"{name} {_block_text(size)}".rstrip() for name, size in sizes.items())


def _block_text(size: Requirements) -> str:
    parts: dict[str, list[str]] = defaultdict(list)
    for amounts in (texts(size.requests), texts(size.limits)):
        for name, text in amounts.items():
            parts[name].append(text)
    return ", ".join(f"{name} {'/'.join(dict.fromkeys(values))}" for name, values in parts.items())


def merged(block: Requirements, size: Requirements) -> Requirements:
    """Return a block with the values of a size in place of its own."""
    return Requirements({**block.requests, **size.requests}, {**block.limits, **size.limits})

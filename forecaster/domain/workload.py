"""Workloads and their containers: identity, pods, HPA, requests and limits, usage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from forecaster.domain.signal import Signal


class WorkloadId(NamedTuple):
    """Identity of a scalable object. Two kinds may share a name, so the kind belongs to it."""

    namespace: str
    kind: str
    name: str

    @property
    def path(self) -> str:
        """Namespace, kind and name, as pods name their owner."""
        return "/".join(self)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


LONGEST_NAME = 253
"""Signs of the longest name of an object. Names in an HPA, in references to owners and in series may have a million."""


def may_be_a_name(text: str) -> bool:
    """Whether an object may have this name, as far as it takes to show it anywhere: any pod exports any series."""
    return len(text) <= LONGEST_NAME and text[:1].isalnum() and text.isprintable()


LEADERS = {"LeaderWorkerSet": "StatefulSet"}
"""Kinds whose replica is a group of pods, and the kind of the object of the same name that makes their leaders."""
KIND_GROUPS = {"Deployment": "apps", "StatefulSet": "apps"}
"""API groups of the kinds that Kubernetes has itself."""


def scaled_workload(namespace: str, kind: str, name: str, version: str | None = None) -> WorkloadId:
    """The workload that an autoscaler with this target counts and measures: of groups of pods, their leaders.

    The scale subresource of a LeaderWorkerSet selects leaders alone (`status.hpaPodSelector`). With the `version` of
    another API group the kind is another one, `Deployment.example.com`, as for Kubernetes.
    """
    group = KIND_GROUPS.get(kind, "") if version is None else version.rpartition("/")[0]
    other = f"{kind}.{group}" if group != KIND_GROUPS.get(kind, group) else kind
    return WorkloadId(namespace, LEADERS.get(other, other), name)


class TargetType(StrEnum):
    """Kind of an HPA metric target (autoscaling/v2)."""

    UTILIZATION = "Utilization"
    AVERAGE_VALUE = "AverageValue"
    VALUE = "Value"


@dataclass(frozen=True, slots=True)
class Target:
    """One metric of an HPA.

    `value` is a ratio of the request for `UTILIZATION`, otherwise an amount in the signal's own unit.
    """

    metric: str
    type: TargetType
    value: float
    container: str = ""
    """Container of the resource (ContainerResource); empty for the whole pod."""
    signal: str = ""
    """Signal of our own demand that its selector names; empty where that is not known."""


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """The HPA that owns a workload's replica count."""

    name: str
    min_replicas: int
    max_replicas: int
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, slots=True)
class Resources:
    """Requests and limits of one pod, summed over app containers and native sidecars; None where one states none."""

    cpu_request: float | None = None
    cpu_limit: float | None = None
    memory_request: float | None = None
    memory_limit: float | None = None

    def request(self, resource: str) -> float | None:
        """Return the request of `cpu` or `memory`; None for other resources."""
        return self.cpu_request if resource == "cpu" else self.memory_request if resource == "memory" else None

    def limit(self, resource: str) -> float | None:
        """Return the limit of `cpu` or `memory`; None for other resources."""
        return self.cpu_limit if resource == "cpu" else self.memory_limit if resource == "memory" else None

    @property
    def amounts(self) -> tuple[float | None, float | None, float | None, float | None]:
        """CPU request and limit, memory request and limit."""
        return self.cpu_request, self.cpu_limit, self.memory_request, self.memory_limit


def total(parts: Iterable[Resources]) -> Resources:
    """Sum the containers of a pod, None where at least one states none."""
    return Resources(*map(sum_if_all, zip(*(part.amounts for part in parts), strict=True)))


def sum_if_all(values: Iterable[float | None]) -> float | None:
    """The sum; None where one of them is."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


NO_RESOURCES = Resources()
"""Resources of which nothing is stated."""
GIB = 2.0**30
HOURS_A_MONTH = 730


@dataclass(frozen=True, slots=True)
class Prices:
    """Money for an hour of a requested core and of a requested GiB."""

    core_hour: float = 0.0
    gib_hour: float = 0.0
    currency: str = ""

    def of_pod(self, resources: Resources) -> float:
        """An hour of one pod, by its requests."""
        cpu, memory = resources.cpu_request or 0.0, resources.memory_request or 0.0
        return self.core_hour * cpu + self.gib_hour * memory / GIB

    def a_month(self, resources: Resources, replicas: int) -> float | None:
        """Cost of these replicas in 730 hours by their requests; None where a request is not known."""
        if resources.cpu_request is None or resources.memory_request is None:
            return None
        return self.of_pod(resources) * replicas * HOURS_A_MONTH


@dataclass(frozen=True, slots=True)
class NamedContainer:
    """Requests and limits of one container, the mean over live pods."""

    name: str
    resources: Resources


class Spread(NamedTuple):
    """The share of a workload's ready pods on the node, and in the zone, with the most of them; None is not known."""

    node: float | None = None
    zone: float | None = None


NO_SPREAD = Spread()
"""The spread of pods of which it is not known where they are."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One scalable object at one instant."""

    id: WorkloadId
    replicas: int
    """`spec.replicas`: the requested count."""
    ready_replicas: int
    resources: Resources = field(default_factory=Resources)
    autoscaler: Autoscaler | None = None
    containers: tuple[NamedContainer, ...] = ()
    """Containers that its HPA names (ContainerResource), as far as they state anything."""
    spread: Spread = NO_SPREAD

    def measured_container(self, resource: str) -> str:
        """Return the one container that the HPA reads for this resource; empty for none or several."""
        targets = self.autoscaler.targets if self.autoscaler else ()
        named = {target.container for target in targets if target.container and target.metric == resource}
        return named.pop() if len(named) == 1 else ""

    def resources_of(self, signal: Signal) -> Resources:
        """Requests and limits that apply to a signal: those of a pod, or of the container of the signal."""
        if not signal.of_container:
            return self.resources
        name = self.measured_container(signal.resource)
        return next((container.resources for container in self.containers if container.name == name), NO_RESOURCES)


class ContainerId(NamedTuple):
    """A container of all pods of a workload."""

    workload: WorkloadId
    name: str

    def __str__(self) -> str:
        return f"{self.workload}/{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class ContainerBlock:
    """Usage of the hottest pod's container on one regular grid, `values[i, j]` of `ids[i]` at `start + j * step`.

    Cores or bytes, float64, NaN where the source had no such sample; a value describes the time that ends at its
    instant. `ids` holds each container once.
    """

    ids: tuple[ContainerId, ...]
    start: datetime
    step: timedelta
    values: NDArray[np.float64]


class ContainerLosses(NamedTuple):
    """Losses of a workload's containers to their limits over a span; None where not known."""

    oom_kills: int | None
    throttled_hours: float | None
    """Hours in which containers were throttled by their CPU limit."""


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """Facts about containers at one time; facts without a series are absent."""

    images: Mapping[ContainerId, str] = field(default_factory=dict)
    """Images of all app containers and native sidecars."""
    init: frozenset[ContainerId] = frozenset()
    """Init containers that end before the load comes; sidecars are not among them."""
    resources: Mapping[ContainerId, Resources] = field(default_factory=dict)
    oom_limits: Mapping[ContainerId, float] = field(default_factory=dict)
    """Highest memory limit in bytes at which the container was OOM-killed within a week."""
    held_back: Mapping[ContainerId, float] = field(default_factory=dict)
    """Share of time in which its CPU was throttled, or stalled as PSI has it; ratio."""
    carried: Mapping[tuple[WorkloadId, str], float] = field(default_factory=dict)
    """Capacity of one pod for signals of the settings, by workload and signal, in the signal's unit."""
    unread: tuple[str, ...] = ()
    """Reasons why some facts are older than the rest, or missing; one sentence each."""


@dataclass(frozen=True, slots=True)
class Risk:
    """Expected loss and waste of a size until the next change; None where there is no such bound.

    For CPU `over_request` and `over_limit` are shares of time, for memory chances that a peak exceeds them.
    `slack_hours` is the expected core-hours or byte-hours that are requested and not used, over the policy's horizon.
    """

    over_request: float | None
    over_limit: float | None
    slack_hours: float
    kills_a_year: float | None = None
    """OOM kills expected in a year; None for CPU, and where usage does not show the need."""


@dataclass(frozen=True, slots=True)
class ContainerSize:
    """One container: `recommended` is `now` in what stays. Risks are None where nothing is known of a resource."""

    name: str
    """Empty where the source reports pods and not containers: then it is the pod as a whole."""
    now: Resources
    recommended: Resources
    cpu: Risk | None
    memory: Risk | None
    message: str
    own: tuple[str, ...] = ()
    """Resources without a size of this container: each pod keeps what its own template gave it."""

"""A pod as the cluster's rules read it, and its requests and limits as a whole.

Init containers, sidecars, requests of the pod itself, overhead and resizes count (§6.6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from forecaster.vertical.cluster_rules.placement import ANYWHERE, Placement
from forecaster.vertical.cluster_rules.resource_list import NO_AMOUNTS, Amounts, added, is_pod_level, largest
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server

OfContainer = Callable[["Container"], Amounts]
_Reported = tuple[Amounts | None, ...]

RESTART = "RestartContainer"


@dataclass(frozen=True, slots=True)
class Requirements:
    """One block of requests and limits, in milli-units."""

    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return not self.requests and not self.limits


@dataclass(frozen=True, slots=True)
class Container:
    """A container, an init container, or a sidecar: an init container that restarts always."""

    name: str
    resources: Requirements = Requirements()
    sidecar: bool = False
    resize_policy: Mapping[str, str] = field(default_factory=dict)
    """Effect of changing a resource: NotRequired (the default) or RestartContainer."""

    def restarts_on(self, resource: str) -> bool:
        """Whether a change of this resource restarts the container."""
        return self.resize_policy.get(resource) == RESTART


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """Status of one container on its node; None is a list that the node does not report."""

    requests: Amounts | None = None
    limits: Amounts | None = None
    allocated: Amounts | None = None
    has_resources: bool = False
    """Whether there is a `resources` block; very old nodes have none."""


@dataclass(frozen=True, slots=True)
class PodStatus:
    """Status of a pod on its node."""

    containers: Mapping[str, ContainerStatus] = field(default_factory=dict)
    qos: str = ""
    """The class recorded when the pod was created; empty if none is."""
    resize_pending: str = ""
    """Reason of the first PodResizePending condition, whatever its status."""

    @property
    def resize_infeasible(self) -> bool:
        """The node can never grant the pending resize."""
        return self.resize_pending == "Infeasible"


@dataclass(frozen=True, slots=True)
class Pod:
    """The parts of a pod that the rules read."""

    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...] = ()
    pod_level: Requirements | None = None
    overhead: Amounts = field(default_factory=dict)
    restart_policy: str = "Always"
    os: str = ""
    static: bool = False
    """Read by the kubelet from a file; the API object is a mirror."""
    priority: int = 0
    priority_class: str = ""
    preempts: bool = True
    """Whether it may displace pods of lower priority (preemptionPolicy)."""
    active_deadline_seconds: int | None = None
    placement: Placement = ANYWHERE
    status: PodStatus = PodStatus()

    def every_container(self) -> Iterator[Container]:
        """Containers, then init containers and sidecars."""
        yield from self.containers
        yield from self.init_containers

    def with_containers(self, change: Callable[[Container], Container]) -> Pod:
        """Return the pod with each container changed."""
        return replace(
            self,
            containers=tuple(change(container) for container in self.containers),
            init_containers=tuple(change(container) for container in self.init_containers),
        )

    @property
    def has_pod_level(self) -> bool:
        """Whether the pod-level block names any resource that it may name."""
        block = self.pod_level
        return block is not None and any(is_pod_level(name) for name in (*block.requests, *block.limits))

    @property
    def pod_level_requests(self) -> Amounts:
        """Pod-level requests of resources that may be named there."""
        return _supported(self.pod_level.requests) if self.pod_level else NO_AMOUNTS

    @property
    def pod_level_limits(self) -> Amounts:
        """Pod-level limits of resources that may be named there."""
        return _supported(self.pod_level.limits) if self.pod_level else NO_AMOUNTS


def _supported(amounts: Amounts) -> Amounts:
    return {name: milli for name, milli in amounts.items() if is_pod_level(name)}


_UNREPORTED = ContainerStatus()


def pod_requests(
    pod: Pod, server: Server = LATEST_SERVER, *, status: bool = False, overhead: bool = True
) -> dict[str, int]:
    """Rules §6.6: the request that schedulers and quotas count.

    `status` also counts what the node has allocated and applied, which a resize under way may have to give back.
    """
    stages = _allocated, _applied_requests
    requests = _aggregated(pod, server, _requests, *stages) if status else total(pod, _requests)
    if server.has_pod_level_resources:
        requests |= pod.pod_level_requests
    return added(requests, pod.overhead) if overhead else requests


def pod_limits(
    pod: Pod, server: Server = LATEST_SERVER, *, status: bool = False, overhead: bool = True
) -> dict[str, int]:
    """Rules §6.6: the limit of the whole pod; overhead only where a limit is there and not zero."""
    limits = _aggregated(pod, server, _limits, _applied_limits) if status else total(pod, _limits)
    if server.has_pod_level_resources:
        limits |= pod.pod_level_limits
    on_top = {name: milli for name, milli in pod.overhead.items() if limits.get(name)}
    return added(limits, on_top) if overhead else limits


def total(pod: Pod, amounts_of: OfContainer) -> dict[str, int]:
    """Sum over the containers: while they run, or while an init container runs beside earlier sidecars."""
    sidecar_containers = [container for container in pod.init_containers if container.sidecar]
    running = added(*map(amounts_of, [*pod.containers, *sidecar_containers]))
    sidecars: Amounts = NO_AMOUNTS
    starting = []
    for container in pod.init_containers:
        need = added(amounts_of(container), sidecars)
        starting.append(need)
        if container.sidecar:
            sidecars = need
    return largest([running, *starting])


def _requests(container: Container) -> Amounts:
    return container.resources.requests


def _limits(container: Container) -> Amounts:
    return container.resources.limits


def _allocated(status: ContainerStatus) -> _Reported:
    return (status.allocated,)


def _applied_requests(status: ContainerStatus) -> _Reported:
    return (status.requests, status.allocated)


def _applied_limits(status: ContainerStatus) -> _Reported:
    return (status.limits,)


def _aggregated(
    pod: Pod, server: Server, stated: OfContainer, *stages: Callable[[ContainerStatus], _Reported]
) -> dict[str, int]:
    """Return the largest of the pod's own value and of each stage of a resize reported by the node, in this order."""
    if server.sums_before_comparing:
        sums = [total(pod, partial(_as_reported, pod, stated, stage)) for stage in stages]
        return largest(sums if pod.status.resize_infeasible else [total(pod, stated), *sums])
    return total(pod, partial(_largest_before_1_37, pod, stated, stages[-1]))


def _as_reported(
    pod: Pod, stated: OfContainer, stage: Callable[[ContainerStatus], _Reported], container: Container
) -> Amounts:
    status = pod.status.containers.get(container.name, _UNREPORTED)
    return next((amounts for amounts in stage(status) if amounts is not None), _if_feasible(pod, stated(container)))


def _largest_before_1_37(
    pod: Pod, stated: OfContainer, stage: Callable[[ContainerStatus], _Reported], container: Container
) -> Amounts:
    """Until 1.36: container by container, where the status has resources, and not for ordinary init containers."""
    status = pod.status.containers.get(container.name, _UNREPORTED)
    ordinary = any(init.name == container.name and not init.sidecar for init in pod.init_containers)
    if ordinary or not status.has_resources:
        return stated(container)
    return largest([_if_feasible(pod, stated(container)), *(amounts or NO_AMOUNTS for amounts in stage(status))])


def _if_feasible(pod: Pod, spec: Amounts) -> Amounts:
    """The spec, unless the node has said that it can never grant it."""
    return NO_AMOUNTS if pod.status.resize_infeasible else spec

"""A pod as far as the cluster's rules look at it, and what it requests and is limited to as a whole.

Init containers, sidecars, requests of the pod itself, overhead and resizes count (§6.6).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forecaster.vertical.cluster_rules.placement import ANYWHERE, Placement
from forecaster.vertical.cluster_rules.resource_list import NO_AMOUNTS, Amounts, added, is_pod_level, largest
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    OfContainer = Callable[["Container"], Amounts]

RESTART = "RestartContainer"


@dataclass(frozen=True, slots=True)
class Requirements:
    """One block of requests and limits, in milli-units."""

    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """No entry at all."""
        return not self.requests and not self.limits


@dataclass(frozen=True, slots=True)
class Container:
    """A container, an init container, or a sidecar: an init container that restarts always."""

    name: str
    resources: Requirements = Requirements()
    sidecar: bool = False
    resize_policy: Mapping[str, str] = field(default_factory=dict)
    """What a change of a resource does: NotRequired (the default) or RestartContainer."""

    def restarts_on(self, resource: str) -> bool:
        """Whether a change of this resource restarts the container."""
        return self.resize_policy.get(resource) == RESTART


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """What the node reports of one container; None is a list that it does not report."""

    requests: Amounts | None = None
    limits: Amounts | None = None
    allocated: Amounts | None = None
    has_resources: bool = False
    """Whether there is a `resources` block at all; very old nodes have none."""


@dataclass(frozen=True, slots=True)
class PodStatus:
    """What the node reports of a pod."""

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
            containers=tuple(change(one) for one in self.containers),
            init_containers=tuple(change(one) for one in self.init_containers),
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
    requests = _aggregated_requests(pod, server) if status else total(pod, _requests)
    if server.has_pod_level_resources:
        requests |= pod.pod_level_requests
    return added(requests, pod.overhead) if overhead else requests


def pod_limits(
    pod: Pod, server: Server = LATEST_SERVER, *, status: bool = False, overhead: bool = True
) -> dict[str, int]:
    """Rules §6.6: the limit of the whole pod; overhead only where a limit is there and not zero."""
    limits = _aggregated_limits(pod, server) if status else total(pod, _limits)
    if server.has_pod_level_resources:
        limits |= pod.pod_level_limits
    on_top = {name: milli for name, milli in pod.overhead.items() if limits.get(name)}
    return added(limits, on_top) if overhead else limits


def total(pod: Pod, of: OfContainer) -> dict[str, int]:
    """What the containers need together: while they run, or while an init container does beside earlier sidecars."""
    running = added(*(of(one) for one in pod.containers), *(of(one) for one in pod.init_containers if one.sidecar))
    sidecars: Amounts = NO_AMOUNTS
    starting = []
    for container in pod.init_containers:
        need = added(of(container), sidecars)
        starting.append(need)
        if container.sidecar:
            sidecars = need
    return largest([running, *starting])


def _requests(container: Container) -> Amounts:
    return container.resources.requests


def _limits(container: Container) -> Amounts:
    return container.resources.limits


def _aggregated_requests(pod: Pod, server: Server) -> dict[str, int]:
    if not server.sums_before_comparing:
        status = _before_1_37(pod)
        return total(pod, lambda one: _largest_requests(pod, one, status.get(one.name)))
    sums = [total(pod, lambda one: _allocated(pod, one)), total(pod, lambda one: _applied_requests(pod, one))]
    return largest(sums if pod.status.resize_infeasible else [total(pod, _requests), *sums])


def _aggregated_limits(pod: Pod, server: Server) -> dict[str, int]:
    if not server.sums_before_comparing:
        status = _before_1_37(pod)
        return total(pod, lambda one: _largest_limits(pod, one, status.get(one.name)))
    applied = total(pod, lambda one: _applied_limits(pod, one))
    return applied if pod.status.resize_infeasible else largest([total(pod, _limits), applied])


def _spec_if_feasible(pod: Pod, spec: Amounts) -> Amounts:
    """The spec, unless the node has said that it can never grant it."""
    return NO_AMOUNTS if pod.status.resize_infeasible else spec


def _allocated(pod: Pod, container: Container) -> Amounts:
    allocated = _status(pod, container).allocated
    return _spec_if_feasible(pod, container.resources.requests) if allocated is None else allocated


def _applied_requests(pod: Pod, container: Container) -> Amounts:
    applied = _status(pod, container).requests
    return _allocated(pod, container) if applied is None else applied


def _applied_limits(pod: Pod, container: Container) -> Amounts:
    applied = _status(pod, container).limits
    return _spec_if_feasible(pod, container.resources.limits) if applied is None else applied


def _status(pod: Pod, container: Container) -> ContainerStatus:
    return pod.status.containers.get(container.name, _UNREPORTED)


def _before_1_37(pod: Pod) -> dict[str, ContainerStatus]:
    """Until 1.36: container by container, where the status has resources, and not for ordinary init containers."""
    ordinary = {one.name for one in pod.init_containers if not one.sidecar}
    return {name: one for name, one in pod.status.containers.items() if one.has_resources and name not in ordinary}


def _largest_requests(pod: Pod, container: Container, status: ContainerStatus | None) -> Amounts:
    if status is None:
        return container.resources.requests
    spec = _spec_if_feasible(pod, container.resources.requests)
    return largest([spec, status.requests or NO_AMOUNTS, status.allocated or NO_AMOUNTS])


def _largest_limits(pod: Pod, container: Container, status: ContainerStatus | None) -> Amounts:
    if status is None:
        return container.resources.limits
    return largest([_spec_if_feasible(pod, container.resources.limits), status.limits or NO_AMOUNTS])

"""A pod as far as the cluster's rules look at it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forecaster.vertical.cluster_rules.placement import ANYWHERE, Placement
from forecaster.vertical.cluster_rules.resource_list import NO_AMOUNTS, is_pod_level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from forecaster.vertical.cluster_rules.resource_list import Amounts

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

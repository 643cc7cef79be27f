"""What a whole pod requests and is limited to: init containers, sidecars, pod level, overhead, resizes (§6.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.vertical.cluster_rules.pod import ContainerStatus
from forecaster.vertical.cluster_rules.resource_list import NO_AMOUNTS, added, largest
from forecaster.vertical.cluster_rules.server import LATEST_SERVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.vertical.cluster_rules.pod import Container, Pod
    from forecaster.vertical.cluster_rules.resource_list import Amounts
    from forecaster.vertical.cluster_rules.server import Server

    OfContainer = Callable[[Container], Amounts]

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
        return total(pod, lambda container: _largest_requests(pod, container))
    sums = [total(pod, lambda one: _allocated(pod, one)), total(pod, lambda one: _applied_requests(pod, one))]
    return largest(sums if pod.status.resize_infeasible else [total(pod, _requests), *sums])


def _aggregated_limits(pod: Pod, server: Server) -> dict[str, int]:
    if not server.sums_before_comparing:
        return total(pod, lambda container: _largest_limits(pod, container))
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


def _largest_requests(pod: Pod, container: Container) -> Amounts:
    """Until 1.36: container by container, where the status has resources, and not for ordinary init containers."""
    status = _status(pod, container)
    if not status.has_resources or _is_ordinary_init(pod, container):
        return container.resources.requests
    spec = _spec_if_feasible(pod, container.resources.requests)
    return largest([spec, status.requests or NO_AMOUNTS, status.allocated or NO_AMOUNTS])


def _largest_limits(pod: Pod, container: Container) -> Amounts:
    status = _status(pod, container)
    if not status.has_resources or _is_ordinary_init(pod, container):
        return container.resources.limits
    return largest([_spec_if_feasible(pod, container.resources.limits), status.limits or NO_AMOUNTS])


def _is_ordinary_init(pod: Pod, container: Container) -> bool:
    return not container.sidecar and container in pod.init_containers

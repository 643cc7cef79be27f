"""What the API server fills in before any rule looks (§6.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from forecaster.vertical.rules.pod import Requirements
from forecaster.vertical.rules.pod_resources import total
from forecaster.vertical.rules.resource_list import (
    filled,
    is_huge_pages,
    is_overcommittable,
    is_pod_level,
)
from forecaster.vertical.rules.server import NEWEST

if TYPE_CHECKING:
    from forecaster.vertical.rules.pod import Container, Pod
    from forecaster.vertical.rules.server import Server


def defaulted(pod: Pod, server: Server = NEWEST) -> Pod:
    """Rules §6.2: the pod as it is stored where no LimitRange adds anything."""
    return with_late_defaults(with_early_defaults(pod, server), server)


def with_early_defaults(pod: Pod, server: Server = NEWEST) -> Pod:
    """Before admission: a limit without a request becomes the request."""
    pod = pod.with_containers(_request_from_limit)
    if server.completes_pod_level or not server.has_pod_level_resources or not _has_limits(pod.pod_level):
        return pod
    return _with_pod_level_requests(_with_huge_page_limits(pod))


def with_late_defaults(pod: Pod, server: Server = NEWEST) -> Pod:
    """After admission has changed the pod: what its pod-level block leaves out."""
    if not server.completes_pod_level or pod.pod_level is None or pod.pod_level.is_empty:
        return pod
    return _with_pod_level_limits(_with_pod_level_requests(_with_huge_page_limits(pod)))


def _request_from_limit(container: Container) -> Container:
    block = container.resources
    return replace(container, resources=Requirements(filled(block.requests, block.limits), block.limits))


def _has_limits(block: Requirements | None) -> bool:
    return block is not None and bool(block.limits)


def _with_huge_page_limits(pod: Pod) -> Pod:
    """Huge pages that containers limit and the pod neither requests nor limits."""
    block = pod.pod_level or Requirements()
    limits = total(pod, lambda container: container.resources.limits)
    missing = {name: milli for name, milli in limits.items() if is_huge_pages(name) and name not in block.requests}
    return replace(pod, pod_level=Requirements(block.requests, filled(block.limits, missing)))


def _with_pod_level_requests(pod: Pod) -> Pod:
    """A missing request is what the containers need together or, where they ask for none, the pod's limit."""
    block = pod.pod_level or Requirements()
    needed = total(pod, lambda container: container.resources.requests)
    from_containers = {name: milli for name, milli in needed.items() if is_pod_level(name) and is_overcommittable(name)}
    from_limits = {name: milli for name, milli in block.limits.items() if is_pod_level(name)}
    return replace(
        pod, pod_level=Requirements(filled(filled(block.requests, from_containers), from_limits), block.limits)
    )


def _with_pod_level_limits(pod: Pod) -> Pod:
    """A missing limit is the larger of the pod's request and the containers' limits, where all of them have one."""
    block = pod.pod_level or Requirements()
    limits = total(pod, lambda container: container.resources.limits)
    everywhere = [name for name in block.requests if is_pod_level(name) and _all_limit(pod, name)]
    missing = {name: max(block.requests[name], limits[name]) for name in everywhere}
    return replace(pod, pod_level=Requirements(block.requests, filled(block.limits, missing)))


def _all_limit(pod: Pod, name: str) -> bool:
    return all(name in container.resources.limits for container in pod.every_container())

"""Defaults that the API server fills into any pod, and resources that it refuses (§6.2, §6.9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements, total
from forecaster.vertical.cluster_rules.resource_list import (
    filled,
    is_huge_pages,
    is_overcommittable,
    is_pod_level,
    text_of,
)
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server

REQUEST_ABOVE_LIMIT = "requestAboveLimit"
RESIZE_POLICY = "resizePolicy"


class Refusal(NamedTuple):
    """One reason: the rule, the object it is about, and the sentence with the values."""

    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


def defaulted(pod: Pod, server: Server = LATEST_SERVER) -> Pod:
    """Rules §6.2: the pod as it is stored where no LimitRange adds anything."""
    return with_late_defaults(with_early_defaults(pod, server), server)


def with_early_defaults(pod: Pod, server: Server = LATEST_SERVER) -> Pod:
    """Before admission: a limit without a request becomes the request."""
    pod = pod.with_containers(_request_from_limit)
    if server.completes_pod_level or not server.has_pod_level_resources:
        return pod
    has_limits = pod.pod_level is not None and bool(pod.pod_level.limits)
    return _with_pod_level_requests(_with_huge_page_limits(pod)) if has_limits else pod


def with_late_defaults(pod: Pod, server: Server = LATEST_SERVER) -> Pod:
    """Complete the containers from the pod-level block, after admission has changed the pod."""
    if not server.completes_pod_level or pod.pod_level is None or pod.pod_level.is_empty:
        return pod
    return _with_pod_level_limits(_with_pod_level_requests(_with_huge_page_limits(pod)))


def _request_from_limit(container: Container) -> Container:
    block = container.resources
    return replace(container, resources=Requirements(filled(block.requests, block.limits), block.limits))


def _with_huge_page_limits(pod: Pod) -> Pod:
    """Huge pages that containers limit and the pod neither requests nor limits."""
    block = pod.pod_level or Requirements()
    limits = total(pod, lambda container: container.resources.limits)
    missing = {name: milli for name, milli in limits.items() if is_huge_pages(name) and name not in block.requests}
    return replace(pod, pod_level=Requirements(block.requests, filled(block.limits, missing)))


def _with_pod_level_requests(pod: Pod) -> Pod:
    """Fill in a missing pod-level request: the containers' sum or, where they request none, the pod's limit."""
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


def faults(pod: Pod, server: Server = LATEST_SERVER) -> tuple[Refusal, ...]:
    """Return all faults of the requests, limits and resize policies of a defaulted pod."""
    return (*resource_faults(pod, server), *_policy_faults(pod))


def resource_faults(pod: Pod, server: Server = LATEST_SERVER) -> tuple[Refusal, ...]:
    """Requests above limits, and containers that do not fit into their pod's own block."""
    blocks = [(container.name, container.resources) for container in pod.every_container()]
    refusals = [fault for name, block in blocks for fault in _block_faults(name, block)]
    if pod.pod_level is not None and server.has_pod_level_resources:
        refusals += [*_block_faults("pod", pod.pod_level), *_containers_beyond_pod(pod, pod.pod_level)]
    return tuple(refusals)


def _block_faults(where: str, block: Requirements) -> Iterator[Refusal]:
    for name, request in block.requests.items():
        limit = block.limits.get(name)
        text = f"{name} request {text_of(request, name)}"
        if limit is None:
            if not is_overcommittable(name):
                yield Refusal(REQUEST_ABOVE_LIMIT, where, f"{text} needs a limit that equals it")
        elif request > limit or (request != limit and not is_overcommittable(name)):
            yield Refusal(REQUEST_ABOVE_LIMIT, where, f"{text} does not go with the limit {text_of(limit, name)}")


def _containers_beyond_pod(pod: Pod, block: Requirements) -> Iterator[Refusal]:
    needed = total(pod, lambda container: container.resources.requests)
    limited = total(pod, lambda container: container.resources.limits)
    for name, milli in needed.items():
        if name in block.requests and milli > block.requests[name]:
            yield _beyond("requests of all containers", name, milli, block.requests[name])
    for name, milli in limited.items():
        if is_huge_pages(name) and name in block.limits and milli > block.limits[name]:
            yield _beyond("limits of all containers", name, milli, block.limits[name])
    for container in pod.containers:
        for name, milli in container.resources.limits.items():
            if name in block.limits and milli > block.limits[name]:
                yield _beyond(f"limit of {container.name}", name, milli, block.limits[name])


def _beyond(kind: str, name: str, milli: int, bound: int) -> Refusal:
    message = f"{name} {kind}, {text_of(milli, name)}, exceed the pod's own {text_of(bound, name)}"
    return Refusal(REQUEST_ABOVE_LIMIT, "pod", message)


def _policy_faults(pod: Pod) -> Iterator[Refusal]:
    if pod.restart_policy != "Never":
        return
    for container in pod.every_container():
        if any(container.restarts_on(name) for name in container.resize_policy):
            yield Refusal(RESIZE_POLICY, container.name, "a pod that never restarts cannot restart it for a resize")

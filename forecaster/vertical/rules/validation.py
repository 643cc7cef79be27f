"""What the API server refuses about the resources of any pod (§6.9, parts that hold for new pods as well)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.vertical.rules.pod_resources import total
from forecaster.vertical.rules.refusal import Refusal
from forecaster.vertical.rules.resource_list import is_huge_pages, is_overcommittable, text_of
from forecaster.vertical.rules.server import NEWEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.vertical.rules.pod import Pod, Requirements
    from forecaster.vertical.rules.server import Server

REQUEST_ABOVE_LIMIT = "requestAboveLimit"
RESIZE_POLICY = "resizePolicy"


def faults(pod: Pod, server: Server = NEWEST) -> tuple[Refusal, ...]:
    """Everything wrong with the requests, limits and resize policies of a defaulted pod."""
    return (*resource_faults(pod, server), *_policy_faults(pod))


def resource_faults(pod: Pod, server: Server = NEWEST) -> tuple[Refusal, ...]:
    """Requests above limits, and containers that do not fit into their pod's own block."""
    blocks = [(container.name, container.resources) for container in pod.every_container()]
    found = [fault for name, block in blocks for fault in _block_faults(name, block)]
    if pod.pod_level is not None and server.has_pod_level_resources:
        found += [*_block_faults("pod", pod.pod_level), *_containers_beyond_pod(pod, pod.pod_level)]
    return tuple(found)


def _block_faults(where: str, block: Requirements) -> Iterator[Refusal]:
    for name, request in block.requests.items():
        limit = block.limits.get(name)
        asked = f"{name} request {text_of(request, name)}"
        if limit is None:
            if not is_overcommittable(name):
                yield Refusal(REQUEST_ABOVE_LIMIT, where, f"{asked} needs a limit that equals it")
        elif request > limit or (request != limit and not is_overcommittable(name)):
            yield Refusal(REQUEST_ABOVE_LIMIT, where, f"{asked} does not go with the limit {text_of(limit, name)}")


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


def _beyond(what: str, name: str, milli: int, bound: int) -> Refusal:
    message = f"{name} {what}, {text_of(milli, name)}, exceed the pod's own {text_of(bound, name)}"
    return Refusal(REQUEST_ABOVE_LIMIT, "pod", message)


def _policy_faults(pod: Pod) -> Iterator[Refusal]:
    if pod.restart_policy != "Never":
        return
    for container in pod.every_container():
        if any(container.restarts_on(name) for name in container.resize_policy):
            yield Refusal(RESIZE_POLICY, container.name, "a pod that never restarts cannot restart it for a resize")

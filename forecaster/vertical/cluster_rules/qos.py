"""The QoS class of a pod (§6.3), and the exclusive CPUs that the static CPU manager gives to one (§6.10).

When memory runs short, the class decides which container the kernel kills first (§6.4), and which pod the kubelet
evicts first (§6.5).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements, total
from forecaster.vertical.cluster_rules.resource_list import COMPUTE, CPU_RESOURCE, MEMORY_RESOURCE, MILLI, whole
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server


class QosClass(StrEnum):
    """Killed last, in between, and first when memory runs out."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def qos_of(pod: Pod, server: Server = LATEST_SERVER) -> QosClass:
    """Rules §6.3: the recorded QoS class, else the class of the spec."""
    return QosClass(pod.status.qos) if pod.status.qos else computed_qos(pod, server)


def computed_qos(pod: Pod, server: Server = LATEST_SERVER) -> QosClass:
    """Rules §6.3: the class of a pod with its requests defaulted."""
    if pod.pod_level is not None and _pod_level_decides(pod, server):
        return _class_of_block(pod.pod_level)
    return _agreed([_class_of_block(container.resources) for container in pod.every_container()])


def _pod_level_decides(pod: Pod, server: Server) -> bool:
    return server.has_pod_level_resources and (pod.has_pod_level or not server.ignores_empty_pod_level)


def _class_of_block(block: Requirements) -> QosClass:
    if block.is_empty:
        return QosClass.BEST_EFFORT
    return _agreed([_class_of_resource(block, name) for name in COMPUTE])


def _class_of_resource(block: Requirements, name: str) -> QosClass:
    request, limit = block.requests.get(name, 0), block.limits.get(name, 0)
    if request != limit:
        return QosClass.BURSTABLE
    return QosClass.GUARANTEED if request else QosClass.BEST_EFFORT


def _agreed(classes: Iterable[QosClass]) -> QosClass:
    """Return the common class; Burstable where classes differ, BestEffort without any."""
    different = set(classes)
    if len(different) > 1:
        return QosClass.BURSTABLE
    return different.pop() if different else QosClass.BEST_EFFORT


def exclusive_cpus(pod: Pod, server: Server = LATEST_SERVER) -> dict[str, int]:
    """Rules §6.10: CPUs that the static CPU manager gives to each container alone; 0 for those that share the rest.

    It needs a reservation of more than zero CPU for the kubelet, which does not start without one.
    """
    exclusive = qos_of(pod, server) is QosClass.GUARANTEED
    return {
        container.name: _whole_cpus(container.resources.requests.get(CPU_RESOURCE, 0)) if exclusive else 0
        for container in pod.every_container()
    }


def _whole_cpus(milli: int) -> int:
    return milli // MILLI if milli % MILLI == 0 else 0


NODE_CRITICAL = "system-node-critical"
PROTECTED, EXPOSED = -997, 1000
_MIN, _MAX = 1000 + PROTECTED, EXPOSED - 1


def oom_score_adj(pod: Pod, node_memory_bytes: int, server: Server = LATEST_SERVER) -> dict[str, int]:
    """Rules §6.4: the score of every container and init container, by name.

    The kernel kills the largest `score + 1000 * usage / node memory`.
    """
    names, qos = [container.name for container in pod.every_container()], qos_of(pod, server)
    if pod.priority_class == NODE_CRITICAL or qos is QosClass.GUARANTEED:
        return dict.fromkeys(names, PROTECTED)
    return dict.fromkeys(names, EXPOSED) if qos is QosClass.BEST_EFFORT else _burstable(pod, node_memory_bytes, server)


def _burstable(pod: Pod, node_memory_bytes: int, server: Server) -> dict[str, int]:
    """oom_score_adj between Guaranteed and BestEffort; a sidecar's at most that of the smallest request beside it."""
    share = share_of_pod_level(pod, server)
    smallest = min(map(_memory_request, pod.containers), default=0)
    requests = {
        container.name: max(_memory_request(container), smallest if container.sidecar else 0)
        for container in pod.every_container()
    }
    scores = {name: EXPOSED - EXPOSED * (request + share) // node_memory_bytes for name, request in requests.items()}
    return {name: max(_MIN, _MAX if score == EXPOSED else score) for name, score in scores.items()}


def _memory_request(container: Container) -> int:
    return whole(container.resources.requests.get(MEMORY_RESOURCE, 0))


def share_of_pod_level(pod: Pod, server: Server) -> int:
    """Return each container's equal part of the pod's request beyond its containers."""
    if not server.has_pod_level_resources or not pod.pod_level_requests.get(MEMORY_RESOURCE):
        return 0
    stated = total(pod, lambda container: container.resources.requests).get(MEMORY_RESOURCE, 0)
    spare = max(whole(pod.pod_level_requests[MEMORY_RESOURCE]) - whole(stated), 0)
    return spare // (len(pod.containers) + len(pod.init_containers))


class MemoryUser(NamedTuple):
    """One pod on a node; None is usage that is not measured."""

    name: str
    usage_bytes: int | None
    request_bytes: int
    priority: int = 0


def eviction_order(pods: Iterable[MemoryUser]) -> list[MemoryUser]:
    """Rules §6.5: first evicted first; the QoS class is no input."""
    return sorted(pods, key=_rank)


def _rank(pod: MemoryUser) -> tuple[bool, bool, int, int]:
    if pod.usage_bytes is None:
        return (False, False, pod.priority, 0)
    over = pod.usage_bytes - pod.request_bytes
    return (True, over <= 0, pod.priority, -over)

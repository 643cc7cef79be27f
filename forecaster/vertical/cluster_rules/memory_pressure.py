"""When memory runs short: which container the kernel kills first (§6.4), which pod the kubelet evicts first (§6.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.vertical.cluster_rules.pod_resources import total
from forecaster.vertical.cluster_rules.qos import QosClass, qos_of
from forecaster.vertical.cluster_rules.resource_list import MEMORY_RESOURCE, whole
from forecaster.vertical.cluster_rules.server import LATEST_SERVER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.vertical.cluster_rules.pod import Container, Pod
    from forecaster.vertical.cluster_rules.server import Server

NODE_CRITICAL = "system-node-critical"
PROTECTED, EXPOSED = -997, 1000
_LEAST, _MOST = 1000 + PROTECTED, EXPOSED - 1
_NUDGE_UNIT = 64 * 2**20


class _Node(NamedTuple):
    """What of the node counts."""

    memory_bytes: int
    tie_break: bool


def oom_score_adj(
    pod: Pod, node_memory_bytes: int, server: Server = LATEST_SERVER, *, tie_break: bool = False
) -> dict[str, int]:
    """Rules §6.4: the score of every container and init container, by name.

    The kernel kills the largest `score + 1000 * usage / node memory`. `tie_break` is the kubelet's gate that tells
    small requests on large nodes apart.
    """
    node = _Node(node_memory_bytes, tie_break)
    return {container.name: _score(pod, container, node, server) for container in pod.every_container()}


def _score(pod: Pod, container: Container, node: _Node, server: Server) -> int:
    if pod.priority_class == NODE_CRITICAL:
        return PROTECTED
    match qos_of(pod, server):
        case QosClass.GUARANTEED:
            return PROTECTED
        case QosClass.BEST_EFFORT:
            return EXPOSED
        case QosClass.BURSTABLE:
            return _clamped(_burstable(pod, container, node, server))


def _clamped(score: int) -> int:
    """Between Guaranteed and BestEffort."""
    return max(_LEAST, _MOST if score == EXPOSED else score)


def _burstable(pod: Pod, container: Container, node: _Node, server: Server) -> int:
    share = _share_of_pod_level(pod, server)
    own = _raw(pod, container, share, node)
    if not container.sidecar:
        return own
    others = [_raw(pod, one, share, node) for one in pod.containers]
    # Without the tie-break the highest score is that of the smallest request; with it, scores are compared.
    return min(own, max(others))


def _raw(pod: Pod, container: Container, share: int, node: _Node) -> int:
    request = _memory_request(container) + share
    score = EXPOSED - EXPOSED * request // node.memory_bytes
    return score - _nudge(pod, container, request, node) if node.tie_break else score


def _nudge(pod: Pod, container: Container, request: int, node: _Node) -> int:
    """A few points for the larger requests of a large node, and more for those that cannot grow."""
    most = _log2(node.memory_bytes // EXPOSED // _NUDGE_UNIT)
    enforced = container.resources.limits.get(MEMORY_RESOURCE, pod.pod_level_limits.get(MEMORY_RESOURCE))
    bounded = enforced is not None and 0 < whole(enforced) <= request
    return min(_log2(request // _NUDGE_UNIT), most) + (most + 1 if bounded else 0)


def _log2(value: int) -> int:
    return value.bit_length() - 1 if value >= 1 else 0


def _memory_request(container: Container) -> int:
    return whole(container.resources.requests.get(MEMORY_RESOURCE, 0))


def _share_of_pod_level(pod: Pod, server: Server) -> int:
    """Each container's equal part of what the pod requests beyond its containers."""
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

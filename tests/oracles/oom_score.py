"""oom_score_adj by the kubelet's gate that separates small requests on large nodes (spec/vertical.md §6.4).

The gate is off by default, so forecaster has no rule for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.vertical.cluster_rules.qos import (
    EXPOSED,
    NODE_CRITICAL,
    PROTECTED,
    QosClass,
    qos_of,
    share_of_pod_level,
)
from forecaster.vertical.cluster_rules.resource_list import MEMORY_RESOURCE, whole
from forecaster.vertical.cluster_rules.server import LATEST_SERVER

if TYPE_CHECKING:
    from forecaster.vertical.cluster_rules.pod import Container, Pod

_UNIT = 64 * 2**20
_LEAST, _MOST = 1000 + PROTECTED, EXPOSED - 1


class _Place(NamedTuple):
    """A pod on a node with so much memory."""

    pod: Pod
    memory_bytes: int


def tie_broken(pod: Pod, node_memory_bytes: int) -> dict[str, int]:
    """The score of every container and init container of a pod, by name."""
    return {container.name: _score(_Place(pod, node_memory_bytes), container) for container in pod.every_container()}


def _score(place: _Place, container: Container) -> int:
    qos = qos_of(place.pod)
    if place.pod.priority_class == NODE_CRITICAL or qos is QosClass.GUARANTEED:
        return PROTECTED
    if qos is QosClass.BEST_EFFORT:
        return EXPOSED
    score = _raw(place, container)
    if container.sidecar:
        score = min(score, max(_raw(place, other) for other in place.pod.containers))
    return max(_LEAST, _MOST if score == EXPOSED else score)


def _raw(place: _Place, container: Container) -> int:
    share = share_of_pod_level(place.pod, LATEST_SERVER)
    request = whole(container.resources.requests.get(MEMORY_RESOURCE, 0)) + share
    most = _log2(place.memory_bytes // EXPOSED // _UNIT)
    limit = container.resources.limits.get(MEMORY_RESOURCE, place.pod.pod_level_limits.get(MEMORY_RESOURCE))
    bounded = limit is not None and 0 < whole(limit) <= request
    nudge = min(_log2(request // _UNIT), most) + (most + 1 if bounded else 0)
    return EXPOSED - EXPOSED * request // place.memory_bytes - nudge


def _log2(value: int) -> int:
    return value.bit_length() - 1 if value >= 1 else 0

"""More CPU until a pod has started: its CPU limit, times a factor. Pure.

Requests stay, so where the pod runs, what quotas of requests count, and what an HPA divides by stay, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from forecaster.actuators.room import Surroundings, admitted
from forecaster.vertical.admission.context import with_values
from forecaster.vertical.cluster_rules.resize import resize
from forecaster.vertical.cluster_rules.resource_list import CPU_RESOURCE

if TYPE_CHECKING:
    from forecaster.actuators.resize.sized_pod import Sizes
    from forecaster.vertical.cluster_rules.pod import Pod, Requirements


def boosted(pod: Pod, base: Sizes, factor: float, around: Surroundings, replicas: int) -> dict[str, Requirements]:
    """Return the sizes [container] of a new pod with more CPU than `base`; none where it could not go back.

    A Guaranteed pod has the limit of its request, and no resize changes the class of a pod; nor may the way back
    restart a container. It is as near to the factor as LimitRanges and quotas of its namespace admit.
    """
    names = {one.name for one in pod.containers}
    more = {
        name: _times(size, factor) for name, size in base.items() if name in names and size.limits.get(CPU_RESOURCE)
    }
    if factor <= 1.0 or not more:
        return {}
    own = with_values(pod, base)
    nearest, _ = admitted(own, more, around, replicas=replicas)
    found = {name: nearest[name] for name in more if name in nearest and _raised(nearest[name], base[name])}
    back = resize(with_values(own, found), own, around.server)
    return found if back.allowed and not back.restarts else {}


def _raised(size: Requirements, base: Requirements) -> bool:
    """Whether the limit is higher, and it alone: a Guaranteed pod is only admitted with a higher request, too."""
    return _limit(size) > _limit(base) and size.requests == base.requests


def _times(size: Requirements, factor: float) -> Requirements:
    return replace(size, limits={**size.limits, CPU_RESOURCE: round(_limit(size) * factor)})


def _limit(size: Requirements) -> int:
    return size.limits.get(CPU_RESOURCE, 0)

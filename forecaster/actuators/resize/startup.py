"""More CPU until a pod has started: the CPU limit of each container, times a factor. Pure.

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
    from forecaster.publish.new_pods import NewPodSize
    from forecaster.vertical.cluster_rules.pod import Pod, Requirements


def boosted(pod: Pod, base: Sizes, offered: NewPodSize, around: Surroundings) -> dict[str, Requirements]:
    """Return the sizes [container] of a new pod with more CPU than `base`; none where it could not go back.

    A Guaranteed pod has the limit of its request, and no resize changes the class of a pod; nor may the way back
    restart a container. It is as near to the factor as LimitRanges and quotas of its namespace admit.
    """
    learned = {name: one.factor for name, one in offered.boosts.items()}
    factors = {one.name: learned.get(one.name, offered.boost) for one in pod.containers}
    more = {
        name: _times(size, factors[name])
        for name, size in base.items()
        if factors.get(name, 1.0) > 1.0 and size.limits.get(CPU_RESOURCE)
    }
    if not more:
        return {}
    own = with_values(pod, base)
    nearest, _ = admitted(own, more, around, replicas=offered.replicas)
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

"""A demand through the HPA's own formula: the same for the measured value and for the forecast one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forecaster.decisions.targets import AmountTarget, PodTarget
from forecaster.hpa.proposals import NO_SHARE, MetricProposal, Share, from_average, from_utilization, per_pod_value

if TYPE_CHECKING:
    from forecaster.hpa.proposals import Tolerance, Unmeasured


def milli(amount: float) -> int:
    """Integer milli-units, rounded away from zero (docs/hpa.md §2).

    The inner rounding takes back what the multiplication adds: 1.001 cores are 1001 m and not 1002 m.
    """
    return math.ceil(round(amount * 1000, 6))


def proposal(
    demand: float, target: PodTarget, ready: int, current: int, tolerance: Tolerance
) -> MetricProposal | Unmeasured:
    """Replicas that one signal asks for at this total demand (docs/hpa.md §8.1, §8.2, §8.4).

    Resource metrics are shared by the `ready` pods, of which no more than `current` count: the rest are leaving. Pods
    that are asked for and not ready yet take their share when the load is high. A signal of all pods is divided by the share
    of a pod, as the HPA does with an External metric of type AverageValue.
    """
    usage = milli(demand)
    if isinstance(target, AmountTarget) and target.signal.of_all_pods:
        return per_pod_value(usage, milli(target.amount), current, tolerance)
    ready = min(ready, current)
    starting = current - ready
    if isinstance(target, AmountTarget):
        return from_average(usage, ready, milli(target.amount), ready, current, tolerance, unready=starting)
    request = milli(target.request)
    unready = Share(starting, starting * request) if starting else NO_SHARE
    return from_utilization(usage, ready * request, target.percent, ready, current, tolerance, unready=unready)

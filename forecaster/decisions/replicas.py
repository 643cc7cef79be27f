"""A demand through the HPA's own formula: the same for the measured value and for the forecast one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forecaster.decisions.targets import PodTarget, UtilizationTarget
from forecaster.domain.signal import Signal
from forecaster.hpa.proposals import Proposal, from_average, from_utilization, per_pod_value

if TYPE_CHECKING:
    from forecaster.hpa.tolerance import Tolerance
    from forecaster.hpa.unmeasured import Unmeasured


def milli(amount: float) -> int:
    """Integer milli-units, rounded away from zero (docs/hpa.md §2).

    The inner rounding takes back what the multiplication adds: 1.001 cores are 1001 m and not 1002 m.
    """
    return math.ceil(round(amount * 1000, 6))


def proposal(demand: float, target: PodTarget, ready: int, current: int, tolerance: Tolerance) -> Proposal | Unmeasured:
    """Replicas that one signal asks for at this total demand (docs/hpa.md §8.1, §8.2, §8.4).

    Resource metrics are shared by the `ready` pods; a request rate is divided by the share of a pod, as the HPA does
    with an External metric of type AverageValue.
    """
    if isinstance(target, UtilizationTarget):
        request = ready * milli(target.request)
        return from_utilization(milli(demand), request, target.percent, ready, current, tolerance)
    if target.signal is Signal.REQUESTS:
        return per_pod_value(milli(demand), milli(target.amount), current, tolerance)
    return from_average(milli(demand), ready, milli(target.amount), ready, current, tolerance)

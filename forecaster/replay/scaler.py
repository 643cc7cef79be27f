"""One HPA as the replay needs it: the exact arithmetic, from total demand and pods that are alike.

It says what `hpa.reconcile` says when it sees `ready` pods that share the demand and `pending` ones that have not begun
(a property test holds them together), without pods as objects: a day of one HPA is 5,760 passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forecaster.decisions.replicas import proposal
from forecaster.decisions.targets import UtilizationTarget
from forecaster.domain.signal import Signal
from forecaster.hpa.combine import NoRecommendation, combine
from forecaster.hpa.controller import SHIPPED
from forecaster.hpa.limits import Bounds, limit
from forecaster.hpa.tolerance import Tolerance
from forecaster.hpa.unmeasured import Unmeasured

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.decisions.targets import PodTarget
    from forecaster.hpa.history import PastRecommendations
    from forecaster.hpa.proposals import Proposal
    from forecaster.replay.pods import Pods

TOLERANCE = Tolerance(SHIPPED.tolerance, SHIPPED.tolerance)
NO_SAMPLE = Unmeasured("no_samples", "nothing was measured")
NOT_READY = Unmeasured("no_samples_left", "no pod is ready")


@dataclass(frozen=True, slots=True)
class Scaler:
    """An HPA without `spec.behavior`, under a controller with its shipped settings."""

    targets: tuple[PodTarget, ...]
    bounds: Bounds


def next_replicas(
    scaler: Scaler, pods: Pods, demand: Mapping[Signal, float], history: PastRecommendations, now: datetime
) -> tuple[int, PastRecommendations]:
    """One sync: the replicas after it, and its memory (HPA rules §3, §9, §10).

    `demand` is the measured total by signal, NaN where nothing was measured. A pass that finds too few or too many pods
    for the bounds asks for the bound and looks at no metric; a workload at zero stays there.
    """
    bounds, current = scaler.bounds, pods.asked
    if current == 0:
        return 0, history
    if not bounds.min_replicas <= current <= bounds.max_replicas:
        return min(max(current, bounds.min_replicas), bounds.max_replicas), history
    proposals = [_proposal(target, demand.get(target.signal, math.nan), pods) for target in scaler.targets]
    recommendation = combine(proposals, current)
    if isinstance(recommendation, NoRecommendation):
        return current, history
    limited = limit(recommendation.replicas, current, bounds, None, history, now)
    return limited.replicas, limited.history


def raised(scaler: Scaler, floor: int) -> Scaler:
    """The same HPA with `minReplicas` raised to `floor`, though never above `maxReplicas`."""
    lowest, highest = scaler.bounds.min_replicas, scaler.bounds.max_replicas
    return scaler if floor <= lowest else replace(scaler, bounds=Bounds(min(floor, highest), highest))


def with_targets_at(scaler: Scaler, share: float) -> Scaler:
    """The same HPA with every target at this share of its value: what its owner can do without a forecast.

    A utilization is a whole percent, and at least one.
    """
    return replace(scaler, targets=tuple(_at_share(target, share) for target in scaler.targets))


def _at_share(target: PodTarget, share: float) -> PodTarget:
    if isinstance(target, UtilizationTarget):
        return replace(target, percent=max(1, round(target.percent * share)))
    return replace(target, amount=target.amount * share)


def _proposal(target: PodTarget, demand: float, pods: Pods) -> Proposal | Unmeasured:
    """HPA rules §6, §8: without a ready pod there is no sample of a resource; a rate is measured elsewhere."""
    if math.isnan(demand):
        return NO_SAMPLE
    if not pods.ready and target.signal is not Signal.REQUESTS:
        return NOT_READY
    return proposal(demand, target, pods.ready, pods.asked, TOLERANCE)

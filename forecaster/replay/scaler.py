"""One HPA as the replay needs it: the exact arithmetic, from total demand and pods that are alike.

It says what `hpa.reconcile` says when it sees `ready` pods that share the demand and `pending` ones that have not begun
(a property test holds them together), without pods as objects: a day of one HPA is 5,760 passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from forecaster.decisions.replicas import proposal
from forecaster.decisions.targets import UtilizationTarget
from forecaster.hpa.behavior import PastRecommendation, PastRecommendations, ScaleEvents, record_scale_event
from forecaster.hpa.limits import ReplicaBounds, limit
from forecaster.hpa.proposals import NoRecommendation, Unmeasured, combine
from forecaster.hpa.spec import SHIPPED, tolerance_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.decisions.targets import PodTarget
    from forecaster.domain.signal import Signal
    from forecaster.hpa.behavior import Behavior
    from forecaster.hpa.proposals import MetricProposal, Tolerance
    from forecaster.replay.pods import Pods

NO_SAMPLE = Unmeasured("no_samples", "nothing was measured")
NOT_READY = Unmeasured("no_samples_left", "no pod is ready")


@dataclass(frozen=True, slots=True)
class Scaler:
    """An HPA under a controller with its shipped settings; `behavior` None means the limits of HPA rules §10."""

    targets: tuple[PodTarget, ...]
    bounds: ReplicaBounds
    behavior: Behavior | None = None
    tolerance: Tolerance = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", tolerance_of(self.behavior, SHIPPED))


class Memory(NamedTuple):
    """What the controller remembers: recommendations, and with `behavior` the changes it made."""

    history: PastRecommendations = ()
    scale_ups: ScaleEvents = ()
    scale_downs: ScaleEvents = ()

    @classmethod
    def beginning(cls, replicas: int, now: datetime) -> Memory:
        """An HPA that is seen for the first time (HPA rules §3, step 3)."""
        return cls((PastRecommendation(replicas, now),))


def next_replicas(
    scaler: Scaler, pods: Pods, demand: Mapping[Signal, float], memory: Memory, now: datetime
) -> tuple[int, Memory]:
    """One sync: the replicas after it, and its memory (HPA rules §3, §9, §10, §11).

    `demand` is the measured total by signal, NaN where nothing was measured. A pass that finds too few or too many pods
    for the bounds asks for the bound and looks at no metric; a workload at zero stays there.
    """
    replicas, history = _wanted(scaler, pods, demand, memory, now)
    return replicas, _moved(scaler.behavior, memory._replace(history=history), replicas - pods.asked, now)


def _wanted(
    scaler: Scaler, pods: Pods, demand: Mapping[Signal, float], memory: Memory, now: datetime
) -> tuple[int, PastRecommendations]:
    bounds, current, history = scaler.bounds, pods.asked, memory.history
    if current == 0:
        return 0, history
    if not bounds.min_replicas <= current <= bounds.max_replicas:
        return min(max(current, bounds.min_replicas), bounds.max_replicas), history
    proposals = [
        _proposal(target, demand.get(target.signal, math.nan), pods, scaler.tolerance) for target in scaler.targets
    ]
    recommendation = combine(proposals, current)
    if isinstance(recommendation, NoRecommendation):
        return current, history
    limited = limit(
        recommendation.replicas,
        current,
        bounds,
        scaler.behavior,
        history,
        now,
        scale_ups=memory.scale_ups,
        scale_downs=memory.scale_downs,
    )
    return limited.replicas, limited.history


def _moved(behavior: Behavior | None, memory: Memory, change: int, now: datetime) -> Memory:
    """HPA rules §11.4: changes are remembered where there is `behavior`."""
    if behavior is None or not change:
        return memory
    if change > 0:
        return memory._replace(scale_ups=record_scale_event(memory.scale_ups, change, now, behavior.scale_up.policies))
    return memory._replace(
        scale_downs=record_scale_event(memory.scale_downs, -change, now, behavior.scale_down.policies)
    )


def raised(scaler: Scaler, floor: int) -> Scaler:
    """The same HPA with `minReplicas` raised to `floor`, though never above `maxReplicas`."""
    lowest, highest = scaler.bounds.min_replicas, scaler.bounds.max_replicas
    return scaler if floor <= lowest else replace(scaler, bounds=ReplicaBounds(min(floor, highest), highest))


def with_targets_at(scaler: Scaler, share: float) -> Scaler:
    """The same HPA with every target at this share of its value: what its owner can do without a forecast.

    A utilization is a whole percent, and at least one.
    """
    return replace(scaler, targets=tuple(_at_share(target, share) for target in scaler.targets))


def _at_share(target: PodTarget, share: float) -> PodTarget:
    if isinstance(target, UtilizationTarget):
        return replace(target, percent=max(1, round(target.percent * share)))
    return replace(target, amount=target.amount * share)


def _proposal(target: PodTarget, demand: float, pods: Pods, tolerance: Tolerance) -> MetricProposal | Unmeasured:
    """HPA rules §6, §8: without a ready pod there is no sample of a resource; a rate is measured elsewhere."""
    if math.isnan(demand):
        return NO_SAMPLE
    if not pods.ready and not target.signal.survives_zero:
        return NOT_READY
    return proposal(demand, target, pods.ready, pods.asked, tolerance)

"""From a recommendation to the desired count: stabilisation, rate limits, bounds (HPA rules §10, §11).

`limit` is the one entry point; it follows §11 (`behavior`) where the HPA has `spec.behavior`, else §10. It takes the
history and returns it with the recommendation as it was before stabilisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from forecaster.hpa import behavior as both_ways
from forecaster.hpa.behavior import Behavior, PastRecommendations, ScaleEvents, record_recommendation
from forecaster.hpa.numbers import truncate_to_int32
from forecaster.hpa.state import Clamp, Stabilization


@dataclass(frozen=True, slots=True)
class ReplicaBounds:
    """`minReplicas` and `maxReplicas`."""

    min_replicas: int
    max_replicas: int


@dataclass(frozen=True, slots=True)
class Growth:
    """HPA rules §10: how far an HPA without `behavior` may grow in one pass: a factor, and a size always allowed."""

    factor: float = 2.0
    minimum: float = 4.0


DOWNSCALE_STABILIZATION = timedelta(minutes=5)
DOUBLING = Growth()
NOTHING_MOVED: ScaleEvents = ()


class Limited(NamedTuple):
    """The desired count and how it came about.

    `stabilization` is the reason of `AbleToScale`, `clamp` that of `ScalingLimited`; `history` has the recommendation
    stored.
    """

    replicas: int
    stabilized: int
    stabilization: Stabilization
    clamp: Clamp
    history: PastRecommendations


def limit(
    recommendation: int,
    current: int,
    bounds: ReplicaBounds,
    behavior: Behavior | None,
    history: PastRecommendations,
    now: datetime,
    *,
    scale_ups: ScaleEvents = NOTHING_MOVED,
    scale_downs: ScaleEvents = NOTHING_MOVED,
    downscale_stabilization: timedelta = DOWNSCALE_STABILIZATION,
    growth: Growth = DOUBLING,
) -> Limited:
    """HPA rules §11.3: stabilise, then limit and bound; events matter only with `behavior`, `growth` only without."""
    if behavior is None:
        return _limit_without_behavior(recommendation, current, bounds, history, now, downscale_stabilization, growth)
    up_window, down_window = windows(behavior, downscale_stabilization)
    stabilized, stored = both_ways.stabilize(history, recommendation, current, up_window, down_window, now)
    replicas, clamp = both_ways.rate_limit(
        stabilized, current, bounds.min_replicas, bounds.max_replicas, behavior, scale_ups, scale_downs, now
    )
    reason = both_ways.stabilization_reason(stabilized, recommendation, current)
    return Limited(replicas, stabilized, reason, clamp, stored)


def windows(behavior: Behavior, downscale_stabilization: timedelta) -> tuple[timedelta, timedelta]:
    """HPA rules §11, §12: the windows up and down; an unset one is 0 s up and the controller's flag down."""
    up, down = behavior.scale_up.stabilization_window, behavior.scale_down.stabilization_window
    return (timedelta() if up is None else up), (downscale_stabilization if down is None else down)


def _limit_without_behavior(
    recommendation: int,
    current: int,
    bounds: ReplicaBounds,
    history: PastRecommendations,
    now: datetime,
    window: timedelta,
    growth: Growth,
) -> Limited:
    stabilized, stored = stabilize_down(history, recommendation, window, now)
    largest = growth_limit(current, growth)
    replicas, clamp = bound(stabilized, bounds.min_replicas, bounds.max_replicas, largest)
    reason: Stabilization = "ReadyForNewScale" if stabilized == recommendation else "ScaleDownStabilized"
    return Limited(replicas, stabilized, reason, clamp, stored)


def stabilize_down(
    history: PastRecommendations, recommendation: int, window: timedelta, now: datetime
) -> tuple[int, PastRecommendations]:
    """Return the highest recommendation of the window, and the history with this one stored (HPA rules §10).

    An entry exactly as old as the window still counts. The result may exceed the current size.
    """
    cutoff = now - window
    highest, stale = recommendation, None
    for slot, (replicas, at) in enumerate(history):
        if at < cutoff:
            stale = slot
        elif replicas > highest:
            highest = replicas
    return highest, record_recommendation(history, recommendation, now, stale)


def growth_limit(current: int, growth: Growth = DOUBLING) -> int:
    """HPA rules §10: twice the current size, and four pods at least; there is no period."""
    return truncate_to_int32(max(growth.factor * current, growth.minimum))


def bound(stabilized: int, min_replicas: int, max_replicas: int, growth: int) -> tuple[int, Clamp]:
    """HPA rules §10: `minReplicas` first, then `maxReplicas` or the growth limit, whichever is lower."""
    if stabilized < min_replicas:
        return min_replicas, "TooFewReplicas"
    if stabilized > min(max_replicas, growth):
        return (growth, "ScaleUpLimit") if max_replicas > growth else (max_replicas, "TooManyReplicas")
    return stabilized, "DesiredWithinRange"

"""From a recommendation to the desired count: stabilisation, rate limits, bounds (HPA rules §10, §11).

`limit` is the one entrance; it walks §11 where the HPA has `spec.behavior` and §10 where it has none. The history goes
in and comes out with the recommendation stored as it was before stabilisation.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from forecaster.hpa import behavior as both_ways
from forecaster.hpa import legacy
from forecaster.hpa.conditions import Clamp, Stabilization
from forecaster.hpa.history import PastRecommendations, ScaleEvents
from forecaster.hpa.rules import Behavior


@dataclass(frozen=True, slots=True)
class Bounds:
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
    bounds: Bounds,
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
    bounds: Bounds,
    history: PastRecommendations,
    now: datetime,
    window: timedelta,
    growth: Growth,
) -> Limited:
    stabilized, stored = legacy.stabilize(history, recommendation, window, now)
    largest = legacy.growth_limit(current, growth.factor, growth.minimum)
    replicas, clamp = legacy.bound(stabilized, bounds.min_replicas, bounds.max_replicas, largest)
    return Limited(replicas, stabilized, legacy.stabilization_reason(stabilized, recommendation), clamp, stored)

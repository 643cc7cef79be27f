"""Limits where the HPA has `spec.behavior` (HPA rules §11): stabilise both ways, then rate limits and bounds."""

from datetime import datetime, timedelta

from forecaster.hpa.conditions import Clamp, Stabilization
from forecaster.hpa.history import PastRecommendations, ScaleEvents, change_since, remember
from forecaster.hpa.numbers import MAX_INT32, MIN_INT32, ceil_to_int32, truncate_to_int32, wrap_int32
from forecaster.hpa.rules import Behavior, ScalingPolicy, ScalingRules


def stabilize(
    history: PastRecommendations,
    recommendation: int,
    current: int,
    scale_up_window: timedelta,
    scale_down_window: timedelta,
    now: datetime,
) -> tuple[int, PastRecommendations]:
    """HPA rules §11.1: the size nearest to `current` between lowest of the up window and highest of the down window.

    Returns the stabilised count and the history with `recommendation` stored. An entry whose age equals a window is
    neither considered nor stale.
    """
    up_edge, down_edge = now - scale_up_window, now - scale_down_window
    lowest = highest = recommendation
    stale = None
    for slot, (replicas, at) in enumerate(history):
        if at > up_edge and replicas < lowest:
            lowest = replicas
        if at > down_edge and replicas > highest:
            highest = replicas
        if at < up_edge and at < down_edge:
            stale = slot
    return min(max(current, lowest), highest), remember(history, recommendation, now, stale)


def stabilization_reason(stabilized: int, recommendation: int, current: int) -> Stabilization:
    """HPA rules §11.1: the reason of `AbleToScale`; staying where a rise was asked for counts as scaling up."""
    if stabilized == recommendation:
        return "ReadyForNewScale"
    return "ScaleUpStabilized" if recommendation >= current else "ScaleDownStabilized"


def rate_limit(
    stabilized: int,
    current: int,
    min_replicas: int,
    max_replicas: int,
    behavior: Behavior,
    scale_ups: ScaleEvents,
    scale_downs: ScaleEvents,
    now: datetime,
) -> tuple[int, Clamp]:
    """HPA rules §11.2: the policies of the direction taken, then its bound; staying at `current` consults neither."""
    if stabilized > current:
        limit = max(scale_up_limit(current, behavior.scale_up, scale_ups, scale_downs, now), current)
        allowed: int = min(max_replicas, limit)
        if stabilized > allowed:
            return allowed, "ScaleUpLimit" if max_replicas > limit else "TooManyReplicas"
    elif stabilized < current:
        limit = min(scale_down_limit(current, behavior.scale_down, scale_ups, scale_downs, now), current)
        allowed = max(min_replicas, limit)
        if stabilized < allowed:
            return allowed, "ScaleDownLimit" if min_replicas < limit else "TooFewReplicas"
    return stabilized, "DesiredWithinRange"


def scale_up_limit(
    current: int, rules: ScalingRules, scale_ups: ScaleEvents, scale_downs: ScaleEvents, now: datetime
) -> int:
    """HPA rules §11.2: the largest size the policies allow; `Max` takes the most permissive of them."""
    if rules.select_policy == "Disabled":
        return current
    allowed = raised_by_policy(current, rules, scale_ups, scale_downs, now)
    if rules.select_policy == "Min":
        return min(allowed, default=MAX_INT32)
    return max(allowed, default=MIN_INT32)


def scale_down_limit(
    current: int, rules: ScalingRules, scale_ups: ScaleEvents, scale_downs: ScaleEvents, now: datetime
) -> int:
    """HPA rules §11.2: the smallest size the policies allow; `Max` takes the most permissive of them."""
    if rules.select_policy == "Disabled":
        return current
    allowed = lowered_by_policy(current, rules, scale_ups, scale_downs, now)
    if rules.select_policy == "Min":
        return max(allowed, default=MIN_INT32)
    return min(allowed, default=MAX_INT32)


def raised_by_policy(
    current: int, rules: ScalingRules, scale_ups: ScaleEvents, scale_downs: ScaleEvents, now: datetime
) -> list[int]:
    """The size that each policy alone would allow on the way up, in their order."""
    return [_raised(period_start(current, p.period, scale_ups, scale_downs, now), p) for p in rules.policies]


def lowered_by_policy(
    current: int, rules: ScalingRules, scale_ups: ScaleEvents, scale_downs: ScaleEvents, now: datetime
) -> list[int]:
    """The size that each policy alone would allow on the way down, in their order."""
    return [_lowered(period_start(current, p.period, scale_ups, scale_downs, now), p) for p in rules.policies]


def period_start(
    current: int, period: timedelta, scale_ups: ScaleEvents, scale_downs: ScaleEvents, now: datetime
) -> int:
    """HPA rules §11.2: the size the target had when the period began; events of both directions count."""
    if not scale_ups and not scale_downs:
        return current
    begin = now - period
    return wrap_int32(current - change_since(scale_ups, begin) + change_since(scale_downs, begin))


def _raised(start: int, policy: ScalingPolicy) -> int:
    """Rounded up without epsilon, so 100 pods and 10 percent are 111."""
    if policy.type == "Pods":
        return wrap_int32(start + policy.value)
    return ceil_to_int32(start * (1 + policy.value / 100))


def _lowered(start: int, policy: ScalingPolicy) -> int:
    """Cut toward zero, so 10 pods less 90 percent are none."""
    if policy.type == "Pods":
        return wrap_int32(start - policy.value)
    return truncate_to_int32(start * (1 - policy.value / 100))

"""Limits where the HPA has no `spec.behavior` (HPA rules §10)."""

from datetime import datetime, timedelta

from forecaster.hpa.conditions import Clamp, Stabilization
from forecaster.hpa.history import PastRecommendations, remember
from forecaster.hpa.numbers import truncate_to_int32


def stabilize(
    history: PastRecommendations, recommendation: int, window: timedelta, now: datetime
) -> tuple[int, PastRecommendations]:
    """HPA rules §10: the highest recommendation of the window, and the history with this one stored.

    An entry whose age equals the window still counts. The result may exceed the current size.
    """
    cutoff = now - window
    highest, stale = recommendation, None
    for slot, (replicas, at) in enumerate(history):
        if at < cutoff:
            stale = slot
        elif replicas > highest:
            highest = replicas
    return highest, remember(history, recommendation, now, stale)


def stabilization_reason(stabilized: int, recommendation: int) -> Stabilization:
    """HPA rules §10: the reason of `AbleToScale`."""
    return "ReadyForNewScale" if stabilized == recommendation else "ScaleDownStabilized"


def growth_limit(current: int, factor: float = 2.0, minimum: float = 4.0) -> int:
    """HPA rules §10: twice the current size, and four pods at least; there is no period."""
    return truncate_to_int32(max(factor * current, minimum))


def bound(stabilized: int, min_replicas: int, max_replicas: int, growth: int) -> tuple[int, Clamp]:
    """HPA rules §10: `minReplicas` first, then `maxReplicas` or the growth limit, whichever is lower."""
    if stabilized < min_replicas:
        return min_replicas, "TooFewReplicas"
    if stabilized > min(max_replicas, growth):
        return (growth, "ScaleUpLimit") if max_replicas > growth else (max_replicas, "TooManyReplicas")
    return stabilized, "DesiredWithinRange"

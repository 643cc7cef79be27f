"""`spec.behavior`: its fields, its stabilization and rate limits, and the history they need (HPA rules §10, §11).

History and events live in the controller's memory only. An outdated entry is not removed: its slot is overwritten by
the next entry, so order in the list is not order in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from forecaster.hpa.numbers import MAX_INT32, MIN_INT32, ceil_to_int32, truncate_to_int32, wrap_int32

if TYPE_CHECKING:
    from forecaster.hpa.state import Clamp, Stabilization

PolicyType = Literal["Pods", "Percent"]
SelectPolicy = Literal["Max", "Min", "Disabled"]


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """Largest change within one period: `value` pods, or `value` percent of the size at its beginning."""

    type: PolicyType
    value: int
    period: timedelta


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """One direction of `spec.behavior`.

    `stabilization_window` None means the controller's flag; `tolerance` None means the controller's tolerance (a
    ratio).
    """

    policies: tuple[ScalingPolicy, ...]
    stabilization_window: timedelta | None = None
    select_policy: SelectPolicy = "Max"
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class Behavior:
    """Behaviour in both directions; a manifest that states one direction gets the defaults of the other."""

    scale_up: ScalingRules
    scale_down: ScalingRules


PastRecommendations = tuple["PastRecommendation", ...]
ScaleEvents = tuple["ScaleEvent", ...]


class PastRecommendation(NamedTuple):
    """A recommendation before stabilisation, limits and bounds, with its time (aware UTC)."""

    replicas: int
    at: datetime


class ScaleEvent(NamedTuple):
    """A successful write: the absolute change of replicas and when (aware UTC); `outdated` marks the slot as free."""

    change: int
    at: datetime
    outdated: bool = False


def record_recommendation(
    history: PastRecommendations, replicas: int, now: datetime, last_stale_slot: int | None
) -> PastRecommendations:
    """HPA rules §10, §11.1: store a recommendation in the last stale slot if there is one, else at the end."""
    entry = PastRecommendation(replicas, now)
    if last_stale_slot is None:
        return (*history, entry)
    return (*history[:last_stale_slot], entry, *history[last_stale_slot + 1 :])


def change_since(events: ScaleEvents, begin: datetime) -> int:
    """HPA rules §11.2: the replicas moved by events strictly after `begin`; the flag `outdated` is not looked at."""
    return wrap_int32(sum(event.change for event in events if event.at > begin))


def record_scale_event(
    events: ScaleEvents, change: int, now: datetime, policies: tuple[ScalingPolicy, ...]
) -> ScaleEvents:
    """HPA rules §11.4: store a change of this direction, in the last outdated slot if there is one, else at the end.

    `change` is positive. Events strictly older than the longest policy period are flagged outdated first; a flag stays.
    """
    begin = now - max((policy.period for policy in policies), default=timedelta())
    recorded = [event._replace(outdated=True) if event.at < begin else event for event in events]
    free = [slot for slot, event in enumerate(recorded) if event.outdated]
    if free:
        recorded[free[-1]] = ScaleEvent(change, now)
    else:
        recorded.append(ScaleEvent(change, now))
    return tuple(recorded)


def stabilize(
    history: PastRecommendations,
    recommendation: int,
    current: int,
    scale_up_window: timedelta,
    scale_down_window: timedelta,
    now: datetime,
) -> tuple[int, PastRecommendations]:
    """Return the size nearest to `current` between the up window's lowest and the down window's highest (§11.1).

    Returns the stabilised count and the history with `recommendation` stored. An entry exactly as old as a window is
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
    return min(max(current, lowest), highest), record_recommendation(history, recommendation, now, stale)


def stabilization_reason(stabilized: int, recommendation: int, current: int) -> Stabilization:
    """HPA rules §11.1: the reason of `AbleToScale`; a rise that is held back counts as scaling up."""
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
    allowed = allowed_by_policy(current, rules, scale_ups, scale_downs, now, up=True)
    return min(allowed, default=MAX_INT32) if rules.select_policy == "Min" else max(allowed, default=MIN_INT32)


def scale_down_limit(
    current: int, rules: ScalingRules, scale_ups: ScaleEvents, scale_downs: ScaleEvents, now: datetime
) -> int:
    """HPA rules §11.2: the smallest size the policies allow; `Max` takes the most permissive of them."""
    if rules.select_policy == "Disabled":
        return current
    allowed = allowed_by_policy(current, rules, scale_ups, scale_downs, now, up=False)
    return max(allowed, default=MIN_INT32) if rules.select_policy == "Min" else min(allowed, default=MAX_INT32)


def allowed_by_policy(
    current: int, rules: ScalingRules, scale_ups: ScaleEvents, scale_downs: ScaleEvents, now: datetime, *, up: bool
) -> list[int]:
    """The size that each policy alone would allow in one direction, in their order."""
    by = _raised if up else _lowered
    return [by(period_start(current, policy.period, scale_ups, scale_downs, now), policy) for policy in rules.policies]


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

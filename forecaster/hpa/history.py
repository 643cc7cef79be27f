"""What one HPA remembers between passes: recommendations and scale events, in slots that are used again.

Both lists live in the controller's memory only. An outdated entry is not removed: its slot is overwritten by the next
entry, so order in the list is not order in time.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from forecaster.hpa.numbers import wrap_int32
from forecaster.hpa.rules import ScalingPolicy

PastRecommendations = tuple["PastRecommendation", ...]
ScaleEvents = tuple["ScaleEvent", ...]


class PastRecommendation(NamedTuple):
    """A recommendation as it was before stabilisation, limits and bounds, and when it was made (aware UTC)."""

    replicas: int
    at: datetime


class ScaleEvent(NamedTuple):
    """A successful write: the absolute change of replicas and when (aware UTC); `outdated` marks the slot as free."""

    change: int
    at: datetime
    outdated: bool = False


def remember(
    history: PastRecommendations, replicas: int, now: datetime, last_stale_slot: int | None
) -> PastRecommendations:
    """HPA rules §10, §11.1: store a recommendation in the last stale slot if there is one, else at the end."""
    entry = PastRecommendation(replicas, now)
    if last_stale_slot is None:
        return (*history, entry)
    return (*history[:last_stale_slot], entry, *history[last_stale_slot + 1 :])


def change_since(events: ScaleEvents, begin: datetime) -> int:
    """HPA rules §11.2: the replicas moved by events strictly after `begin`; the flag `outdated` is not looked at."""
    change = 0
    for event in events:
        if event.at > begin:
            change += event.change
    return wrap_int32(change)


def record_scale_event(
    events: ScaleEvents, change: int, now: datetime, policies: tuple[ScalingPolicy, ...]
) -> ScaleEvents:
    """HPA rules §11.4: store a change of this direction, in the last outdated slot if there is one, else at the end.

    `change` is positive. Events strictly older than the longest policy period are flagged outdated first; a flag stays.
    """
    begin = now - max((policy.period for policy in policies), default=timedelta())
    kept = [event._replace(outdated=True) if event.at < begin else event for event in events]
    free = [slot for slot, event in enumerate(kept) if event.outdated]
    if free:
        kept[free[-1]] = ScaleEvent(change, now)
    else:
        kept.append(ScaleEvent(change, now))
    return tuple(kept)

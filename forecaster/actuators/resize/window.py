"""Change windows: when sizes of running pods may change. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.actuators.writes import RefusalReason, Unseen, WriteRefusal
from forecaster.domain.amounts import duration_text
from forecaster.horizontal.events import freeze_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from forecaster.domain.event import ScheduledEvent
    from forecaster.domain.workload import WorkloadId


def outside(workload: WorkloadId, pod: str, why: str) -> WriteRefusal:
    """Return the refusal of a pod that keeps its size until its window opens."""
    return WriteRefusal(Unseen(workload, pod), RefusalReason.OUTSIDE_WINDOW, f"{workload}: {why}")


def closed(events: Sequence[ScheduledEvent], now: datetime) -> str:
    """Why sizes of running pods do not change now; empty where they may.

    An event with `freeze` changes nothing. Where any event has `sizes`, they change while one of those is on.
    """
    if freeze := freeze_at(events, now):
        return f"its size stays, {freeze.event} changes nothing until {freeze.until:%Y-%m-%d %H:%M} UTC"
    windows = [event for event in events if event.sizes]
    if not windows or any(event.lasts_until(now) for event in windows):
        return ""
    return f"its size changes during {', or '.join(map(_when, windows))}"


def _when(event: ScheduledEvent) -> str:
    if event.cron is not None and event.duration is not None:
        return f"{event.name} ({event.cron} for {duration_text(event.duration)}, {event.time_zone})"
    return f"{event.name} ({event.start:%Y-%m-%d %H:%M %Z} to {event.end:%Y-%m-%d %H:%M %Z})"

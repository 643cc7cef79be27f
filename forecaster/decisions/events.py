"""Known events as floors: raised a lead time before one begins, and held until it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from forecaster.domain.event import ScheduledEvent


class Floor(NamedTuple):
    """The least count for now, and which event says so."""

    replicas: int
    event: str
    until: datetime


class Freeze(NamedTuple):
    """Nothing changes until then."""

    event: str
    until: datetime


def floor_at(events: Iterable[ScheduledEvent], now: datetime, lead_time: timedelta) -> Floor | None:
    """The highest floor of the events that are on or begin within the lead time."""
    floors = [
        Floor(event.replicas, event.name, until)
        for event in events
        if event.replicas is not None and (until := event.lasts_until(now, lead_time))
    ]
    return max(floors, default=None)


def freeze_at(events: Iterable[ScheduledEvent], now: datetime) -> Freeze | None:
    """The maintenance window that is on; of several, the one that ends last."""
    on = [Freeze(event.name, until) for event in events if event.freeze and (until := event.lasts_until(now))]
    return max(on, key=lambda one: one.until, default=None)

"""Known events of policies at an instant: floors that begin a lead time ahead, and maintenance windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forecaster.domain.event import ScheduledEvent
    from forecaster.horizontal.numbers import Counts, Flags, Floats


class Floor(NamedTuple):
    """The least count for now, and which event says so."""

    replicas: int
    event: str
    until: datetime


class Freeze(NamedTuple):
    """A maintenance window in which nothing changes."""

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


class EventColumns(NamedTuple):
    """Floors and freezes [row] at an instant."""

    floors: Counts
    frozen: Flags
    floor_words: list[str]
    """Which event has the floor, and until when; empty where none is on."""
    freeze_words: list[str]
    """Which maintenance window is on, and until when; empty where none is."""

    @classmethod
    def none(cls, rows: int) -> EventColumns:
        """Return rows without events."""
        return cls(np.zeros(rows, np.int64), np.zeros(rows, np.bool_), [""] * rows, [""] * rows)


def calendar_of(events: Sequence[tuple[ScheduledEvent, ...]], lead_times: Floats, now: float) -> EventColumns:
    """The events of each row's policy at `now`, with the rows' lead times in seconds; each pair is resolved once."""
    calendar = EventColumns.none(len(events))
    at, found = datetime.fromtimestamp(now, UTC), dict[tuple[int, float], tuple[int, bool, str, str]]()
    for row in [row for row, own in enumerate(events) if own]:
        own, lead = events[row], float(lead_times[row])
        key = (id(own), lead)
        if key not in found:
            floor, freeze = floor_at(own, at, timedelta(seconds=lead)), freeze_at(own, at)
            found[key] = (
                floor.replicas if floor else 0,
                freeze is not None,
                _floor_words(floor),
                _freeze_words(freeze),
            )
        calendar.floors[row], calendar.frozen[row], calendar.floor_words[row], calendar.freeze_words[row] = found[key]
    return calendar


def _floor_words(floor: Floor | None) -> str:
    return f"{floor.event} until {floor.until:%H:%M} UTC" if floor else ""


def _freeze_words(freeze: Freeze | None) -> str:
    return f"{freeze.event} until {freeze.until:%Y-%m-%d %H:%M} UTC" if freeze else ""

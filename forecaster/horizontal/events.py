"""Known events of policies at an instant: floors and maxima that heed the lead time, and maintenance windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from forecaster.domain.event import ScheduledEvent
from forecaster.horizontal.columns import Counts, Flags, Floats
from forecaster.hpa.numbers import MAX_INT32


class InForce(NamedTuple):
    """The replicas that an event states (none in a maintenance window), which one it is, and until when."""

    replicas: int
    event: str
    until: datetime


def floor_at(events: Iterable[ScheduledEvent], now: datetime, lead_time: timedelta) -> InForce | None:
    """The highest floor of the events that are on or begin within the lead time."""
    floors = [
        InForce(event.replicas, event.name, until)
        for event in events
        if event.replicas is not None and (until := event.lasts_until(now, lead_time))
    ]
    return max(floors, default=None)


def maxima_at(events: Sequence[ScheduledEvent], now: datetime, lead_time: timedelta) -> dict[bool, InForce]:
    """Return the maximum in force, by whether it also limits measured demand.

    It is the higher of those now and a lead time ahead, and none where there is none then: pods must be there in time.
    """
    on, later = (_lowest_maxima(events, at) for at in (now, now + lead_time))
    return {over: max(maximum, later[over]) for over, maximum in on.items() if over in later}


def _lowest_maxima(events: Iterable[ScheduledEvent], at: datetime) -> dict[bool, InForce]:
    lowest: dict[bool, InForce] = {}
    for event in events:
        if event.max_replicas and (until := event.lasts_until(at)):
            maximum = InForce(event.max_replicas, event.name, until)
            lowest[event.over_measured] = min(maximum, lowest.get(event.over_measured, maximum))
    return lowest


def freeze_at(events: Iterable[ScheduledEvent], now: datetime) -> InForce | None:
    """Return the maintenance window in force; the one that ends last if there are several."""
    on = [InForce(0, event.name, until) for event in events if event.freeze and (until := event.lasts_until(now))]
    return max(on, key=lambda window: window.until, default=None)


class EventColumns(NamedTuple):
    """Floors, maxima and freezes [row] at an instant; words say which event is on and until when, or are empty."""

    floors: Counts
    most: Counts
    """Replicas above which a forecast raises nothing."""
    bounds: Counts
    """Replicas above which measured demand raises nothing, either."""
    frozen: Flags
    floor_words: list[str]
    most_words: list[str]
    freeze_words: list[str]

    @classmethod
    def none(cls, rows: int) -> EventColumns:
        """Return rows without events."""
        unbound = np.full(rows, MAX_INT32, np.int64)
        nothing, frozen = [""] * rows, np.zeros(rows, np.bool_)
        return cls(np.zeros(rows, np.int64), unbound, unbound.copy(), frozen, nothing, list(nothing), list(nothing))


class RowEvents(NamedTuple):
    """Effect of one policy's events at an instant, as numbers and words."""

    floor: int
    most: int
    bound: int
    frozen: bool
    floor_words: str
    most_words: str
    freeze_words: str


NO_EVENTS = RowEvents(0, MAX_INT32, MAX_INT32, frozen=False, floor_words="", most_words="", freeze_words="")


def calendar_of(events: Sequence[tuple[ScheduledEvent, ...]], lead_times: Floats, now: float) -> EventColumns:
    """The events of each row's policy at `now`, with the rows' lead times in seconds; each pair is resolved once."""
    calendar = EventColumns.none(len(events))
    columns: Sequence[Any] = calendar
    at, by_policy = datetime.fromtimestamp(now, UTC), dict[tuple[int, float], RowEvents]()
    for row in [row for row, own in enumerate(events) if own]:
        own, lead = events[row], float(lead_times[row])
        key = (id(own), lead)
        if key not in by_policy:
            by_policy[key] = events_at(own, at, timedelta(seconds=lead))
        for column, value in zip(columns, by_policy[key], strict=True):
            column[row] = value
    return calendar


def events_at(events: Sequence[ScheduledEvent], now: datetime, lead_time: timedelta) -> RowEvents:
    """Return the effect of one policy's events at an instant."""
    floor, freeze, maxima = floor_at(events, now, lead_time), freeze_at(events, now), maxima_at(events, now, lead_time)
    allowed = ", ".join(
        f"{limit.event} allows {limit.replicas} until {limit.until:%H:%M} UTC" for limit in sorted(maxima.values())
    )
    return RowEvents(
        floor=floor.replicas if floor else 0,
        most=maxima[False].replicas if False in maxima else MAX_INT32,
        bound=maxima[True].replicas if True in maxima else MAX_INT32,
        frozen=freeze is not None,
        floor_words=f"{floor.event} until {floor.until:%H:%M} UTC" if floor else "",
        most_words=allowed,
        freeze_words=f"{freeze.event} until {freeze.until:%Y-%m-%d %H:%M} UTC" if freeze else "",
    )

"""Known events of policies at an instant: floors and maxima that heed the lead time, and maintenance windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from forecaster.domain.event import ScheduledEvent
from forecaster.horizontal.columns import Counts, Flags
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


class EventColumns(NamedTuple):
    """Effects of events on rows at an instant, [row] each."""

    floors: Counts
    most: Counts
    """Replicas above which a forecast raises nothing."""
    bounds: Counts
    """Replicas above which measured demand raises nothing, either."""
    frozen: Flags
    each: Sequence[RowEvents]
    """The different effects."""
    place: Counts
    """Position of each row's effect among them."""

    @classmethod
    def of(cls, each: Sequence[RowEvents], place: Counts) -> EventColumns:
        """Return the columns of rows that have these effects."""
        numbers = zip(*(effect[:4] for effect in each), strict=True)
        floors, most, bounds, frozen = (np.array(column)[place] for column in numbers)
        return cls(floors, most, bounds, frozen, each, place)

    def take(self, rows: Counts) -> EventColumns:
        """Return the effects on these rows."""
        numbers = self.floors[rows], self.most[rows], self.bounds[rows], self.frozen[rows]
        return EventColumns(*numbers, self.each, self.place[rows])

    def row(self, row: int) -> RowEvents:
        """Return the effect on one row; its words say which event is on and until when, or are empty."""
        return self.each[int(self.place[row])]


class EventCalendar:
    """The known events of rows, with their lead times; each pair of these is resolved once an instant."""

    def __init__(self, events: Sequence[tuple[ScheduledEvent, ...]], lead_times: Sequence[timedelta]) -> None:
        keys = [(id(own), lead) for own, lead in zip(events, lead_times, strict=True)]
        self._different = {key: own for key, own in zip(keys, events, strict=True) if own}
        places = {key: place for place, key in enumerate(self._different)}
        self._place = np.array([places.get(key, len(places)) for key in keys], np.int64)
        self._none = None if self._different else EventColumns.of([NO_EVENTS], self._place)

    def at(self, now: datetime) -> EventColumns:
        """Return the effects of the events at an instant."""
        if self._none is not None:
            return self._none
        each = [events_at(events, now, lead) for (_, lead), events in self._different.items()]
        return EventColumns.of([*each, NO_EVENTS], self._place)


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

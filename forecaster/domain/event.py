"""Known events: a sale, a match, a maintenance window; once, or at the times of a cron expression."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Annotated, NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from forecaster.domain.clock import TimeZone, clock_changes, clock_of
from forecaster.domain.settings import Duration
from forecaster.domain.window import MINUTE, MINUTES_A_DAY

SUNDAY = 7
YEARS = range(2000, 2200)
"""Years of single events: at the ends of the calendar, arithmetic with a lead time or a time zone would fail."""
MAX_REPLICAS = 100_000
"""Largest count that a policy may state, above any workload of the largest known clusters."""
MAX_EVENTS = 50
"""Events of one workload: each is looked at in every cycle."""
NAMESPACE_EVENTS = 1_000
"""Events that the owners of one namespace may have in force."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTHS = {name: i for i, name in enumerate(_MONTHS, 1)}
WEEKDAYS = {name: i for i, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}


class _Field(NamedTuple):
    name: str
    lowest: int
    highest: int
    names: dict[str, int]


FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, MONTHS),
    _Field("day of week", 0, SUNDAY, WEEKDAYS),
)


class _LocalDay(NamedTuple):
    """A day of a time zone: its beginning in UTC, minutes that are over, and the change of its clock."""

    begins: datetime
    past: int
    changes_at: int
    """Minute that the clock shows from which on it has changed; beyond the day where it does not change."""
    by: int
    """Minutes by which it is put forward; negative where it is put back."""


@lru_cache(256)
def _local_midnight(at: datetime, zone: str) -> datetime:
    """The local midnight before an instant: the same for all events of a policy."""
    return at.astimezone(clock_of(zone)).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


@lru_cache(256)
def _local_day(at: datetime, zone: str, back: int) -> _LocalDay:
    """Return the day of an instant, or `back` days before."""
    midnight = _local_midnight(at, zone) - timedelta(days=back)
    begins, next_day = midnight.astimezone(UTC), midnight + timedelta(days=1)
    by = ((next_day.utcoffset() or timedelta(0)) - (midnight.utcoffset() or timedelta(0))) // MINUTE
    changes = clock_changes(zone, begins, next_day.astimezone(UTC)) if by else ()
    changed = max((change.at - begins) // MINUTE for change in changes) if changes else 0
    return _LocalDay(begins, (at - begins) // MINUTE, max(changed, changed + by) if by else MINUTES_A_DAY, by)


@dataclass(frozen=True, slots=True)
class Cron:
    """Minutes, hours, days of the month, months and days of the week (0 is Sunday) at which something begins.

    As in cron(5), when both kinds of days are restricted, either will do.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    """Hours, like minutes, stand in ascending order."""
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def latest(self, before: datetime, within: timedelta, zone: str) -> datetime | None:
        """The latest beginning in (before - within, before], as an instant in UTC; None if there is none.

        A local time that daylight saving skips begins when the clock has jumped; one that comes twice, the first time.
        """
        today = _local_midnight(before, zone).date()
        for back in range(within.days + 2):
            if self._meant(today - timedelta(days=back)):
                begin = self._latest_of(_local_day(before, zone, back))
                if begin is not None:
                    return begin if begin > before - within else None
        return None

    def _latest_of(self, day: _LocalDay) -> datetime | None:
        """Return the latest beginning in the past part of a local day; None if there is none."""
        first = self._latest_minute(min(day.past, day.changes_at - 1))
        then = self._latest_minute(day.past + day.by) if day.past + day.by >= day.changes_at else None
        minutes = [] if first is None else [first]
        minutes += [] if then is None or then < day.changes_at else [then - day.by]
        return day.begins + timedelta(minutes=max(minutes)) if minutes else None

    def _latest_minute(self, most: int) -> int | None:
        """Return the latest minute of a day, up to this one, at which something begins; None if there is none."""
        hour, minute = divmod(most, 60)
        place = bisect_right(self.hours, hour) - 1
        if place >= 0 and self.hours[place] == hour and self.minutes[0] > minute:
            place -= 1
        if place < 0:
            return None
        among = bisect_right(self.minutes, minute) if self.hours[place] == hour else 0
        return 60 * self.hours[place] + self.minutes[among - 1]

    def _meant(self, day: date) -> bool:
        by_date, by_name = day.day in self.days, day.isoweekday() % SUNDAY in self.weekdays
        chosen = by_date or by_name if self.either_day else by_date and by_name
        return chosen and day.month in self.months


@lru_cache(4096)
def parse_cron(text: str) -> Cron:
    """Parse five fields of numbers, names, `*`, ranges `a-b`, lists `a,b` and steps `/n`.

    Raises:
        ValueError: naming the field and what it may hold.
    """
    parts = text.split()
    if len(parts) != len(FIELDS):
        raise ValueError(f"{text!r} has {len(parts)} fields; a cron expression has five, e.g. `0 8 * * mon-fri`")
    minutes, hours, days, months, weekdays = (
        frozenset(value for span in part.split(",") for value in _range(span, field))
        for part, field in zip(parts, FIELDS, strict=True)
    )
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    at = tuple(sorted(minutes)), tuple(sorted(hours))
    return Cron(*at, days, months, frozenset(day % SUNDAY for day in weekdays), either)


def _range(text: str, field: _Field) -> range:
    span, _, step = text.partition("/")
    first, dash, last = span.partition("-")
    if span == "*":
        low, high = field.lowest, min(field.highest, 6) if field.names is WEEKDAYS else field.highest
    else:
        low = _number(first, field)
        high = _number(last, field) if dash else (field.highest if step else low)
    stride = _positive(step, field) if "/" in text else 1
    if low > high:
        raise ValueError(f"{field.name} {text!r} runs backwards; write {high}-{low} or two ranges")
    return range(low, high + 1, stride)


def _number(text: str, field: _Field) -> int:
    value = field.names.get(text.lower(), int(text) if text.isascii() and text.isdigit() else -1)
    if not field.lowest <= value <= field.highest:
        raise ValueError(f"{field.name} {text!r} is not in {field.lowest}-{field.highest}")
    return value


def _positive(text: str, field: _Field) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(f"step {text!r} of {field.name} is not a whole number above 0")
    return int(text)


class ScheduledEvent(BaseModel):
    """While it lasts, `replicas` is the floor and `max_replicas` the most; with `freeze` the count stays as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=253, description="What it is called in explanations.")
    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = Field(
        None, description="Floor for the whole duration."
    )
    max_replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = Field(
        None, description="The most, until a lead time before its end; never less than measured demand needs."
    )
    over_measured: bool = Field(
        default=False, description="Hold `max_replicas` against measured demand, too: it may be short then."
    )
    sizes: bool = Field(
        default=False,
        description="Sizes of running pods change during this event, and others that say so, and at no other time.",
    )
    freeze: bool = Field(default=False, description="Change nothing while it lasts: a maintenance window.")
    start: AwareDatetime | None = Field(None, description="Beginning of a single event, with its offset from UTC.")
    end: AwareDatetime | None = Field(None, description="Its end.")
    cron: str | None = Field(
        None, max_length=253, description="Beginnings of a repeated event, five fields, in `time_zone`."
    )
    duration: Annotated[Duration, Field(gt=timedelta(0), le=timedelta(days=31))] | None = Field(
        None, description="How long each of them lasts, up to 31d."
    )
    time_zone: TimeZone = Field("UTC", description="Name of the IANA data base, e.g. Europe/Berlin.")

    @field_validator("cron")
    @classmethod
    def _readable(cls, value: str | None) -> str | None:
        if value is not None:
            parse_cron(value)
        return value

    @model_validator(mode="after")
    def _complete(self) -> ScheduledEvent:
        if (self.start is None) != (self.end is None) or (self.cron is None) != (self.duration is None):
            raise ValueError("start goes with end, and cron with duration")
        if (self.start is None) == (self.cron is None):
            raise ValueError("an event has either start and end, or cron and duration")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError("end must be after start")
        if any(at is not None and at.year not in YEARS for at in (self.start, self.end)):
            raise ValueError(f"start and end lie in the years {YEARS[0]} to {YEARS[-1]}")
        if (self.replicas is None and self.max_replicas is None and not self.sizes) == (not self.freeze):
            raise ValueError("an event has any of replicas, max_replicas and sizes: true, or else freeze: true")
        if self.replicas is not None and self.max_replicas is not None and self.replicas > self.max_replicas:
            raise ValueError(f"replicas {self.replicas} is above max_replicas {self.max_replicas}; state one no higher")
        if self.over_measured and self.max_replicas is None:
            raise ValueError("over_measured goes with max_replicas")
        return self

    def effect(self) -> str:
        """Return its effect on the count, in words."""
        if self.freeze:
            return "nothing changes"
        lowest, most = (f"at least {self.replicas}", self.replicas), (f"at most {self.max_replicas}", self.max_replicas)
        return ", ".join(text for text, there in (lowest, most, ("sizes change", self.sizes)) if there)

    def lasts_until(self, now: datetime, lead_time: timedelta = timedelta(0)) -> datetime | None:
        """Return the end of the event that is on at `now` or begins within `ahead`; None when there is none."""
        if self.start is not None and self.end is not None:
            return self.end.astimezone(UTC) if self.start - lead_time <= now < self.end else None
        if self.cron is None or self.duration is None:
            raise TypeError(f"event {self.name} has no time")
        began = parse_cron(self.cron).latest(now + lead_time, self.duration + lead_time, self.time_zone)
        if began is None or now >= began + self.duration:
            return None
        return began + self.duration

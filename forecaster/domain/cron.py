"""Times of a cron expression: five fields, minute hour day-of-month month day-of-week, in a named time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
SUNDAY = 7
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTHS = {name: i for i, name in enumerate(_MONTHS, 1)}
DAYS = {name: i for i, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}


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
    _Field("day of week", 0, SUNDAY, DAYS),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """Minutes, hours, days of the month, months and days of the week (0 is Sunday) at which something begins.

    As in cron(5), when both kinds of days are restricted, either will do.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def latest(self, before: datetime, within: timedelta, zone: ZoneInfo) -> datetime | None:
        """The newest beginning in (before - within, before], as an instant in UTC; None if there is none.

        A local time that daylight saving skips begins when the clock has jumped; one that comes twice, the first time.
        """
        local = before.astimezone(zone)
        for back in range(within.days + 2):
            day = (local - timedelta(days=back)).replace(tzinfo=None)
            if self._meant(day):
                found = [at for at in self._instants(day, zone) if before - within < at <= before]
                if found:
                    return max(found)
        return None

    def _meant(self, day: datetime) -> bool:
        by_date, by_name = day.day in self.days, day.isoweekday() % SUNDAY in self.weekdays
        chosen = by_date or by_name if self.either_day else by_date and by_name
        return chosen and day.month in self.months

    def _instants(self, day: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        for hour in self.hours:
            for minute in self.minutes:
                at = day.replace(hour=hour, minute=minute, second=0, microsecond=0, tzinfo=zone)
                yield at.astimezone(UTC)


def parse_cron(text: str) -> Cron:
    """Parse five fields of numbers, names, `*`, ranges `a-b`, lists `a,b` and steps `/n`.

    Raises:
        ValueError: naming the field and what it may hold.
    """
    parts = text.split()
    if len(parts) != len(FIELDS):
        raise ValueError(f"{text!r} has {len(parts)} fields; a cron expression has five, e.g. `0 8 * * mon-fri`")
    minutes, hours, days, months, weekdays = (_values(part, field) for part, field in zip(parts, FIELDS, strict=True))
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    return Cron(minutes, hours, days, months, frozenset(day % SUNDAY for day in weekdays), either)


def _values(text: str, field: _Field) -> frozenset[int]:
    return frozenset(value for part in text.split(",") for value in _range(part, field))


def _range(text: str, field: _Field) -> range:
    span, _, step = text.partition("/")
    first, dash, last = span.partition("-")
    if span == "*":
        low, high = field.lowest, min(field.highest, 6) if field.names is DAYS else field.highest
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

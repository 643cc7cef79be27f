"""Calendar: time of the week where people live, their holidays, and events that are known beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from .errors import QuestionError

if TYPE_CHECKING:
    from .panel import Panel
    from .residuals import Bins

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# 1970-01-01 was a Thursday; Monday is 0.
EPOCH_WEEKDAY = 3
# Zones change their offset at whole or half hours of UTC.
OFFSET_STEP = 1800
SATURDAY, HOUR, DAY_SECONDS = 5, 3600, 86400


class Clock(NamedTuple):
    """Local time of bins by the second since the local epoch: all [bin]."""

    weekday: Bins
    hour: Bins
    day: Bins

    @property
    def hour_of_week(self) -> Bins:
        """0 is the first hour of Monday, 167 the last of Sunday."""
        return np.asarray(24 * self.weekday + self.hour)


@dataclass(frozen=True)
class Event:
    """A span that is known beforehand, such as a sale or a broadcast; events of one name are alike.

    Raises:
        QuestionError: the span is empty or naive.
    """

    name: str
    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Refuse a span without a time zone, and one that does not end after its start."""
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise QuestionError(f"event {self.name!r} from {self.start} has no time zone; use aware datetimes")
        if self.end <= self.start:
            raise QuestionError(f"event {self.name!r} ends at {self.end}, not after its start {self.start}")


@dataclass(frozen=True)
class Calendar:
    """Time zone and holidays of the people behind the load.

    Attributes:
        zone: IANA name of the time zone; days there may have 23 or 25 hours.
        countries: codes of countries with public holidays that are days off, with a region if need be: "DE", "DE-BY".
            Needs the extra `calendar` (library holidays).

    >>> from models.panel import Panel
    >>> hours = Panel(np.zeros((1, 48)), datetime(2026, 3, 28, 12, tzinfo=UTC), timedelta(hours=1), ("a",))
    >>> Calendar("Europe/Berlin").of(hours).hour[11:16].tolist()  # 02:00 does not exist on 2026-03-29
    [0, 1, 3, 4, 5]
    """

    zone: str = "UTC"
    countries: tuple[str, ...] = ()

    def of(self, panel: Panel, *, beyond: int = 0) -> Clock:
        """Return the local time at the start of each bin of a panel, and of `beyond` bins after its end."""
        first, step = _seconds(panel.start), panel.step // timedelta(seconds=1)
        local = self._local(first + step * np.arange(panel.length + beyond))
        day = local // DAY_SECONDS
        return Clock((day + EPOCH_WEEKDAY) % 7, local % DAY_SECONDS // HOUR, day)

    def holidays(self, begin: datetime, until: datetime) -> list[Event]:
        """The public holidays that overlap a span of aware time, each from one local midnight to the next."""
        zone = _zone(self.zone)
        first, last = begin.astimezone(zone).date(), until.astimezone(zone).date()
        names: dict[date, str] = {}
        for country in self.countries:
            names |= public_holidays(country, {first.year, last.year})
        return [
            Event(name, _midnight(day, zone), _midnight(day + timedelta(days=1), zone))
            for day, name in sorted(names.items())
            if first <= day <= last
        ]

    def days_off(self, clock: Clock) -> npt.NDArray[np.bool_]:
        """Return [bin] whether a bin lies on a weekend or a holiday."""
        distinct, place = np.unique(clock.day, return_inverse=True)
        dates = [EPOCH.date() + timedelta(days=day) for day in distinct.tolist()]
        years = {day.year for day in dates}
        off = frozenset().union(*(public_holidays(country, years) for country in self.countries))
        return np.asarray((clock.weekday >= SATURDAY) | np.array([day in off for day in dates], bool)[place])

    def _local(self, seconds: Bins) -> Bins:
        """Seconds since the epoch as read from a local clock."""
        zone = _zone(self.zone)
        slots, place = np.unique(seconds // OFFSET_STEP, return_inverse=True)
        offsets = [_offset(zone, int(slot) * OFFSET_STEP) for slot in slots]
        return np.asarray(seconds + np.asarray(offsets, dtype=np.intp)[place])


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def public_holidays(country: str, years: Iterable[int]) -> dict[date, str]:
    """Names of the public holidays of a country or one of its regions.

    Raises:
        QuestionError: the library is not installed, or does not know the country.
    """
    try:
        import holidays  # noqa: PLC0415  an optional extra
    except ImportError as error:
        raise QuestionError(f"holidays of {country} need the extra: pip install kube-forecaster[calendar]") from error
    code, _, region = country.partition("-")
    try:
        return dict(holidays.country_holidays(code, subdiv=region or None, years=sorted(years)))
    except NotImplementedError as error:
        raise QuestionError(f"no holidays are known for {country!r}; write DE, or DE-BY for a region") from error


def within(panel: Panel, spans: Iterable[Event], *, beyond: int = 0) -> npt.NDArray[np.bool_]:
    """Return [bin] whether a bin overlaps one of the spans, for a panel and `beyond` bins after its end."""
    touched = np.zeros(panel.length + beyond, dtype=bool)
    for span in spans:
        first, last = (span.start - panel.start) // panel.step, -((panel.start - span.end) // panel.step)
        touched[max(0, first) : max(0, last)] = True
    return touched


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise QuestionError(f"there is no time zone {name!r}; use an IANA name such as Europe/Berlin") from error


def _offset(zone: ZoneInfo, seconds: int) -> int:
    offset = (EPOCH + timedelta(seconds=seconds)).astimezone(zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _seconds(instant: datetime) -> int:
    return (instant - EPOCH) // timedelta(seconds=1)

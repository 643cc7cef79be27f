"""Time zones: names of the IANA data base, and the instants at which their clocks change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, NamedTuple, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from forecaster.domain.window import DAY, SECOND

Key = TypeVar("Key")
ZONE_NAME_MAX = 64
"""Longest name of a time zone that is read; the longest of the data base has 32 characters."""


@lru_cache(maxsize=1024)
def clock_of(zone: str) -> ZoneInfo:
    """Return the clock of a time zone, of which ZoneInfo itself keeps eight and reads others from disk each time."""
    return ZoneInfo(zone)


def known_zone(name: str) -> str:
    """Return the name of a time zone.

    Raises:
        ValueError: there is no such time zone.
    """
    try:
        clock_of(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("no such time zone; use a name like Europe/Berlin") from None
    return name


TimeZone = Annotated[str, Field(max_length=ZONE_NAME_MAX), AfterValidator(known_zone)]


def zones_beside_utc(zones: Iterable[tuple[Key, str]]) -> dict[Key, str]:
    """Return the pairs of a workload and its time zone without those in UTC."""
    return {key: zone for key, zone in zones if zone != "UTC"}


class ClockChange(NamedTuple):
    """One change of a clock: forward by a positive time in spring, back in autumn."""

    at: datetime
    by: timedelta


def time_by_clock(at: datetime, back: timedelta, zone: str) -> datetime:
    """Return the instant at which a zone's clock showed the time of `at`, less `back`.

    A local time that came twice is the later one that is past; one that was skipped is that of an hour earlier.
    """
    clock = clock_of(zone)
    shown = (at.astimezone(clock).replace(tzinfo=None) - back).replace(tzinfo=clock)
    later = shown.replace(fold=1).astimezone(UTC)
    return later if later <= at else shown.replace(fold=0).astimezone(UTC)


@lru_cache(maxsize=4096)
def clock_changes(zone: str, begin: datetime, until: datetime) -> tuple[ClockChange, ...]:
    """Return the changes of a zone's clock after `begin` and up to `until`, both in UTC, the latest first."""
    clock, changes, after = clock_of(zone), [], until
    while after > begin:
        before = max(after - DAY, begin)
        if by := _offset(after, clock) - _offset(before, clock):
            changes.append(ClockChange(_first_after(before, after, clock), by))
        after = before
    return tuple(changes)


def _offset(at: datetime, clock: ZoneInfo) -> timedelta:
    return at.astimezone(clock).utcoffset() or timedelta(0)


def _first_after(before: datetime, after: datetime, clock: ZoneInfo) -> datetime:
    """Return the first full second with the offset of `after`, by halving."""
    begin, changed = before.replace(microsecond=0), _offset(after, clock)
    seconds = range((after - begin) // SECOND)
    return begin + SECOND * bisect_left(seconds, 1, key=lambda past: _offset(begin + past * SECOND, clock) == changed)

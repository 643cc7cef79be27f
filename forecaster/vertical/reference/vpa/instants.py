"""Instants as the VPA counts them: nanoseconds since the first second of year 1, UTC, which is its unset instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNSET = 0
SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_LONGEST = 2**63 - 1
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_EPOCH = int((datetime(1970, 1, 1, tzinfo=UTC) - _FIRST).total_seconds()) * SECOND


def of_unix(seconds: float) -> int:
    """Of seconds since 1970, exact for whole ones."""
    return _EPOCH + round(seconds * SECOND)


def of_datetime(moment: datetime) -> int:
    """Of an aware datetime."""
    return (moment - _FIRST) // timedelta(microseconds=1) * 1000


def to_datetime(instant: int) -> datetime:
    """The whole second it lies in, as checkpoints keep it."""
    return _FIRST + timedelta(seconds=instant // SECOND)


def between(earlier: int, later: int) -> int:
    """`later - earlier`, held at the 292 years that a duration can express."""
    return min(max(later - earlier, -_LONGEST), _LONGEST)


def to_nearest(instant: int, step: int) -> int:
    """The nearest multiple of `step` since the unset instant; the later one half-way."""
    return (instant + step // 2 + step % 2) // step * step

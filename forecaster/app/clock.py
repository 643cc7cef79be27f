"""Evaluation times. The only place that reads the clock; aligned, so that every replica computes the same numbers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from forecaster.domain.window import PLAUSIBLE_YEARS
from forecaster.errors import ConfigError, Fault

_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)


def current() -> datetime:
    """The clock, aware UTC."""
    return datetime.now(UTC)


def instant(text: str | None, option: str = "--at") -> datetime:
    """An instant as a user writes it after an option; the present one when nothing is written.

    Raises:
        ConfigError: the text is no instant with a time zone.
    """
    if text is None:
        return current()
    if _TIME_OF_DAY.fullmatch(text):
        return _latest(text)
    try:
        value = datetime.fromisoformat(text)
        if value.tzinfo is not None and value.year in PLAUSIBLE_YEARS:
            return value.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ConfigError(
        "command line", [Fault(option, text, "an RFC 3339 instant like 2026-03-01T12:00:00Z, or 09:02 (UTC)")]
    )


def _latest(time_of_day: str) -> datetime:
    """The last instant at which it was so late, UTC as everything that is printed."""
    now = current()
    hour, minute = map(int, time_of_day.split(":"))
    today = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return today if today <= now else today - timedelta(days=1)

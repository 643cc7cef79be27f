"""A duration in text. `Duration` needs pydantic, for which the serving process has no room; this does not."""

from __future__ import annotations

from datetime import timedelta


def spoken_duration(value: timedelta) -> str:
    """The shortest exact text of a duration that is not negative: `parse_duration` reads it back."""
    minutes, seconds = divmod(value, timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    whole = "".join(f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count)
    return whole + _spoken_seconds(seconds) or "0s"


def _spoken_seconds(value: timedelta) -> str:
    """Up to six decimals; nothing for zero."""
    return f"{value / timedelta(seconds=1):.6f}".rstrip("0").rstrip(".") + "s" if value else ""

"""Evaluation times. The only place that reads the clock; aligned, so that every replica computes the same numbers."""

from __future__ import annotations

from datetime import UTC, datetime

from forecaster.errors import ConfigError, Fault


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
    try:
        value = datetime.fromisoformat(text)
        if value.tzinfo is not None:
            return value.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ConfigError("command line", [Fault(option, text, "an RFC 3339 instant like 2026-03-01T12:00:00Z")])

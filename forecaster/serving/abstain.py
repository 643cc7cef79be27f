"""What a metric says when nothing is known: neutral, hold, last or nothing at all. Never 0, never an invented number.

An HPA never looks at the age of a value, so a value that is served is believed. Which one does no harm depends on who
reads it: a value keeps a count only as a multiple of the reader's own target (docs/external-metrics.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import timedelta

LAST: Final = "last"
"""The last value that was known, while its newest sample is young enough."""
NEUTRAL: Final = "neutral"
"""The value that keeps the count there is: the reader's target times the present count."""
HOLD: Final = "hold"
"""The value that asks for the count there was when knowledge ended."""

ORDER: Final = {"auto": (LAST, NEUTRAL), LAST: (LAST,), NEUTRAL: (NEUTRAL,), HOLD: (HOLD,), "fail": ()}
"""What each policy tries in turn. What none of them can answer is an error."""


class Reader(NamedTuple):
    """Who reads the metric: its target, and whether that is for one replica or for all of them together."""

    target: float
    per_replica: bool = True


class Situation(NamedTuple):
    """All that is left to answer from."""

    last: float
    age: timedelta
    """Of the newest sample behind `last`; where there never was one, longer than any policy allows."""
    last_for: timedelta
    reader: Reader | None
    replicas_now: int | None
    """None when even the count is out of date."""
    replicas_held: int


class Instead(NamedTuple):
    """A value in place of knowledge, under the word for it."""

    word: str
    value: float


def instead(policy: str, situation: Situation) -> Instead | None:
    """The first thing in the order of the policy that can be said; None when it has to be an error."""
    for word in ORDER[policy]:
        value = _VALUES[word](situation)
        if value is not None:
            return Instead(word, value)
    return None


def _last(situation: Situation) -> float | None:
    return situation.last if situation.age <= situation.last_for else None


def _neutral(situation: Situation) -> float | None:
    """A count that is out of date may be below the one that others have reached since: repeating it would lower it."""
    return _keeping(situation.replicas_now, situation.reader)


def _hold(situation: Situation) -> float | None:
    return _keeping(situation.replicas_held, situation.reader)


def _keeping(replicas: int | None, reader: Reader | None) -> float | None:
    """HPA rules §8: a ratio of 1 to the target is inside every tolerance. At 0 replicas only 0 would keep it."""
    if not replicas or reader is None:
        return None
    return reader.target * replicas if reader.per_replica else reader.target


_VALUES = {LAST: _last, NEUTRAL: _neutral, HOLD: _hold}

"""When a question that failed is asked again: a slow server is slower with the same question each minute."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(minutes=30)
"""Pause after the first failure, and the longest; each is twice the one before."""


class Failure(NamedTuple):
    """The last failure of a question: what went wrong, and from when on it may be asked again."""

    why: str
    pause: timedelta
    again_at: datetime


@dataclass(slots=True)
class BackOff:
    """The questions of a source that failed when they were asked last, by name."""

    longest: timedelta = LONGEST_PAUSE
    failures: dict[str, Failure] = field(default_factory=dict)

    def waits(self, name: str, at: datetime) -> bool:
        """Whether a question is not to be asked at this time; a clock that went back ends the pause."""
        failure = self.failures.get(name)
        return failure is not None and failure.again_at - failure.pause <= at < failure.again_at

    def failed(self, name: str, why: str, at: datetime) -> None:
        """A question that was asked has failed."""
        before = self.failures.get(name)
        pause = min(before.pause * 2, self.longest) if before else FIRST_PAUSE
        self.failures[name] = Failure(why, pause, at + pause)

    def answered(self, name: str) -> None:
        """A question that was asked has its answer."""
        self.failures.pop(name, None)

    def waiting(self, name: str, at: datetime) -> str:
        """Why a question is not asked at this time, and when it will be; empty where it may be asked."""
        if not self.waits(name, at):
            return ""
        failure = self.failures[name]
        return f"{failure.why}; asked again at {failure.again_at:%H:%M} UTC"

    def why(self, name: str) -> str:
        """What went wrong last; empty where nothing did."""
        failure = self.failures.get(name)
        return failure.why if failure else ""

"""How long pods take until they serve: one duration, or several that are equally likely."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
START_UP = timedelta(minutes=2)
_WORD = 2**64 - 1


@dataclass(frozen=True, slots=True)
class StartUp:
    """Durations of equal weight. Which of them applies is decided by the instant alone.

    So every policy that is compared meets the same slow and fast moments, and a replay repeats to the digit.
    """

    durations: tuple[timedelta, ...] = (START_UP,)
    seed: int = 0

    @property
    def longest(self) -> timedelta:
        """The slowest of them."""
        return max(self.durations)

    def at(self, now: datetime) -> timedelta:
        """How long the pods take that are asked for at `now`."""
        if len(self.durations) == 1:
            return self.durations[0]
        return self.durations[mixed((now - EPOCH) // SECOND + self.seed) % len(self.durations)]


USUAL = StartUp()


def start_up_of(durations: Sequence[timedelta], name: str) -> StartUp:
    """The start-up of a workload: its name is the seed, so that not all are slow at once."""
    return StartUp(tuple(durations), zlib.crc32(name.encode()))


def mixed(number: int) -> int:
    """64 well mixed bits of a number (the finalizer of splitmix64; Steele, Lea, Flood 2014)."""
    number = (number * 0x9E3779B97F4A7C15) & _WORD
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _WORD
    return number ^ (number >> 31)

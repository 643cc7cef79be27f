"""What changes cost, lane by lane: `decisions.churn` on arrays, in whole minutes since the replay began."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.churn import HOUR, longest
from forecaster.domain.window import MINUTE
from forecaster.replay.fast.numbers import UNKNOWN, Counts, Flags

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Wait(NamedTuple):
    """How long so many fewer pods have to be wanted: minutes whose entries count, and minutes that must be known."""

    within: int
    since: int

    @classmethod
    def of(cls, fewer: int, price: float) -> Wait:
        """For `fewer` pods less; entries have ages of whole minutes."""
        waited = timedelta(minutes=price / fewer)
        return cls(waited // MINUTE, -(-waited // MINUTE))


@dataclass(slots=True)
class Paid:
    """What was recommended lately: `entries[i % kept]` in minute i, `UNKNOWN` where nothing was.

    A history overwrites one outdated entry at a time, so after a silence it still has some: as many as `slots`
    exceed the entries that are not outdated.
    """

    price: float
    lanes: int
    window: timedelta
    """For how long recommendations are remembered anyway."""
    kept: int = field(init=False)
    entries: NDArray[np.int32] = field(init=False)
    recent: Counts = field(init=False)
    twice: Counts = field(init=False)
    """Lanes whose first minute has two entries: the count that was found, and a recommendation."""
    slots: Counts = field(init=False)
    waits: list[Wait] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.kept = max(self.window, longest(self.price)) // MINUTE + 1
        self.entries = np.full((self.kept, self.lanes), UNKNOWN, np.int32)
        self.recent, self.twice, self.slots = (np.zeros(self.lanes, np.int64) for _ in range(3))

    def lowest(self, wanted: Counts, stabilized: Counts, scales: Flags, current: Counts, minute: int) -> Counts:
        """Remember what is wanted, and give the lowest counts that have been paid for."""
        self._remember(wanted, scales, current, minute)
        result, falls = stabilized.copy(), np.flatnonzero(scales & (stabilized < current))
        if falls.size:
            count = current[falls]
            result[falls] = count - self._saved(falls, count, count - stabilized[falls], minute)
        return result

    def _remember(self, wanted: Counts, scales: Flags, current: Counts, minute: int) -> None:
        slot, entry = minute % self.kept, np.where(scales, wanted, UNKNOWN)
        if minute == 0:
            entry, self.twice = np.maximum(entry, current), scales.astype(np.int64)
        elif minute == self.kept:
            self.twice = np.zeros(self.lanes, np.int64)
        self.recent += (entry != UNKNOWN).astype(np.int64) - (self.entries[slot] != UNKNOWN)
        self.entries[slot] = entry
        np.maximum(self.slots, self.recent + self.twice, out=self.slots)

    def _saved(self, lanes: Counts, current: Counts, fewer: Counts, minute: int) -> Counts:
        """By how many pods each of these lanes may fall: the most whose wait is over, `fewer` at most."""
        entries = self.entries[(minute - np.arange(self.kept)) % self.kept][:, lanes]
        highest = np.maximum.accumulate(entries, axis=0)
        oldest = self.kept - 1 - (entries[::-1] != UNKNOWN).argmax(axis=0)
        outdated = self.slots[lanes] > (self.recent + self.twice)[lanes]
        drops = np.arange(1, int(fewer.max()) + 1)
        within, since = np.array(self._waits(len(drops))).T
        over = outdated | (oldest >= since[:, None])
        paid = over & (highest[within] + drops[:, None] <= current) & (drops[:, None] <= fewer)
        saved: Counts = np.where(paid, drops[:, None], 0).max(axis=0)
        return saved

    def _waits(self, count: int) -> list[Wait]:
        self.waits += [Wait.of(fewer, self.price) for fewer in range(len(self.waits) + 1, count + 1)]
        return self.waits[:count]


@dataclass(slots=True)
class Budget:
    """The minutes of the last hour in which the recommendation was another count than there was."""

    changes: int
    lanes: int
    changed: NDArray[np.bool_] = field(init=False)
    used: Counts = field(init=False)

    def __post_init__(self) -> None:
        self.changed = np.zeros((HOUR // MINUTE, self.lanes), np.bool_)
        self.used = np.zeros(self.lanes, np.int64)

    def within(self, wanted: Counts, current: Counts, minute: int) -> Counts:
        """The present count where the hour's changes are used up and the next one would lower it."""
        slot = minute % len(self.changed)
        self.used -= self.changed[slot]
        self.changed[slot] = False
        return np.where((wanted < current) & (self.used >= self.changes), current, wanted)

    def record(self, changed: Flags, minute: int) -> None:
        """Remember this minute's changes."""
        self.changed[minute % len(self.changed)] = changed
        self.used += changed

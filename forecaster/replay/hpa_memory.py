"""What the controllers of all rows remember: the extremes of a window of passes, and changes with `spec.behavior`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.hpa.numbers import MAX_INT32

if TYPE_CHECKING:
    from datetime import timedelta

    from forecaster.horizontal.numbers import Counts, Flags
    from forecaster.hpa.behavior import ScalingPolicy

FREE = -1


def neutral_for(join: np.ufunc) -> int:
    """What changes no maximum of counts, and no minimum."""
    return 0 if join is np.maximum else MAX_INT32


class SlidingWindow:
    """The join (`np.maximum` or `np.minimum`) of the last `length` entries [row], the latest included.

    In a constant number of passes: the running join of the present block, and the joins of the ends of the block before
    (van Herk 1992; Gil and Werman 1993), fed one entry at a time.
    """

    def __init__(self, join: np.ufunc, length: int, rows: int) -> None:
        self._join = join
        self._nothing = neutral_for(join)
        self._length = length
        self._place = 0
        self._block = np.full((length, rows), self._nothing, np.int64)
        self._ends = np.full((length + 1, rows), self._nothing, np.int64)
        self._running = np.full(rows, self._nothing, np.int64)

    def push(self, entry: Counts) -> Counts:
        """Take an entry in and give the join of the window that ends with it."""
        if self._place == self._length:
            self._turn()
        self._block[self._place] = entry
        self._running = self._join(self._running, entry)
        self._place += 1
        result: Counts = self._join(self._running, self._ends[self._place])
        return result

    def _turn(self) -> None:
        """The block is full: keep the joins of its ends, `ends[i]` that of the entries from the i-th on."""
        for i in range(self._length - 1, -1, -1):
            self._ends[i] = self._join(self._block[i], self._ends[i + 1]) if i < self._length - 1 else self._block[i]
        self._ends[self._length] = self._nothing
        self._running = np.full_like(self._running, self._nothing)
        self._place = 0


class ScaleEvents:
    """Changes of one direction (HPA rules §11.2, §11.4): `change[slot, row]` made at sync `at[slot, row]`.

    Slots that were never used are `FREE`. A slot whose change is outdated is flagged, counts on until it is
    overwritten, and is the first to be.
    """

    def __init__(self, rows: int, policies: tuple[ScalingPolicy, ...], sync_period: timedelta) -> None:
        self._seconds = sync_period.total_seconds()
        self._longest = max((policy.period.total_seconds() for policy in policies), default=0.0)
        self._change = np.zeros((4, rows), np.int64)
        self._at = np.full((4, rows), FREE, np.int64)
        self._outdated = np.zeros((4, rows), np.bool_)

    def since(self, rows: Counts, period: timedelta, sync: int) -> Counts:
        """The change of these rows strictly within the last `period`."""
        at = self._at[:, rows]
        counts = (at != FREE) & ((sync - at) * self._seconds < period.total_seconds())
        total: Counts = np.where(counts, self._change[:, rows], 0).sum(axis=0)
        return total

    def record(self, rows: Counts, change: Counts, sync: int) -> None:
        """Store the changes of these rows: in the last outdated slot, else in the first free one."""
        used = self._at[:, rows] != FREE
        self._outdated[:, rows] |= used & ((sync - self._at[:, rows]) * self._seconds > self._longest)
        slots = self._slots(rows, used)
        self._change[slots, rows], self._at[slots, rows], self._outdated[slots, rows] = change, sync, False

    def _slots(self, rows: Counts, used: Flags) -> Counts:
        outdated = self._outdated[:, rows]
        last_outdated = len(outdated) - 1 - outdated[::-1].argmax(axis=0)
        slots: Counts = np.where(outdated.any(axis=0), last_outdated, used.sum(axis=0))
        if int(slots.max(initial=0)) >= len(self._at):
            self._grow()
        return slots

    def _grow(self) -> None:
        self._change = np.vstack([self._change, np.zeros_like(self._change)])
        self._at = np.vstack([self._at, np.full_like(self._at, FREE)])
        self._outdated = np.vstack([self._outdated, np.zeros_like(self._outdated)])

"""The largest or smallest of the last few entries of every lane, in a constant number of passes.

The running maximum of the present block, and the maxima of the ends of the block before (van Herk 1992; Gil and
Werman 1993), fed one entry at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.hpa.numbers import MAX_INT32

if TYPE_CHECKING:
    from forecaster.replay.fast.numbers import Counts


def nothing_for(join: np.ufunc) -> int:
    """What changes no maximum of counts, and no minimum."""
    return 0 if join is np.maximum else MAX_INT32


class Sliding:
    """The join (`np.maximum` or `np.minimum`) of the last `length` entries, the newest included."""

    def __init__(self, join: np.ufunc, length: int, lanes: int) -> None:
        self._join = join
        self._nothing = nothing_for(join)
        self._length = length
        self._place = 0
        self._block = np.full((length, lanes), self._nothing, np.int64)
        self._ends = np.full((length + 1, lanes), self._nothing, np.int64)
        self._running = np.full(lanes, self._nothing, np.int64)

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

"""A fact of the last cycles of all rows: one array [row] a cycle, with the instants of the cycles.

Immutable and cheap to extend: a longer ring shares the arrays of the shorter one, and slots in which nothing was marked
share one. Instants are epoch seconds, rising, at any distance from each other.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.horizontal.columns import Array, put, taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecaster.horizontal.numbers import Counts


class Ring(NamedTuple):
    """Values [slot][row] at `times` [slot], the latest last; a row has `nothing` where it has no value."""

    nothing: Array
    """A single number of the type of the values."""
    times: tuple[float, ...] = ()
    values: tuple[Array, ...] = ()

    def since(self, begin: float) -> tuple[Array, ...]:
        """The values [slot][row] of the instant `begin` and later."""
        return self.values[bisect_left(self.times, begin) :]

    def opened(self, now: float, keep: float, rows: int) -> Ring:
        """Return the ring with an empty slot for `now`, without what is older than `keep` seconds.

        One slot before that stays: it tells that a row was known for the whole time, however irregular the cycles are.
        A clock that was set back makes what came later as old as now.
        """
        if self.times and self.times[-1] == now:
            return self
        times = tuple(min(time, now) for time in self.times) if self.times and self.times[-1] > now else self.times
        first = max(bisect_left(times, now - keep) - 1, 0)
        return Ring(self.nothing, (*times[first:], now), (*self.values[first:], self._empty(rows)))

    def _empty(self, rows: int) -> Array:
        return _empty(self.nothing.item(), rows, self.nothing.dtype.str)

    def marked(self, value: Array) -> Ring:
        """Return the ring with `value` [row] in the latest slot, where it is larger than what is there."""
        return self._replace(values=(*self.values[:-1], np.maximum(self.values[-1], value, dtype=self.nothing.dtype)))

    def take(self, rows: Counts) -> Ring:
        """The slots of these rows; a negative row is a new one."""
        found = {at: taken(one, rows, self.nothing) for at, one in {id(one): one for one in self.values}.items()}
        return self._replace(values=tuple(found[id(one)] for one in self.values))

    def put(self, rows: Counts, ring: Ring) -> Ring:
        """Return the ring with these rows replaced by those of `ring`, which has the same instants."""
        if ring.times != self.times:
            raise ValueError(f"a ring of {len(ring.times)} instants does not fit into one of {len(self.times)}")
        pairs = list(zip(self.values, ring.values, strict=True))
        different = {(id(own), id(new)): (own, new) for own, new in pairs}
        found = {at: put(own, rows, new) for at, (own, new) in different.items()}
        return self._replace(values=tuple(found[id(own), id(new)] for own, new in pairs))

    def side_by_side(self, rows: int, parts: Sequence[tuple[Array, Ring]]) -> Ring:
        """Return a ring of so many rows, in which each part has its rows at the given positions."""
        times = tuple(sorted({time for _, part in parts for time in part.times}))
        values = tuple(np.full(rows, self.nothing) for _ in times)
        for positions, part in parts:
            for time, slot in zip(part.times, part.values, strict=True):
                values[times.index(time)][positions] = slot
        return self._replace(times=times, values=values)

    def arrays(self) -> tuple[NDArray[np.float64], Array]:
        """The instants [slot] and the values [slot, row], to be saved."""
        return np.array(self.times), np.array(self.values, self.nothing.dtype)

    def of_arrays(self, times: Array, values: Array) -> Ring:
        """What `arrays` gave."""
        return self._replace(times=tuple(times.tolist()), values=tuple(np.asarray(values, self.nothing.dtype)))


@lru_cache(maxsize=64)
def _empty(nothing: int, rows: int, dtype: str) -> Array:
    """A slot [row] in which nothing is marked, the same for all cycles; it is not written to."""
    empty = np.full(rows, nothing, dtype)
    empty.flags.writeable = False
    return empty

"""State of decisions from cycle to cycle: one array per fact, with rows on the last axis.

A fleet has one state. The rows of a group are taken from it, decided and put back; a state of one row serves a single
workload. Everything is immutable; a change makes a new state.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.horizontal.codes import KNOWN, NONE, UNKNOWN
from forecaster.horizontal.columns import SIGNAL, Array, Table, column, put, taken
from forecaster.horizontal.numbers import Codes, Counts, Flags, Floats


class Ring(NamedTuple):
    """Counts [slot][row] of the last cycles at `times` [slot], the latest last; `UNKNOWN` where a row has none.

    Cheap to extend: a longer ring shares the arrays of the shorter one. Instants are epoch seconds, rising, at any
    distance from each other.
    """

    times: tuple[float, ...] = ()
    values: tuple[Array, ...] = ()

    def since(self, begin: float) -> tuple[Array, ...]:
        """The values [slot][row] of the instant `begin` and later."""
        return self.values[bisect_left(self.times, begin) :]

    def opened(self, now: float, keep: float, rows: int) -> Ring:
        """Return the ring with an empty slot for `now`, without slots older than `keep` seconds.

        One older slot stays: it shows that a row was known for the whole time, however irregular the cycles are. If the
        clock was set back, later slots get the age of `now`.
        """
        if self.times and self.times[-1] == now:
            return self
        times = tuple(min(time, now) for time in self.times) if self.times and self.times[-1] > now else self.times
        first = max(bisect_left(times, now - keep) - 1, 0)
        return Ring((*times[first:], now), (*self.values[first:], np.full(rows, UNKNOWN, np.int32)))

    def marked(self, value: Array) -> Ring:
        """Return the ring with `value` [row] in the latest slot, where it is larger than the present one."""
        return self._replace(values=(*self.values[:-1], np.maximum(self.values[-1], value, dtype=np.int32)))

    def take(self, rows: Counts) -> Ring:
        """Return the slots of these rows; a negative row is a new one."""
        return self._replace(values=tuple(taken(slot, rows, UNKNOWN) for slot in self.values))

    def put(self, rows: Counts, ring: Ring) -> Ring:
        """Return the ring with the latest slot of these rows replaced by that of `ring`, which was taken from it."""
        if ring.times != self.times:
            raise ValueError(f"a ring of {len(ring.times)} instants does not fit into one of {len(self.times)}")
        return self._replace(values=(*self.values[:-1], put(self.values[-1], rows, ring.values[-1])))

    @classmethod
    def side_by_side(cls, rows: int, parts: Sequence[tuple[Array, Ring]]) -> Ring:
        """Return a ring of `rows` rows, in which each part has its rows at the given positions."""
        times = tuple(sorted({time for _, part in parts for time in part.times}))
        values = tuple(np.full(rows, UNKNOWN, np.int32) for _ in times)
        for positions, part in parts:
            for time, slot in zip(part.times, part.values, strict=True):
                values[times.index(time)][positions] = slot
        return cls(times, values)

    def arrays(self) -> tuple[NDArray[np.float64], Array]:
        """The instants [slot] and the values [slot, row], to be saved."""
        return np.array(self.times), np.array(self.values, np.int32)

    @classmethod
    def of_arrays(cls, times: Array, values: Array) -> Ring:
        """Restore the ring from the arrays that `arrays` returned."""
        return cls(tuple(times.tolist()), tuple(np.asarray(values, np.int32)))


NOTHING_RECOMMENDED = Ring()


@dataclass(frozen=True, eq=False)
class State(Table):
    """State that outlives a cycle. Arrays are [row] unless stated otherwise; instants are epoch seconds."""

    begun: Flags = column("?", empty=False)
    """Whether the row was seen before: the size that it is found with counts as a recommendation (HPA rules §3)."""
    ready: Counts = column("q", 0)
    """Pods ready at the row's last decision: those that served the demand measured now."""
    cause: Codes = column("b", NONE)
    """Cause of the outage; `NONE` without one."""
    floor: Counts = column("q", 0)
    """Replicas that stay until the outage is over."""
    until: Floats = column("d", 0.0)
    """End of the outage floor."""
    gone: Counts = column("q", -1, of_signal=True)
    """Position in `signals` of the load that has gone or come back; -1 for none."""
    least: Floats = column("d", np.nan)
    """The load that has gone, in the unit of its signal."""
    expected: Floats = column("d", np.nan, SIGNAL)
    """[signal, row] the least load that the latest forecast expected; NaN where that is nothing to miss."""
    missing: Codes = column("b", KNOWN, SIGNAL)
    """[signal, row] reason for holding the row for want of a sample (`codes.NO_SAMPLE` ...)."""
    missing_age: Floats = column("d", np.nan, SIGNAL)
    """[signal, row] how old its latest sample was then, in seconds; NaN where it had none."""
    recommendations: Ring = NOTHING_RECOMMENDED
    """Counts before stabilization (HPA rules §10)."""

    def opened(self, now: float, keep: float, signals: Iterable[str]) -> State:
        """Ready for a cycle: a slot for `now`, a place for these signals, nothing older than `keep` seconds.

        `decide` does it for its rows. A fleet of several groups is opened once, with the longest window of them all,
        before rows are taken: they fit back in then.
        """
        return replace(
            self.covering(signals),
            recommendations=self.recommendations.opened(now, keep, self.rows),
        )

    def take(self, rows: Counts) -> State:
        """Return these rows in this order; a negative row is new. Growth and compaction are one take."""
        return replace(super().take(rows), recommendations=self.recommendations.take(rows))

    def put(self, rows: Counts, table: State) -> State:
        """Return a copy with these rows replaced by those of `table`, which was taken after this state was opened.

        Raises:
            ValueError: `table` has other signals or instants.
        """
        return replace(super().put(rows, table), recommendations=self.recommendations.put(rows, table.recommendations))

    @classmethod
    def side_by_side(cls, rows: int, parts: Sequence[tuple[Array, State]]) -> State:
        """Return one state of several; a row has nothing in a slot in which its part was not decided."""
        rings = [(positions, part.recommendations) for positions, part in parts]
        return replace(super().side_by_side(rows, parts), recommendations=Ring.side_by_side(rows, rings))

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays by name, to be saved."""
        at, recommendations = self.recommendations.arrays()
        return {**super().arrays(), "recommendations_at": at, "recommendations": recommendations}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> State:
        """Return the state that `arrays` gave."""
        ring = Ring.of_arrays(arrays["recommendations_at"], arrays["recommendations"])
        return replace(super().of_arrays(arrays), recommendations=ring)

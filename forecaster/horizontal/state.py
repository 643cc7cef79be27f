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

from forecaster.horizontal.checked import Checked
from forecaster.horizontal.columns import SIGNAL, Array, Codes, Counts, Flags, Floats, Table, column, put, taken
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.row import BACK, GONE, KNOWN, LARGEST, NONE, SILENCE, UNKNOWN


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


# Outages of samples or of load: the count before stays the floor for a while, as callers come back all at once.


GONE_SHARE = 0.1
"""Load below this share of the lowest expected load (its 10 % quantile) has not fallen, it is gone."""
BACK_SHARE = 0.5
"""A load is back when it reaches this share of its former level."""
CAUSES = tuple(map(np.int8, (GONE, BACK, SILENCE, NONE)))


def observed(state: State, checked: Checked, inputs: Inputs, now: float, *, scales: Flags, silent: Flags) -> State:
    """Return the state after observing the load of rows that scale, and rows that are `silent` for want of samples.

    An outage begins, continues or ends, or its load is back, from when the hold starts anew. A hold that began while
    the clock was ahead starts now.
    """
    hold = checked.policy["outage_hold"]
    if not ("outage_hold" in checked.policy.in_use and checked.rules.kinds):
        return state
    scales, silent = scales & (hold > 0.0), silent & (hold > 0.0)
    loads = _loads(state, checked)
    gone = _gone(state, loads, scales)
    until = np.where(hold > 0.0, np.minimum(state.until, now + hold), state.until)
    over = scales & (gone < 0) & (until < now)
    back = scales & (gone < 0) & ~over & _returned(state, loads)
    lost, went, raised = gone >= 0, np.maximum(gone, 0), np.maximum(checked.current, state.floor)
    return replace(
        _silenced(state, checked, inputs, silent),
        cause=np.select([lost, back, silent, over], CAUSES, state.cause),
        floor=np.select([lost, silent, over], [raised, checked.current, 0], state.floor),
        until=np.where(lost | back | silent, now + hold, until),
        gone=np.where(lost, gone, np.where(silent | over, -1, state.gone)),
        least=np.where(lost, np.take_along_axis(state.expected, went[None], axis=0)[0], state.least),
        expected=_expected(state, checked, inputs, scales),
    )


class _Load(NamedTuple):
    """One signal of the rows: its position in the state, and the measured demand; NaN where incomplete."""

    signal: int
    measured: Floats


def _loads(state: State, checked: Checked) -> list[_Load]:
    """Return the loads in the order of the targets; two targets on one signal have the same measurement."""
    measured_by_signal: dict[int, Floats] = {}
    for target, kind in enumerate(checked.rules.kinds):
        measured = np.where(checked.unseen[target] == KNOWN, checked.measured[target], np.nan)
        measured_by_signal.setdefault(state.signals.index(kind.signal), measured)
    return [_Load(*load) for load in measured_by_signal.items()]


def _gone(state: State, loads: list[_Load], rows: Flags) -> Counts:
    """Return the signal [row] with a load that has gone, of several the first; -1 for none."""
    gone = np.full(len(rows), -1)
    for signal, measured in loads:
        least = state.expected[signal]
        gone = np.where((gone < 0) & rows & (least > 0.0) & (measured <= GONE_SHARE * least), signal, gone)
    return gone


def _returned(state: State, loads: list[_Load]) -> Flags:
    """Return where the load that has gone is back."""
    back = np.zeros(state.rows, np.bool_)
    for signal, measured in loads:
        back |= (state.cause == GONE) & (state.gone == signal) & (measured >= BACK_SHARE * state.least)
    return back


def _expected(state: State, checked: Checked, inputs: Inputs, rows: Flags) -> Floats:
    """[signal, row] the least load that is forecast, where it fills a pod at least: less is no outage to fear."""
    expected = np.where(rows, np.nan, state.expected)
    for target, kind in enumerate(checked.rules.kinds):
        low, signal = inputs.low[target], state.signals.index(kind.signal)
        counts = rows & (low >= checked.targets.full[target]) & (low <= LARGEST)
        expected[signal] = np.where(counts, low, expected[signal])
    return expected


def _silenced(state: State, checked: Checked, inputs: Inputs, silent: Flags) -> State:
    """Return the state with the reasons why samples are missing."""
    if not silent.any():
        return state
    missing, age = np.where(silent, np.int8(KNOWN), state.missing), np.where(silent, np.nan, state.missing_age)
    for target, kind in enumerate(checked.rules.kinds):
        signal = state.signals.index(kind.signal)
        missing[signal] = np.where(silent, checked.unseen[target], missing[signal])
        age[signal] = np.where(silent, inputs.age[target], age[signal])
    return replace(state, missing=missing, missing_age=age)

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

from forecaster.horizontal.checked import Checked
from forecaster.horizontal.columns import SIGNAL, SLOT, Array, Codes, Counts, Flags, Floats, Table, column
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.row import BACK, GONE, KNOWN, LARGEST, NONE, SILENCE, UNKNOWN


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
    recommendations: Counts = column("i", UNKNOWN, SLOT)
    """[slot, row] counts before stabilization (HPA rules §10), the latest last; `UNKNOWN` where a row has none."""
    times: tuple[float, ...] = ()
    """Instant of each slot, rising, at any distance from each other."""

    def opened(self, now: float, keep: float, signals: Iterable[str]) -> State:
        """Ready for a cycle: an empty slot for `now`, a place for these signals, no slot older than `keep` seconds.

        One older slot stays: it shows that a row was known for the whole time, however irregular the cycles are. If the
        clock was set back, later slots get the age of `now`.

        `decide` does it for its rows. A fleet of several groups is opened once, with the longest window of them all,
        before rows are taken: they fit back in then.
        """
        state = self.covering(signals)
        if state.times[-1:] == (now,):
            return state
        times = tuple(min(time, now) for time in state.times)
        first = max(bisect_left(times, now - keep) - 1, 0)
        slots = np.concatenate([state.recommendations[first:], np.full((1, state.rows), UNKNOWN, np.int32)])
        return replace(state, times=(*times[first:], now), recommendations=slots)

    def recommended(self, counts: Counts) -> State:
        """Return the state with `counts` [row] in the latest slot, where they are larger than the present ones."""
        latest = np.maximum(self.recommendations[-1:], counts, dtype=np.int32)
        return replace(self, recommendations=np.concatenate([self.recommendations[:-1], latest]))

    def recommended_since(self, begin: float) -> Counts:
        """Return the counts [slot, row] of the instant `begin` and later."""
        return self.recommendations[bisect_left(self.times, begin) :]

    def put(self, rows: Counts, table: State) -> State:
        """Return a copy with these rows replaced by those of `table`, which was taken after this state was opened.

        Raises:
            ValueError: `table` has other signals or instants.
        """
        if table.times != self.times:
            raise ValueError(f"a state of {len(table.times)} instants does not fit into one of {len(self.times)}")
        return super().put(rows, table)

    @classmethod
    def side_by_side(cls, rows: int, parts: Sequence[tuple[Array, State]]) -> State:
        """Return one state of several; a row has nothing in a slot in which its part was not decided."""
        times = tuple(sorted({time for _, part in parts for time in part.times}))
        aligned = [(positions, part.with_times(times)) for positions, part in parts]
        return replace(super().side_by_side(rows, aligned), times=times)

    def with_times(self, times: tuple[float, ...]) -> State:
        """Return the state with a slot for each of these instants; all of its own are among them."""
        slots: Array = np.full((len(times), self.rows), UNKNOWN, np.int32)
        np.maximum.at(slots, [times.index(time) for time in self.times], self.recommendations)
        return replace(self, times=times, recommendations=slots)

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays by name, to be saved."""
        return {**super().arrays(), "recommendations_at": np.array(self.times)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> State:
        """Return the state that `arrays` gave."""
        times = tuple(arrays["recommendations_at"].tolist())
        slots = arrays["recommendations"].reshape(len(times), arrays["begun"].size)
        return replace(super().of_arrays({**arrays, "recommendations": slots}), times=times)


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

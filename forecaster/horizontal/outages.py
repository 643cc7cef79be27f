"""Outages of samples or of load: the count before stays the floor for a while, as callers come back all at once."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forecaster.horizontal.checked import Checked
from forecaster.horizontal.codes import BACK, GONE, KNOWN, LARGEST, NONE, SILENCE
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.numbers import Counts, Flags, Floats
from forecaster.horizontal.state import State

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

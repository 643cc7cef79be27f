"""The border: what came in, with everything impossible masked by a code, so that no arithmetic behind it can fail.

A row with an impossible policy, target or count of pods is failed as a whole. A demand that is NaN, infinite, negative
or beyond counting is not known. Masked numbers are replaced by harmless ones; other rows are not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forecaster.horizontal.columns import Codes, Counts, Flags, Floats
from forecaster.horizontal.events import EventColumns
from forecaster.horizontal.inputs import Inputs, PolicyColumns, Rules, TargetColumns
from forecaster.horizontal.row import (
    EVENT,
    IMPOSSIBLE,
    INCOMPLETE,
    KNOWN,
    LARGEST,
    NO_SAMPLE,
    READY,
    REPLICAS,
    TARGET,
    UNREADABLE,
)
from forecaster.hpa.numbers import MAX_INT32


class Checked(NamedTuple):
    """`Inputs` that can be computed with: numbers are possible everywhere, and masks say where they mean something."""

    rules: Rules
    policy: PolicyColumns
    targets: TargetColumns
    failed: Codes
    """[row] code of the impossible value, 0 where all are possible."""
    current: Counts
    ready: Counts
    unseen: Codes
    """[target, row] `KNOWN`, `INCOMPLETE`, or why there is no measurement."""
    measured: Floats
    """[target, row] 0 where unknown."""
    known: Flags
    """[target, row] whether it is measured."""
    peak: Floats
    """[target, row] 0 where unknown."""
    foreseen: Flags
    """[target, row] whether it is measured and its peak is forecast."""
    quantiles: Sequence[Floats]
    """[target][level, row] 0 where the distribution is not known."""
    distributed: Flags
    """[target, row] whether it is measured and the distribution of its peak is known."""
    events: EventColumns
    lost: Floats
    """[row] 0 where nothing is to be survived, or nothing known of places."""


def check(inputs: Inputs) -> Checked:
    """The inputs of a decision, checked."""
    failed = _failed(inputs)
    current, ready, floors = inputs.current, inputs.ready, inputs.events.floors
    if failed.any():
        current, ready, floors = (np.where(failed > 0, 0, counts) for counts in (current, ready, floors))
    known = _possible(inputs.measured)
    foreseen = known & _possible(inputs.peak)
    distributed, quantiles = _distributions(inputs, known)
    return Checked(
        rules=inputs.rules,
        policy=inputs.policy.possible,
        targets=inputs.targets.possible,
        failed=failed,
        current=current,
        ready=ready,
        unseen=_unseen(inputs, known),
        measured=_where(known, inputs.measured),
        known=known,
        peak=_where(foreseen, inputs.peak),
        foreseen=foreseen,
        quantiles=quantiles,
        distributed=distributed,
        events=inputs.events._replace(floors=floors),
        lost=_where((inputs.lost >= 0.0) & (inputs.lost <= 1.0) & (failed == 0), inputs.lost),
    )


def _failed(inputs: Inputs) -> Codes:
    failed = inputs.policy.impossible
    current, ready, event = (_beyond(counts) for counts in (inputs.current, inputs.ready, inputs.events.floors))
    masks = {TARGET: _target(inputs), REPLICAS: current, READY: ready, EVENT: event, UNREADABLE: inputs.unreadable}
    for code, mask in masks.items():
        if mask.any():
            failed = np.where(mask & ((failed == 0) | (code == UNREADABLE)), np.int8(code), failed)
    return failed


def _beyond(counts: Counts) -> Flags:
    return np.asarray((counts < 0) | (counts > MAX_INT32))


def _target(inputs: Inputs) -> Flags:
    """Return where a target divides by zero, or the requests of all pods together exceed 64 bits."""
    bad, request = inputs.targets.impossible, inputs.targets.request
    pods = float(inputs.current.max(initial=0))
    if request.size and pods * float(request.max()) >= _MAX:
        bad = bad | (inputs.current.astype(np.float64) * request >= _MAX).any(axis=0)
    return bad


_MAX = 2.0**62


def _possible(amounts: Floats) -> Flags:
    """Return where an amount can be counted: NaN and infinity cannot."""
    return np.asarray((amounts >= 0.0) & (amounts <= LARGEST))


def _where(known: Flags, amounts: Floats) -> Floats:
    return amounts if known.all() else np.where(known, amounts, 0.0)


def _unseen(inputs: Inputs, known: Flags) -> Codes:
    incomplete = inputs.unseen == INCOMPLETE
    if known.all() and not incomplete.any():
        return np.zeros(known.shape, np.int8)
    missing = np.where((inputs.unseen == KNOWN) | incomplete, np.int8(NO_SAMPLE), inputs.unseen)
    code = np.where(np.isnan(inputs.measured), missing, np.int8(IMPOSSIBLE))
    return np.where(known, np.where(incomplete, np.int8(INCOMPLETE), np.int8(KNOWN)), code)


def _distributions(inputs: Inputs, known: Flags) -> tuple[Flags, Sequence[Floats]]:
    """Return where distributions are known, and them; only newsvendor sizing reads them; a hole makes one unknown."""
    if inputs.rules.sizing == "quantile" or not inputs.rules.levels or not inputs.rules.kinds:
        return np.zeros_like(known), ()
    whole = [_possible(quantiles).all(axis=0) for quantiles in inputs.quantiles]
    distributed = known & np.array(whole)
    return distributed, [_where(rows, quantiles) for rows, quantiles in zip(distributed, inputs.quantiles, strict=True)]

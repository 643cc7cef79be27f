"""Censored demand: where what was measured is what was served, and what was wanted is only known to be at least that.

Three signs: usage equals what the ready pods can carry; replicas stand at their maximum with every pod full; or a
series stays on its own ceiling. A fourth kind is an outage: load that is gone and comes back larger than it was.
Arrays are [workload, time], newest last; masks are True where demand is censored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

AT_CAPACITY = 0.005
"""Usage this close to the capacity of the ready pods is cut off by it. Demand that merely passes by is as close in one
minute of a hundred."""
BEYOND = 1.25
"""What demand is taken for while it is cut off: a quarter more, minute after minute, until it is seen again."""
FULL = 0.95
PLATEAU = 3
"""Minutes on the very ceiling of a series; noise alone does not stay there."""
CEILING = 1e-3
MOSTLY = 0.5
GONE, BACK = 0.1, 1.5
LONGEST_OUTAGE = 180
THUNDER = 30
"""Minutes after an outage in which callers who come back count twice."""


def cut_off(measured: float, ready: int, capacity: float) -> bool:
    """Whether the ready pods carry all they can. More than that is demand that is measured elsewhere, and is whole."""
    full = ready * capacity
    return full > 0 and abs(measured / full - 1.0) <= AT_CAPACITY


def at_maximum(usage: Floats, pods: Floats, most: Floats, capacity: Floats) -> Mask:
    """Replicas at `most` [workload] and pods that are full: nobody could have asked for more."""
    with np.errstate(invalid="ignore"):
        return np.asarray((pods >= most[:, None]) & (usage >= FULL * pods * capacity[:, None]))


def throttled(share: Floats, tolerated: float = 0.25) -> Mask:
    """Share of CPU periods in which containers were throttled, above what bursts explain."""
    with np.errstate(invalid="ignore"):
        return np.asarray(share > tolerated)


def on_ceiling(values: Floats) -> Mask:
    """Stretches on the highest value of each series that are too long for chance."""
    high = np.nanmax(np.where(np.isnan(values), -np.inf, values), axis=1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        there = (values >= high * (1 - CEILING)) & (high > 0)
    return _runs(there, PLATEAU) & _varies(values, high)


def outages(values: Floats, expected: Floats) -> Mask:
    """Minutes in which load was gone beside what was `expected` (such as the same time on other days), and the return.

    Load that stays away for longer than a few hours has moved and is no outage.
    """
    with np.errstate(invalid="ignore"):
        gone = _runs((values < GONE * expected) & (expected > 0), 2)
    gone &= ~_runs(gone, LONGEST_OUTAGE)
    after = np.zeros_like(gone)
    for late in range(1, THUNDER + 1):
        after[:, late:] |= gone[:, :-late]
    with np.errstate(invalid="ignore"):
        return np.asarray(gone | (after & (values > BACK * expected)))


def masked(values: Floats, mask: Mask) -> Floats:
    """The series with gaps where demand was censored: nothing is learned from them."""
    return np.where(mask, np.nan, values)


def _varies(values: Floats, high: Floats) -> Mask:
    """A series that is its ceiling most of the time is constant, not cut off."""
    with np.errstate(invalid="ignore"):
        share = (values >= high * (1 - CEILING)).mean(axis=1, keepdims=True)
    return np.asarray(share < MOSTLY)


def _runs(true: Mask, least: int) -> Mask:
    """Where something holds for at least so many columns in a row."""
    before = np.zeros(true.shape, np.int64)
    length = np.zeros(len(true), np.int64)
    for column in range(true.shape[1]):
        length = np.where(true[:, column], length + 1, 0)
        before[:, column] = length
    after = np.zeros(len(true), np.int64)
    out = np.zeros_like(true)
    for column in range(true.shape[1] - 1, -1, -1):
        after = np.where(true[:, column], np.maximum(after, before[:, column]), 0)
        out[:, column] = after >= least
    return out

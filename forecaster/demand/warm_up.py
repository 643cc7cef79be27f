"""Warm-up: what new pods use to start is not demand, and is gone when they have started.

Open-loop demand is what arrives, whatever the pods: after this correction a constant demand is constant under any path
of the count. It is learned from minutes, where load that makes pods start comes before they are ready and warm-up after
that; by five minutes the two look alike. Arrays are [workload, column], latest last; an amount for one pod is in the
signal's unit over five minutes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

LOW, HIGH = 0.25, 0.75
"""Pods are added when demand rises, so most starts show a rise besides the warm-up: the lower quantile is closer to it.
"""
ALIKE = 0.5
"""Each start of a workload is much like the others, what demand does beside it is not: where the lower ones are below
half of the higher ones nothing is learned. On recorded load, where pods come in the minute of a rise, demand at
a dozen starts is taken for a warm-up 1 time in 100, and without this 36 times."""
MIN_STARTS = 5
BEFORE, DURING, AFTER = 3, 5, 3
"""Minutes before a start, of the warm-up, and after it. The level around it is the higher of the two sides, so that
load that goes on rising is not taken for a warm-up."""
NOTICEABLE = 0.01
"""Smallest share of a pod that is noticed; five-minute means in float32 are not exact."""


class Starts(NamedTuple):
    """Starts that no other start disturbs, all [start]."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    """Minute in which pods became ready."""
    pods: Floats
    excess: Floats
    """Usage above the level before and after, over five minutes."""

    def take(self, mask: NDArray[np.bool_]) -> Starts:
        """Some of them."""
        return Starts(self.row[mask], self.column[mask], self.pods[mask], self.excess[mask])


def starts_of(usage: Floats, pods: Floats) -> Starts:
    """All undisturbed starts in some hours by the minute."""
    new = rises(pods)
    row, column = np.nonzero(new > NOTICEABLE)
    inside = (column >= BEFORE) & (column <= usage.shape[1] - DURING - AFTER)
    row, column = row[inside], column[inside]
    near = column[:, None] + np.arange(-BEFORE, DURING + AFTER)
    around, others = usage[row[:, None], near], new[row[:, None], near]
    level = np.maximum(around[:, :BEFORE].mean(axis=1), around[:, BEFORE + DURING :].mean(axis=1))
    excess = around[:, BEFORE : BEFORE + DURING].mean(axis=1) - level
    alone = (np.count_nonzero(others > NOTICEABLE, axis=1) == 1) & ~np.isnan(excess)
    return Starts(row, column, new[row, column], excess).take(alone)


def unusual(starts: Starts, usual: Floats, minutes: int) -> Starts:
    """The starts without those at which the load of most days has a bump itself, or is not known.

    `usual` [workload, column] by five minutes ends where the `minutes` columns end: a job that runs by the clock, and
    for which pods are started in time, is demand.
    """
    last = usual.shape[1] - 1
    begin = last - (minutes - 1 - starts.column) // 5
    before, during, late, after = (usual[starts.row, np.clip(begin + lag, 0, last)] for lag in (-1, 0, 1, 2))
    level = np.maximum(before, after)
    bump = np.maximum(during - level, 0.0) + np.maximum(late - level, 0.0)
    return starts.take((starts.excess <= 0) | (bump <= starts.excess / 2))


def with_starts(before: Floats, starts: Starts) -> Floats:
    """[workload, start] usage of starting pods, latest last, after these."""
    out = before.copy()
    for row, each in zip(starts.row.tolist(), (starts.excess / starts.pods).tolist(), strict=True):
        out[row, :-1], out[row, -1] = out[row, 1:].copy(), each
    return out


def of_each(excess: Floats) -> Floats:
    """[workload] usage of one starting pod, from starts [workload, start], NaN none; 0 where too few are alike."""
    counts = np.count_nonzero(~np.isnan(excess), axis=1)
    enough = np.flatnonzero(counts >= MIN_STARTS)
    each = np.zeros(len(excess))
    if len(enough):
        low, high = np.nanquantile(excess[enough], (LOW, HIGH), axis=1)
        each[enough] = np.where(low >= ALIKE * high, np.maximum(low, 0.0), 0.0)
    return each


def starting(pods: Floats) -> Floats:
    """Pods that may be starting in each column of five minutes: those that became ready in it or next to it.

    A pod that becomes ready in the middle of a column raises its mean by a part, and that of the next by the rest.
    """
    new: Floats = np.ceil(rises(pods) - NOTICEABLE)
    near = new.copy()
    near[:, 1:] += new[:, :-1]
    near[:, :-1] += new[:, 1:]
    return near


def without_warm_up(usage: Floats, pods: Floats, each: Floats) -> Floats:
    """Usage less what starting pods use to start, `each` [workload], but not below the level around it.

    That level is the higher of the last column before and the next one after in which nothing starts; at the latest end
    the one before.
    """
    new = starting(pods)
    level = np.fmax(_held(np.where(new > 0, np.nan, usage)), _held(np.where(new > 0, np.nan, usage)[:, ::-1])[:, ::-1])
    with np.errstate(invalid="ignore"):
        above = np.maximum(usage - level, 0.0)
    return np.where(np.isnan(above), usage, usage - np.minimum(above, new * each[:, None])).astype(usage.dtype)


def rises(pods: Floats) -> Floats:
    """Rise of the count since the column before; 0 where either is unknown."""
    return np.nan_to_num(np.maximum(np.diff(pods, axis=1, prepend=pods[:, :1]), 0.0))


def _held(values: Floats) -> Floats:
    """The latest known value up to each column; NaN before the first."""
    known = ~np.isnan(values)
    last = np.maximum.accumulate(np.where(known, np.arange(values.shape[1]), 0), axis=1)
    return np.asarray(np.take_along_axis(values, last, axis=1))

"""Shifts: when a series moved to another level for good, and its history at the level of today.

A release that costs 1.8 times as much, half of the traffic moved away: what came before has the right shape at the
wrong level. It is not averaged in and not forgotten, but rescaled: memory is shortened for the level only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .clean import bins_seen, filled
from .panel import DAY, Floats, Panel, trusted

# A shift has lasted a quarter of a day before it is believed, and is looked for in the latest week.
MIN_DAYS, MAX_DAYS, PER_DAY = 0.25, 7, 4
# The week before it has to be known: without it a Saturday is a shift.
SHIFT_DAYS = 7
# Less than a third up or a quarter down is what load does by itself.
MIN_FACTOR = 1.33
# A shift is one and not noise: its size is so many times the spread of the ratios around it.
CLEAR = 6.0
# So much of it must be left against the same time a week ago.
LASTING_HOURS_SHARE = 0.5
# What is next to nothing, relative to the largest value around it.
MIN_SHARE = 1e-3


class Shifts(NamedTuple):
    """Per series the first bin of its level of today, and today's level over the one before; factor 1: no shift.

    Attributes:
        start: instant from which bins are counted.
        bin: [series].
        factor: [series].
    """

    start: datetime
    bin: npt.NDArray[np.intp]
    factor: Floats

    def of(self, rows: slice | npt.NDArray[np.intp]) -> Shifts:
        """Return the shifts of some series."""
        return Shifts(self.start, self.bin[rows], self.factor[rows])

    @classmethod
    def stacked(cls, parts: Sequence[Shifts], step: timedelta) -> Shifts:
        """Join the shifts of all series, counted from the first start."""
        start = min(part.start for part in parts)
        bins = [part.bin + (part.start - start) // step for part in parts]
        return cls(start, np.concatenate(bins), np.concatenate([part.factor for part in parts]))


def shifts(panel: Panel) -> Shifts:
    """Return the clearest shift of each series in the latest week.

    After a shift every value is off its clock time of the day before the shift by about one factor, and off that of a
    week ago by half of it at least, so that a Saturday is none.
    """
    day, length = panel.bins(DAY), panel.length
    known, observed = filled(panel.values), bins_seen(panel.values)
    shift = np.zeros(len(panel))
    best = np.zeros(len(panel))
    where = np.zeros(len(panel), dtype=np.intp)
    for back in range(max(1, round(MIN_DAYS * day)), MAX_DAYS * day + 1, max(1, day // PER_DAY)) if day else ():
        first = length - back
        if first < SHIFT_DAYS * day:
            break
        size, clear = _moved(known, first, day)
        better = (clear > best) & (observed >= back + SHIFT_DAYS * day)
        shift, best, where = (
            np.where(better, size, shift),
            np.where(better, clear, best),
            np.where(better, first, where),
        )
    certain = (best > CLEAR) & (np.abs(shift) > np.log(MIN_FACTOR))
    return Shifts(panel.start, np.where(certain, where, 0), np.exp(np.where(certain, shift, 0.0)))


def levelled(panel: Panel, shifted: Shifts) -> Panel:
    """The panel with what came before each shift brought to the level of today; the panel itself without shifts."""
    rows = np.flatnonzero(shifted.factor != 1)
    if not len(rows):
        return panel
    values = panel.values.copy()
    moved = (panel.start - shifted.start) // panel.step
    for row in rows.tolist():
        values[row, : max(0, int(shifted.bin[row]) - moved)] *= shifted.factor[row]
    return trusted(values, panel.start, panel.step, panel.keys)


def _moved(known: Floats, first: int, day: int) -> tuple[Floats, Floats]:
    """[series] logarithm of the factor at the bin `first`, and how clear it is."""
    after = np.arange(first, min(first + day, known.shape[1]))
    ratio = _log_ratio(known[:, after], known[:, after - day])
    size = np.median(ratio, axis=1)
    spread = np.median(np.abs(ratio - size[:, None]), axis=1)
    usual = np.abs(
        np.median(_log_ratio(known[:, first - day : first], known[:, first - 2 * day : first - day]), axis=1)
    )
    weekly = np.median(_log_ratio(known[:, after], known[:, after - SHIFT_DAYS * day]), axis=1)
    lasting = weekly * size >= LASTING_HOURS_SHARE * size**2
    return np.where(lasting, size, 0.0), np.where(lasting, np.abs(size) / (spread + usual + 1e-3), 0.0)


def _log_ratio(newer: Floats, older: Floats) -> Floats:
    """Logarithm of the ratio, where 0 is a thousandth of the largest."""
    largest = np.maximum(newer, older).max(axis=1, keepdims=True, initial=0).astype(np.float64)
    floor = np.where(largest > 0, np.maximum(MIN_SHARE * largest, np.finfo(np.float64).tiny), 1.0)
    return np.asarray(np.log(np.maximum(newer, floor)) - np.log(np.maximum(older, floor)))

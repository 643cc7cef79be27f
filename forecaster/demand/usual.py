"""What the same time of other days had: the measure of what is missing, and what stands in for it.

Arrays are [workload, column], newest last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating]

KNOWN_DAYS = 3
"""So many other days must be known at a time of the day before it has a usual value."""
JITTER = 3
"""Columns by which the same thing may come earlier or later on another day."""


class OtherDays(NamedTuple):
    """[workload, column] of some columns; NaN where too few other days are known."""

    least: Floats
    """The lowest of the other days, a few columns around."""
    usual: Floats
    """The same weekday of the week before or after, else the median of the days."""


def other_days(values: Floats, first: int, day: int) -> OtherDays:
    """Of the columns from `first` on; `day` is the number of columns in a day."""
    count = values.shape[1]
    columns = np.arange(first, count) + -count % day
    slots, where = np.unique(columns % day, return_inverse=True)
    low, known = _ordered(_lowest_around(values), slots, day)
    own = _folded(_lowest_around(values), day)[:, columns // day, columns % day]
    least = np.where(own <= low[:, 0, where], low[:, min(1, low.shape[1] - 1), where], low[:, 0, where])
    enough = known[:, where] - ~np.isnan(own) >= KNOWN_DAYS
    return OtherDays(np.where(enough, least, np.nan), _usual(values, first, day, slots, where))


def _usual(values: Floats, first: int, day: int, slots: NDArray[np.intp], where: NDArray[np.intp]) -> Floats:
    ordered, known = _ordered(values, slots, day)
    middle = np.take_along_axis(ordered, np.maximum(known - 1, 0)[:, None] // 2, axis=1)[:, 0]
    median = np.where(known >= KNOWN_DAYS, middle, np.nan)[:, where]
    near = np.full(median.shape, np.nan)
    for week in (7 * day, -7 * day):
        begin, end = max(first, week), min(values.shape[1], values.shape[1] + week)
        if begin < end:
            part = near[:, begin - first : end - first]
            np.copyto(part, values[:, begin - week : end - week], where=np.isnan(part))
    return np.where(np.isnan(near) | np.isnan(median), median, near)


def _ordered(values: Floats, slots: NDArray[np.intp], day: int) -> tuple[Floats, NDArray[np.intp]]:
    """[workload, day, slot] in ascending order, unknown last, and how many days are known."""
    ordered = np.sort(_folded(values, day)[:, :, slots], axis=1)
    return ordered, np.count_nonzero(~np.isnan(ordered), axis=1)


def _folded(values: Floats, day: int) -> Floats:
    """[workload, day, slot]; the newest column is the last slot of the last day."""
    padded = np.pad(values, ((0, 0), (-values.shape[1] % day, 0)), constant_values=np.nan)
    return padded.reshape(len(values), -1, day)


def _lowest_around(values: Floats) -> Floats:
    """The lowest known value within a few columns."""
    lowest = values.copy()
    for shift in range(1, JITTER + 1):
        np.fmin(lowest[:, shift:], values[:, :-shift], out=lowest[:, shift:])
        np.fmin(lowest[:, :-shift], values[:, shift:], out=lowest[:, :-shift])
    return lowest

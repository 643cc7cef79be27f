"""Backtest: past origins, and the prior's forecasts there.

In the latest week origins lie denser the
nearer they are, so that what happened lately counts more, and at no regular distance, so that a job that runs by the
clock is not always met, or always missed, at the same minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from .forecast import StepWindow
from .panel import DAY, Floats, Panel
from .prior import GROWN_DAYS, NEAR_BINS, TRAINING_LEVELS, in_own_unit, views_at
from .spread import read_table
from .trailing import Origins

# What is replayed stands for the windows around it.
NEAR_STEPS = tuple(StepWindow(step, step) for step in (1, 2, 4, 6, 9, 12))
NEAR_PEAKS = (StepWindow(1, 3), StepWindow(1, 6), StepWindow(3, 6))
NEAR_WINDOWS = (*NEAR_STEPS, *NEAR_PEAKS)
# Hours ahead of the far replays.
FAR_HOURS = (2, 6, 12, 23)
# Half a day of replays says more than chance.
BACKTEST_DAYS = 1.5
# The latest day has twice as many origins as the one a week ago. Half of them in the latest two days were no better an
# hour ahead, and lost 2 % more on peaks of minutes, of which a day shows few.
WEEK, HALF_LIFE = 7.0, 7.0
# Steps of the golden ratio never fall into a rhythm.
GOLDEN = 0.6180339887498949


def far_windows(day: int) -> tuple[StepWindow, ...]:
    """Single steps of a day ahead that are replayed."""
    steps = [hour * day // 24 for hour in FAR_HOURS]
    return tuple(StepWindow(step, step) for step in steps if step > NEAR_BINS)


def ahead_of(values: Floats, origins: Origins, windows: Sequence[StepWindow]) -> Floats:
    """[series, origin, window] largest value of each window after each origin."""
    steps = [range(window.first, window.last + 1) for window in windows]
    largest = [reduce(np.maximum, (values[:, origins + step] for step in each)) for each in steps]
    return np.stack(largest, axis=-1)


def origins_of(length: int, windows: Sequence[StepWindow], day: int, count: int) -> Origins:
    """Origins over the latest week, each a day old at least and with all windows over; none in a short history."""
    if not windows or not count or not day or length < BACKTEST_DAYS * day:
        return np.zeros(0, dtype=np.intp)
    last = length - 1 - max(window.last for window in windows)
    reach = min(WEEK, (last - day) / day)
    turn = np.arange(count)
    place = (turn + turn * GOLDEN % 1) / count
    ages = -HALF_LIFE * np.log2(1 - place * (1 - 0.5 ** (reach / HALF_LIFE)))
    return np.unique((last - ages * day).astype(np.intp)) if reach > 0 else np.zeros(0, dtype=np.intp)


# Origins looked at together, of few series with many of theirs: their features are some tens of megabytes, and the
# history of a series is summed up once for all of its origins.
ORIGINS_AT_ONCE = 1024
MIN_DAYS_BEHIND = 1


def backtested_peaks(
    panel: Panel,
    windows: Sequence[StepWindow],
    levels: Sequence[float],
    origins: npt.NDArray[np.intp],
    *,
    similar: bool = False,
) -> Floats:
    """[series, origin, window, level] quantiles of the largest value of each window after the bins `origins`.

    Origins ascend, and each sees the bins up to and including its own. NaN where it has less than a day behind it.
    `similar` asks the networks that read similar moments.
    """
    day = panel.bins(DAY)
    out = np.full((len(panel), len(origins), len(windows), len(levels)), np.nan)
    if not day or not len(panel):
        return out
    values, unit = in_own_unit(panel.values)
    known = np.flatnonzero(origins >= MIN_DAYS_BEHIND * day)
    for first in range(0, len(known), ORIGINS_AT_ONCE):
        part = known[first : first + ORIGINS_AT_ONCE]
        for rows in np.array_split(np.arange(len(panel)), -(-len(part) * len(panel) // ORIGINS_AT_ONCE)):
            peaks = _peaks(values[rows], origins[part], windows, levels, day, similar=similar)
            out[np.ix_(rows, part)] = peaks * unit[rows, None, None, None]
    return np.asarray(np.maximum(out, 0.0))


def _peaks(
    values: Floats,
    origins: npt.NDArray[np.intp],
    windows: Sequence[StepWindow],
    levels: Sequence[float],
    day: int,
    *,
    similar: bool,
) -> Floats:
    """[series, origin, window, level] from gapless values [series, time] of at most eight days before the first one."""
    first = max(0, int(origins[0]) - (GROWN_DAYS + 1) * day)
    views = views_at(values[:, first : int(origins[-1]) + 1], origins - first, windows, day, similar=similar)
    table = np.moveaxis(views.in_units(), -1, 1)
    return np.moveaxis(read_table(table, levels, TRAINING_LEVELS), 1, -1)

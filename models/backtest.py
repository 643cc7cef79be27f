"""Backtest: what the prior, and the ridge beside it, would have said at past origins.

The prior has learned nothing from the series, so what it would have said is as good as what it says next; a model that
was fitted on the same days would be judged by what it has learned from. In the latest week origins lie denser the
nearer they are, so that what happened lately counts more, and at no regular distance, so that a job that runs by the
clock is not always met, or always missed, at the same minute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .evaluate import pinball
from .forecast import StepWindow
from .panel import DAY
from .prior import GROWN_DAYS, NEAR, in_own_unit, look
from .situation import squash
from .spread import read_table
from .training import TABLE_LEVELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .panel import Floats, Panel
    from .trailing import Origins


# What is replayed stands for the windows around it: by how far they reach, and whether they are one step or many.
REPLAYED_STEPS = (
    StepWindow(1, 1),
    StepWindow(2, 2),
    StepWindow(4, 4),
    StepWindow(6, 6),
    StepWindow(9, 9),
    StepWindow(12, 12),
)
PEAKS = (StepWindow(1, 5), StepWindow(2, 8), StepWindow(3, 12))
# Hours ahead of the far replays, and the kinds of windows that are told apart.
FAR_HOURS = (2, 6, 12, 23)
NEAR_ONE, NEAR_SOME, NEAR_MANY, NEAR_PEAK, FAR = range(5)
WINDOW_KINDS = FAR + 1
# A correction needs about half a day of replays behind it before it says more than chance.
BACKTEST_DAYS = 1.5
# The latest day has twice as many origins as the one a week ago. Half of them in the latest two days were no better an
# hour ahead, and lost 2 % more on peaks of minutes, of which a day shows few.
WEEK, HALF_LIFE = 7.0, 7.0
# Steps of the golden ratio never fall into a rhythm.
GOLDEN = 0.6180339887498949
# The quantiles by which two forecasters are compared: middle and reserve.
JUDGED = (0.5, 0.9, 0.95)


class Replayed(NamedTuple):
    """Of gapless values [series, time].

    Attributes:
        errors: [series, kind, level] quantiles of actual minus forecast, both squashed; 0 where history is too short.
        ages: bins between each near origin and the latest bin.
        loss: [series, origin, window of STEPS] pinball loss at JUDGED, in the unit of the values.
    """

    errors: Floats
    ages: Origins
    loss: Floats


def replay(values: Floats, day: int, replays: int) -> Replayed:
    """Ask the prior at `replays` near and half as many far origins; one network for all, with errors that are alike."""
    errors = np.zeros((len(values), WINDOW_KINDS, len(TABLE_LEVELS)))
    far = [StepWindow(hour * day // 24, hour * day // 24) for hour in FAR_HOURS if hour * day // 24 > NEAR]
    loss = _ask(errors, values, (*REPLAYED_STEPS, *PEAKS), day, replays)
    _ask(errors, values, far, day, replays // 2)
    ages = values.shape[1] - 1 - origins_of(values.shape[1], (*REPLAYED_STEPS, *PEAKS), day, replays)
    return Replayed(errors, ages, loss[:, :, : len(REPLAYED_STEPS)])


def _ask(errors: Floats, values: Floats, windows: Sequence[StepWindow], day: int, count: int) -> Floats:
    """Fill in the kinds that these windows stand for; [series, origin, window] loss."""
    origins = origins_of(values.shape[1], windows, day, count)
    if not len(origins):
        return np.zeros((len(values), 0, len(windows)))
    views = look(values, origins, windows, day, members=1)
    actual = ahead_of(values, origins, windows)
    change = (actual - views.seen.level[:, :, None]) / views.seen.scale[:, :, None]
    missed = squash(change)[..., None] - views.squashed
    kinds = np.array([kind(window) for window in windows])
    for one in set(kinds.tolist()):
        these = np.sort(missed[:, :, kinds == one].reshape(len(values), -1, len(TABLE_LEVELS)), axis=1)
        errors[:, one] = _at_their_levels(these)
    return judged(actual, views.in_units(views.squashed[..., [TABLE_LEVELS.index(level) for level in JUDGED]]))


def judged(actual: Floats, quantiles: Floats) -> Floats:
    """[...] summed pinball loss of quantiles [..., level of JUDGED]."""
    return np.asarray(pinball(actual[..., None], quantiles[..., None], JUDGED).sum(axis=(-2, -1)))


def ahead_of(values: Floats, origins: Origins, windows: Sequence[StepWindow]) -> Floats:
    """[series, origin, window] largest value of each window after each origin."""
    columns = [[values[:, origins + step] for step in range(one.first, one.last + 1)] for one in windows]
    return np.stack([np.maximum.reduce(steps) for steps in columns], axis=-1)


def kind(window: StepWindow) -> int:
    """Which replays stand for a window."""
    if window.last > NEAR:
        return FAR
    if window.steps > 1:
        return NEAR_PEAK
    return (NEAR_ONE, NEAR_SOME, NEAR_MANY)[min(2, window.last // 4)]


def origins_of(length: int, windows: Sequence[StepWindow], day: int, count: int) -> Origins:
    """Origins over the latest week, each a day old at least and with all windows over; none in a short history."""
    if not windows or not count or length < BACKTEST_DAYS * day:
        return np.zeros(0, dtype=np.intp)
    last = length - 1 - max(window.last for window in windows)
    reach = min(WEEK, (last - day) / day)
    turn = np.arange(count)
    place = (turn + turn * GOLDEN % 1) / count
    ages = -HALF_LIFE * np.log2(1 - place * (1 - 0.5 ** (reach / HALF_LIFE)))
    return np.unique((last - ages * day).astype(np.intp)) if reach > 0 else np.zeros(0, dtype=np.intp)


def _at_their_levels(ordered: Floats) -> Floats:
    """[series, level]: of [series, error, level] in order the quantile of each level's own errors."""
    place = np.array(TABLE_LEVELS) * (ordered.shape[1] - 1)
    below = place.astype(np.intp)
    each = np.arange(len(TABLE_LEVELS))
    low, high = ordered[:, below, each], ordered[:, np.minimum(below + 1, ordered.shape[1] - 1), each]
    return np.asarray(low + (high - low) * (place - below))


# Origins of all series looked at together: their features are some tens of megabytes.
ORIGINS_AT_ONCE = 720
LEAST_DAYS_BEHIND = 1


def backtested_peaks(
    panel: Panel, windows: Sequence[StepWindow], levels: Sequence[float], origins: npt.NDArray[np.intp]
) -> Floats:
    """[series, origin, window, level] quantiles of the largest value of each window after the bins `origins`.

    Origins ascend, and each sees the bins up to and including its own. NaN where it has less than a day behind it.
    """
    day = panel.bins(DAY)
    out = np.full((len(panel), len(origins), len(windows), len(levels)), np.nan)
    if not day or not len(panel):
        return out
    values, unit = in_own_unit(panel.values)
    told = np.flatnonzero(origins >= LEAST_DAYS_BEHIND * day)
    for part in np.array_split(told, -(-len(told) * len(panel) // ORIGINS_AT_ONCE) or 1):
        if len(part):
            out[:, part] = _said(values, origins[part], windows, levels, day) * unit[:, None, None, None]
    return np.asarray(np.maximum(out, 0.0))


def _said(
    values: Floats, origins: npt.NDArray[np.intp], windows: Sequence[StepWindow], levels: Sequence[float], day: int
) -> Floats:
    """[series, origin, window, level] from gapless values [series, time] of at most eight days before the first one."""
    first = max(0, int(origins[0]) - (GROWN_DAYS + 1) * day)
    views = look(values[:, first : int(origins[-1]) + 1], origins - first, windows, day)
    found = np.moveaxis(views.in_units(views.squashed), -1, 1)
    return np.moveaxis(read_table(found, levels, TABLE_LEVELS), 1, -1)

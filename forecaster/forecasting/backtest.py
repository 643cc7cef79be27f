"""Days that are over, minute by minute as they were seen coming: what decisions are rehearsed on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.window import DAY, MINUTE
from forecaster.forecasting.peaks import LEVELS
from models import Panel, StepWindow
from models.backtest import backtested_peaks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MINUTES_A_DAY = DAY // MINUTE
BEFORE = 2
"""Days behind the first rehearsed one: one to look back on, and one for a rhythm."""
SOME_TIME = datetime(2026, 1, 5, tzinfo=UTC)
"""The prior knows no calendar; a panel has to begin somewhere."""


class Backtest(NamedTuple):
    """One series or many, by the minute, in their unit."""

    demand: Floats
    seen: Floats
    """What was measured in the minute before."""
    peaks: Floats
    """[..., minute, level] of the largest value of the coming window, as the prior saw it."""
    yesterday: Floats
    """The largest of the same window a day before."""


def backtest(bins: Floats, width: int, *, to_come: int, reach: int, days: int) -> Backtest | None:
    """The newest days of a series [bin] of `width` minutes; None when it is too short."""
    looked = backtests(bins[None], width, to_come=to_come, reach=reach, days=days)
    return Backtest(*(part[0] for part in looked)) if looked else None


def backtests(bins: Floats, width: int, *, to_come: int, reach: int, days: int) -> Backtest | None:
    """The newest days of series [series, bin] of `width` minutes that are known equally long; None if too short.

    Of the newest bin `to_come` minutes are not over yet. A bin is constant, and known as soon as it has begun. The
    window is the coming `reach` minutes.
    """
    values = _filled(bins)
    minutes = np.repeat(values, width, axis=1)[:, : values.shape[1] * width - to_come]
    whole = min(days, minutes.shape[1] // MINUTES_A_DAY - BEFORE)
    if whole < 1:
        return None
    ticks = np.arange(minutes.shape[1] - whole * MINUTES_A_DAY, minutes.shape[1])
    seen = minutes[:, ticks - 1]
    before = minutes[:, ticks[0] - MINUTES_A_DAY : ticks[-1] - MINUTES_A_DAY + reach]
    yesterday = np.lib.stride_tricks.sliding_window_view(before, reach, axis=1).max(axis=-1)
    return Backtest(minutes[:, ticks], seen, _peaks(values, ticks, seen, width, reach), yesterday)


def _peaks(values: Floats, ticks: NDArray[np.intp], seen: Floats, width: int, reach: int) -> Floats:
    """Where the window ends within the bin that is known, its value is the peak."""
    newest, known = (ticks - 1) // width, (ticks - 1) % width + 1
    steps = np.maximum(-(-(reach - (width - known)) // width), 0)
    keys = tuple(map(str, range(len(values))))
    panel = Panel.cleaned(values, SOME_TIME, timedelta(minutes=width), keys)
    counts, which = np.unique(np.maximum(steps, 1), return_inverse=True)
    origins, origin = np.unique(newest, return_inverse=True)
    said = backtested_peaks(panel, [StepWindow(1, count) for count in counts.tolist()], LEVELS, origins)
    return np.where((steps > 0)[:, None], said[:, origin, which], seen[..., None])


def _filled(values: Floats) -> Floats:
    """[series, bin] in which gaps hold the value before them; 0 before the first."""
    place = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(values.shape[1])), axis=1)
    return np.nan_to_num(np.take_along_axis(np.asarray(values, np.float64), place, axis=1))

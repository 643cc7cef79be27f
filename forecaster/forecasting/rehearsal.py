"""Days that are over, minute by minute as they were seen coming: what decisions are rehearsed on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.forecasting.peaks import LEVELS
from models import Panel, Window
from models.rehearsal import rehearsed_peaks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DAY = 1440
BEFORE = 2
"""Days behind the first rehearsed one: one to look back on, and one for a rhythm."""
SOME_TIME = datetime(2026, 1, 5, tzinfo=UTC)
"""The prior knows no calendar; a panel has to begin somewhere."""


class LookBack(NamedTuple):
    """One series by the minute, in its unit."""

    demand: Floats
    seen: Floats
    """What was measured in the minute before."""
    peaks: Floats
    """[minute, level] of the largest value of the coming window, as the prior saw it."""
    yesterday: Floats
    """The largest of the same window a day before."""


def look_back(bins: Floats, width: int, *, to_come: int, reach: int, days: int) -> LookBack | None:
    """The newest days of a series [bin] of `width` minutes; None when it is too short.

    Of the newest bin `to_come` minutes are not over yet. A bin is constant, and known as soon as it has begun. The
    window is the coming `reach` minutes.
    """
    values = _filled(bins)
    minutes = np.repeat(values, width)[: len(values) * width - to_come]
    whole = min(days, len(minutes) // DAY - BEFORE)
    if whole < 1:
        return None
    ticks = np.arange(len(minutes) - whole * DAY, len(minutes))
    seen = minutes[ticks - 1]
    window = np.lib.stride_tricks.sliding_window_view(minutes, reach).max(axis=1)
    return LookBack(minutes[ticks], seen, _peaks(values, ticks, seen, width, reach), window[ticks - DAY])


def _peaks(values: Floats, ticks: NDArray[np.intp], seen: Floats, width: int, reach: int) -> Floats:
    """Where the window ends within the bin that is known, its value is the peak."""
    newest, known = (ticks - 1) // width, (ticks - 1) % width + 1
    steps = np.maximum(-(-(reach - (width - known)) // width), 0)
    panel = Panel.cleaned(values[None], SOME_TIME, timedelta(minutes=width), ("series",))
    peaks = np.repeat(seen[:, None], len(LEVELS), axis=1)
    for count in np.unique(steps[steps > 0]).tolist():
        these = steps == count
        origins = np.unique(newest[these])
        said = rehearsed_peaks(panel, Window(1, count), LEVELS, origins)[0]
        peaks[these] = said[np.searchsorted(origins, newest[these])]
    return peaks


def _filled(values: Floats) -> Floats:
    """Gaps hold the value before them; 0 before the first."""
    place = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(values))))
    return np.nan_to_num(np.asarray(values, np.float64)[place])

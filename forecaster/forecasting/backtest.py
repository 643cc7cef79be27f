"""Past days, minute by minute, with the forecasts of that time: the evidence for judging decisions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.window import MINUTE, MINUTES_A_DAY
from forecaster.forecasting.peaks import LEVELS
from models import Panel, StepWindow, create
from models.backtest import backtested_peaks

Floats = NDArray[np.float64]

DAYS_BEFORE = 2
"""Days behind the first one that is judged: one to look back on, and one for a rhythm."""
ANY_END = datetime(2026, 1, 5, tzinfo=UTC)
"""The prior knows no calendar; a panel has to end somewhere."""
BY_PRIOR = {"adaptive": False, "prior": False, "analog": True}
"""Models whose core is a shipped prior, which forecasts for them, and whether it always reads similar moments. It
forecasts all past origins in one call; other models could have learned from the judged days."""
ORIGIN_INTERVAL = 3
"""Bins between two forecasts of any other model, which forecasts one origin at a time."""


class PolicyBacktest(NamedTuple):
    """One series or many, by the minute, in their unit."""

    demand: Floats
    measured: Floats
    """Measured demand of the minute before."""
    peaks: Floats
    """[..., minute, level] forecast of the largest value in the coming window, made at that minute."""
    yesterday: Floats
    """The largest of the same window a day before."""


def backtests(
    bins: Floats,
    width: int,
    *,
    to_come: int,
    reach: int,
    days: int,
    model: str = "prior",
    end: datetime = ANY_END,
) -> PolicyBacktest | None:
    """The latest days of series [series, bin] of `width` minutes that are known equally long; None if too short.

    Of the latest bin, which ends at `end`, `to_come` minutes are not over yet. A bin is constant, and known as soon as
    it has begun. The window is the coming `reach` minutes, and `model` forecasts it.
    """
    values = _filled(bins)
    minutes = np.repeat(values, width, axis=1)[:, : values.shape[1] * width - to_come]
    whole = min(days, minutes.shape[1] // MINUTES_A_DAY - DAYS_BEFORE)
    if whole < 1:
        return None
    ticks = np.arange(minutes.shape[1] - whole * MINUTES_A_DAY, minutes.shape[1])
    measured = minutes[:, ticks - 1]
    before = minutes[:, ticks[0] - MINUTES_A_DAY : ticks[-1] - MINUTES_A_DAY + reach]
    yesterday = np.lib.stride_tricks.sliding_window_view(before, reach, axis=1).max(axis=-1)
    step = timedelta(minutes=width)
    panel = Panel.cleaned(values, end - values.shape[1] * step, step, tuple(map(str, range(len(values)))))
    return PolicyBacktest(minutes[:, ticks], measured, _peaks(panel, model, ticks, measured, reach), yesterday)


def _peaks(panel: Panel, model: str, ticks: NDArray[np.intp], measured: Floats, reach: int) -> Floats:
    """Return the peaks; where the window ends within the known bin, its value is the peak."""
    width = panel.step // MINUTE
    latest, known = (ticks - 1) // width, (ticks - 1) % width + 1
    steps = np.maximum(-(-(reach - (width - known)) // width), 0)
    counts, which = np.unique(np.maximum(steps, 1), return_inverse=True)
    origins, origin = np.unique(latest, return_inverse=True)
    windows = [StepWindow(1, count) for count in counts.tolist()]
    if model in BY_PRIOR:
        peaks = backtested_peaks(panel, windows, LEVELS, origins, similar=BY_PRIOR[model])
    else:
        peaks = _peaks_of(model, panel, windows, origins)
    return np.where((steps > 0)[:, None], peaks[:, origin, which], measured[..., None])


def _peaks_of(model: str, panel: Panel, windows: Sequence[StepWindow], origins: NDArray[np.intp]) -> Floats:
    """[series, origin, window, level] by a model that is fitted before the first origin and updated from there on."""
    fitted = create(model).fit(_until(panel, origins[0]))
    peaks = np.full((len(panel), len(origins), len(windows), len(LEVELS)), np.nan)
    for place in range(0, len(origins), ORIGIN_INTERVAL):
        fitted = fitted.update(_until(panel, origins[place]))
        for which, window in enumerate(windows):
            peak = fitted.forecast_peak(window, LEVELS)
            rows = peak.provenance.rows(panel.keys)
            peaks[rows >= 0, place : place + ORIGIN_INTERVAL, which] = peak.values[rows[rows >= 0]][:, None]
    return peaks


def _until(panel: Panel, origin: int) -> Panel:
    """The bins up to and including this one."""
    return panel.until(panel.start + (int(origin) + 1) * panel.step)


def _filled(values: Floats) -> Floats:
    """[series, bin] in which gaps hold the value before them; 0 before the first."""
    place = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(values.shape[1])), axis=1)
    return np.nan_to_num(np.take_along_axis(np.asarray(values, np.float64), place, axis=1))

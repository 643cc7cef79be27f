"""Peaks of minutes from forecasts of five-minute points: weeks are kept as points, pods must carry the largest minute.

How far the largest minute of a window lies above the largest of its points is looked up in the latest three hours, and
joined to the forecast of the points: their medians are multiplied, and the distances from them add up as those of
independent variables do, by their squares. On twelve recorded services a p90 of the points alone covers 60 to 73 % of
the largest minutes of windows from 2 to 30 minutes ahead, this one 88 to 94 % (`./dev bench accuracy`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import rows_among
from forecaster.demand.fresh import FreshHistory, point_means, values_of
from forecaster.demand.warm_up import DURING, NOTICEABLE, rises
from forecaster.domain.window import FIVE_MINUTES, MINUTE, MINUTES_A_POINT
from forecaster.forecasting.peaks import LEVELS, MEDIAN, PeakForecasts

if TYPE_CHECKING:
    from forecaster.domain.workload import WorkloadId
    from models import StepWindow

    Floats = NDArray[np.float64]

POINTS = 36
"""Points looked at: three hours of minutes."""
MAX_STEPS = 6
"""Windows of more points keep the forecast of the points: the minutes hold too few of them."""
MIN_WINDOWS = 12
"""Past windows that must be known, so that an hour of minutes says something about a workload."""
BLOCK = 4096
"""Rows computed together, so that their minutes fit into a cache."""
_MEDIAN = LEVELS.index(MEDIAN)


class Minutes(NamedTuple):
    """A window of minutes within one of points: `steps` points, and the minutes `first` to before `last` of them."""

    steps: int
    first: int
    last: int

    @classmethod
    def of(cls, window: StepWindow, begin: timedelta, length: timedelta) -> Minutes:
        """Return those of a window of points that touches `begin` to `begin + length` after the newest point."""
        offset = begin - (window.first - 1) * FIVE_MINUTES
        return cls(window.last - window.first + 1, max(0, offset // MINUTE), max(0, (offset + length) // MINUTE))


def of_minutes(
    peaks: PeakForecasts, history: FreshHistory, window: StepWindow, warming: Iterable[WorkloadId] = ()
) -> PeakForecasts:
    """Return quantiles of the largest minute in place of those of the largest point in `window`.

    Rows without minutes keep theirs. Of workloads that are `warming`, minutes in which pods start are left out: what
    these use to start is no demand, and would have more pods start.
    """
    chosen = Minutes.of(window, peaks.begin - history.end, peaks.until - peaks.begin)
    if history.minutes is None or chosen.steps > MAX_STEPS or chosen.last <= chosen.first or not len(peaks.ids):
        return peaks
    rows, latest = rows_among(peaks.ids, history.minutes.row), history.minutes.values[:, -POINTS * MINUTES_A_POINT :]
    starting = np.array([peaks.place[id_] for id_ in warming if id_ in peaks.place], np.intp)
    values = peaks.values.copy()
    for begin in range(0, len(rows), BLOCK):
        part = np.flatnonzero(rows[begin : begin + BLOCK] >= 0) + begin
        minutes = latest[rows[part]]
        places = np.flatnonzero(np.isin(part, starting))
        if len(places):
            ids = [peaks.ids[row] for row in part[places].tolist()]
            minutes[places] = _without_starts(minutes[places], ids, history)
        values[part] = joined(values[part], ratios(minutes, chosen))
    return replace(peaks, values=values)


def _without_starts(
    minutes: NDArray[np.float32], ids: Sequence[WorkloadId], history: FreshHistory
) -> NDArray[np.float32]:
    """Return minutes [workload, minute] with gaps while pods start."""
    pods = history.context.pods.minutes if history.context else None
    if pods is None or history.minutes is None or pods.end != history.minutes.end:
        return minutes
    new = rises(values_of(pods, ids, minutes.shape[1])) > NOTICEABLE
    using = new.copy()
    for late in range(1, DURING):
        using[:, late:] |= new[:, :-late]
    return np.where(using, np.float32(np.nan), minutes)


def ratios(minutes: NDArray[np.float32], chosen: Minutes) -> Floats:
    """[row, level] quantiles of the largest minute over the largest point of past windows; 1 where few are known."""
    whole = minutes.shape[1] // MINUTES_A_POINT
    minutes = minutes[:, minutes.shape[1] - whole * MINUTES_A_POINT :]
    points = point_means(minutes.reshape(len(minutes), whole, MINUTES_A_POINT))
    count = points.shape[1] - chosen.steps + 1
    if count < MIN_WINDOWS:
        return np.ones((len(minutes), len(LEVELS)))
    largest = _largest([points[:, step : step + count] for step in range(chosen.steps)])
    end = MINUTES_A_POINT * (count - 1) + 1
    minute = _largest([minutes[:, place : place + end : MINUTES_A_POINT] for place in range(chosen.first, chosen.last)])
    ratio = np.full(largest.shape, np.nan, np.float32)
    np.divide(minute, largest, out=ratio, where=largest > 0)
    return quantiles_of(ratio)


def quantiles_of(values: NDArray[np.float32]) -> Floats:
    """[row, level] of the known values [row, sample], linear between two of them; 1 where few are known."""
    ordered = np.sort(values, axis=1)  # what is not known comes last
    known = np.count_nonzero(~np.isnan(values), axis=1)[:, None]
    place = np.clip(np.array(LEVELS) * known - 0.5, 0, np.maximum(known - 1, 0))
    left = place.astype(np.intp)
    low = np.take_along_axis(ordered, left, axis=1)
    high = np.take_along_axis(ordered, np.minimum(left + 1, np.maximum(known - 1, 0)), axis=1)
    return np.where(known >= MIN_WINDOWS, low + (place - left) * (high - low), 1.0)


def joined(points: Floats, ratio: Floats) -> Floats:
    """[row, level] quantiles of the product of independent variables with these quantiles."""
    point, by = points[:, _MEDIAN, None], ratio[:, _MEDIAN, None]
    distance = np.hypot(by * (points - point), point * (ratio - by))
    below = np.arange(len(LEVELS)) < _MEDIAN
    product = point * by + np.where(below, -distance, distance)
    return np.maximum.accumulate(np.maximum(product, 0.0), axis=1)


def _largest(parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The largest known value at each place; NaN where none is known."""
    largest = parts[0].copy()
    for part in parts[1:]:
        np.fmax(largest, part, out=largest)
    return largest

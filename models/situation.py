"""OriginSituation: an origin as numbers without a unit, so that one network can read any series.

Values are taken relative to the latest one and in units of how much the series usually changes; then the inverse
hyperbolic sine tames what is left of spikes.

`past_windows` says what earlier days did in the windows ahead of an origin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .forecast import StepWindow
from .panel import Floats
from .trailing import Origins, Trailing, running_maximum, trailing

LAGS = (*range(1, 13), 15, 18, 24, 30, 36, 48)
DAYS_BACK = 7
# A logarithm of a share that may be zero starts here; smaller spreads are alike.
LOG_FLOOR = 1e-2
# Values come in units of their mean, so this is a millionth of it; only series that are 0 have less.
MIN_SCALE = 1e-6


class OriginSituation(NamedTuple):
    """Facts known at origins of series.

    Attributes:
        values: [series, time] without gaps.
        origins: [origin] position of the latest bin.
        day: bins of a day.
        level: [series, origin] latest value.
        scale: [series, origin] usual change over a day, > 0; over shorter times while there was no day yet.
        context: float32 [series, origin, feature].
        view: trailing statistics at the origins.
        running: by width [series, time] the largest of so many latest bins, as far as it was asked for.
    """

    values: Floats
    origins: Origins
    day: int
    level: Floats
    scale: Floats
    context: Floats
    view: Trailing
    running: dict[int, Floats]


class Moved(NamedTuple):
    """Mean change over a bin, an hour and a day by width, each [series, origin]."""

    steps: Mapping[int, Floats]
    hourly: Mapping[int, Floats]
    daily: Mapping[int, Floats]


def situation_at(values: Floats, origins: Origins, day: int) -> OriginSituation:
    """Look at origins of gapless values [series, time]."""
    level = values[:, origins]
    view = trailing(values, origins)
    moved = _moved(view, day)
    scale = _scale(view, moved, origins, day)
    unit = scale.astype(values.dtype)
    parts = [
        _recent(values, origins, day, level, unit, view),
        _spread(day, level, unit, view, moved),
        _rhythm(values, origins, day, level, unit, view),
        _restlessness(day, unit, moved),
        _age(origins, day, view),
    ]
    features = np.concatenate(parts).astype(np.float32)
    context = np.ascontiguousarray(np.moveaxis(features, 0, -1))
    return OriginSituation(values, origins, day, level, scale, context, view, {})


def squash(value: Floats) -> Floats:
    """Linear near 0, logarithmic far out."""
    return np.asarray(np.arcsinh(value))


def _moved(view: Trailing, day: int) -> Moved:
    quarter, week = max(1, day // 4), DAYS_BACK * day
    return Moved(
        steps=view.changes(1, (*_step_widths(day), 3 * day)),
        hourly=view.changes(hour_of(day), (quarter, day, 3 * day)),
        daily=view.changes(day, (quarter, day, week)),
    )


def _step_widths(day: int) -> list[int]:
    return [max(2, width) for width in (3, day // 24, day // 4, day, DAYS_BACK * day)]


def hour_of(day: int) -> int:
    """Bins of an hour, one at least."""
    return max(1, day // 24)


def _scale(view: Trailing, moved: Moved, origins: Origins, day: int) -> Floats:
    """Mean change over a day in the last week; a young series starts with its changes over a step and an hour.

    Changes over shorter times are smaller; 1.5 and 3 are the usual ratios of the recorded series.
    """
    short = _blend(moved.steps, origins, 1, 3 * day) * 3.0
    medium = _blend(moved.hourly, origins, hour_of(day), 3 * day) * 1.5
    long = _blend(moved.daily, origins, day, DAYS_BACK * day)
    some_hours = np.clip((origins + 1 - hour_of(day)) / (3 * hour_of(day)), 0.0, 1.0)
    some_days = np.clip((origins + 1 - day) / day, 0.0, 1.0)
    scale = some_days * long + (1 - some_days) * (some_hours * medium + (1 - some_hours) * short)
    size = np.abs(view.mean(DAYS_BACK * day))
    return np.asarray(np.maximum(scale, 1e-4 * size) + MIN_SCALE)


def _blend(moved: Mapping[int, Floats], origins: Origins, lag: int, width: int) -> Floats:
    """Mean change over `lag` bins within `width`; the first `lag` bins have none and are not counted."""
    counted = np.maximum(np.minimum(origins + 1 - lag, width), 1)
    return np.asarray(moved[width] * np.minimum(origins + 1, width) / counted)


def _recent(values: Floats, origins: Origins, day: int, level: Floats, scale: Floats, view: Trailing) -> Floats:
    """[feature, series, origin]: latest values, means and extremes of hours and days, relative to the level."""
    widths = (3, 6, day // 24, day // 12, day // 8, day // 4, day // 2, day, 3 * day, DAYS_BACK * day)
    lags = values[:, np.maximum(origins - np.array(LAGS)[:, None], 0)].swapaxes(0, 1)
    features = [view.mean(max(2, width)) for width in widths]
    for width in (day // 24, day // 4, day, DAYS_BACK * day):
        features += view.extremes(max(2, width))
    return squash((np.concatenate([lags, np.stack(features)]) - level) / scale)


def _spread(day: int, level: Floats, scale: Floats, view: Trailing, moved: Moved) -> Floats:
    """[feature, series, origin]: standard deviations, mean steps, and sizes in units of the scale, as logarithms."""
    widths = [max(3, width) for width in (6, day // 24, day // 8, day // 4, day, DAYS_BACK * day)]
    steps = np.stack([moved.steps[width] for width in _step_widths(day)])
    sizes = np.stack([level, view.mean(day), view.mean(DAYS_BACK * day)])
    spreads = np.concatenate([np.sqrt(np.maximum(view.variances(widths), 0)), steps])
    return np.concatenate([np.log(spreads / scale + LOG_FLOOR), np.log1p(np.abs(sizes) / scale)])


def _rhythm(values: Floats, origins: Origins, day: int, level: Floats, scale: Floats, view: Trailing) -> Floats:
    """[feature, series, origin]: differences of the last hours to those of yesterday and last week; the usual level."""
    parts = []
    for width in (max(1, w) for w in (3, day // 24, day // 8, day // 4)):
        latest = view.mean(width)
        parts += [latest - view.mean(width, back=day), latest - view.mean(width, back=DAYS_BACK * day)]
    earlier = np.maximum(origins - day * np.arange(1, DAYS_BACK + 1)[:, None], 0)
    ago = np.sort(values[:, earlier], axis=1)
    parts += [ago[:, k] - level for k in (DAYS_BACK // 2, -1, 0)]
    return squash(np.stack(parts) / scale)


def _restlessness(day: int, scale: Floats, moved: Moved) -> Floats:
    """[feature, series, origin]: changes over a day and an hour, lately, against the usual ones."""
    parts = [by_width[width] for width in (day, max(1, day // 4)) for by_width in (moved.daily, moved.hourly)]
    return np.asarray(np.log(np.stack(parts) / scale + LOG_FLOOR))


def _age(origins: Origins, day: int, view: Trailing) -> Floats:
    """[feature, series, origin]: share of idle and of unchanged bins in the last day, days of history, step length."""
    days = np.log(np.minimum((origins + 1) / day, DAYS_BACK + 1) + LOG_FLOOR)
    idle, still = view.idle(day), view.still(day)
    return np.stack([idle, still, np.broadcast_to(days, idle.shape), np.full(idle.shape, np.log(day / 288))])


# How far around the clock time of the target one looks, per day of distance.
NEIGHBOURS = ((1, (-2, -1, 1, 2, 4)), (7, (-1, 1)))


def past_windows(situation: OriginSituation, windows: Sequence[StepWindow]) -> Floats:
    """Float32 [series, origin, window, feature]: the same window on the last seven days, and how far it is away."""
    first = np.array([window.first for window in windows])
    width = np.array([window.steps for window in windows])
    days = np.array([*range(1, DAYS_BACK + 1), *(day for day, shifts in NEIGHBOURS for _ in shifts)])
    shifts = np.array([0] * DAYS_BACK + [shift for _, each in NEIGHBOURS for shift in each])
    back = _back(situation, days)
    largest = _same_windows(situation, windows, back, shifts)
    then = largest[..., :DAYS_BACK] - situation.level[:, :, None, None]
    since = largest[..., :DAYS_BACK] - _same_minute(situation, back[:, :DAYS_BACK])[:, :, None]
    parts: list[Floats] = [since, then[..., [0, 1, 2, 6]]]
    for each in (then, since):
        ordered = np.sort(each, axis=-1)
        parts += [ordered[..., [0, 1, 3, 5, 6]], each.mean(axis=-1, keepdims=True)]
    parts.append(largest[..., DAYS_BACK:] - situation.level[:, :, None, None])
    origins = situation.origins[:, None]
    latest = np.stack([_largest(situation, window.steps, origins)[:, :, 0] for window in windows], axis=-1)
    parts.append((latest - situation.level[:, :, None])[..., None])
    parts += _around(situation, windows, back[:, :DAYS_BACK])
    scaled = squash(np.concatenate(parts, axis=-1) / situation.scale[:, :, None, None].astype(situation.values.dtype))
    distance = np.stack([np.log(first), first / 12, np.log(width), np.log((first + width) / situation.day)], axis=-1)
    place = np.broadcast_to(distance, (*scaled.shape[:3], distance.shape[1]))
    return np.concatenate([scaled, place], axis=-1).astype(np.float32)


def _around(situation: OriginSituation, windows: Sequence[StepWindow], back: npt.NDArray[np.intp]) -> list[Floats]:
    """Means of the hour around each window's middle on these days, and their change since the origin's clock time."""
    origins, hour = situation.origins[:, None], hour_of(situation.day)
    at = np.stack([origins - back + (window.first + window.last + hour) // 2 for window in windows], axis=1)
    usual = situation.view.mean_at(hour, _known(at, situation.origins[:, None, None]))
    since = usual - situation.view.mean_at(hour, _known(origins - back, origins))[:, :, None]
    latest = situation.view.mean(hour)[:, :, None, None]
    then, level = usual - situation.level[:, :, None, None], situation.level[:, :, None, None]
    parts = [then[..., [0, -1]], then.mean(axis=-1, keepdims=True), _median(then)]
    return [*parts, since[..., [0, -1]], since.mean(axis=-1, keepdims=True), _median(since) + (latest - level)]


def _median(values: Floats) -> Floats:
    """Return the median of the last axis, of odd length; a sort of seven values is quicker than a partition."""
    return np.sort(values, axis=-1)[..., [values.shape[-1] // 2]]


def _known(at: npt.NDArray[np.intp], origins: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Positions that were over at the origin; where history does not reach so far, the origin."""
    return np.asarray(np.where(at < 0, origins, np.minimum(at, origins)))


def _back(situation: OriginSituation, days: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """[origin, place] bins back to these days; where history does not reach so far, to the oldest day that it has."""
    known = (situation.origins[:, None] + 1) // situation.day
    return np.asarray(np.maximum(np.minimum(days, known), 1) * situation.day)


def _same_windows(
    situation: OriginSituation, windows: Sequence[StepWindow], back: npt.NDArray[np.intp], shifts: npt.NDArray[np.intp]
) -> Floats:
    """[series, origin, window, place] largest value of the window so many bins ago; without history the latest value.

    Bins that were not over at the origin are never read.
    """
    origins = situation.origins[:, None]
    largest = []
    for window in windows:
        at = _known(origins - back + shifts + window.last, origins)
        largest.append(_largest(situation, window.steps, at))
    return np.stack(largest, axis=2)


def _largest(situation: OriginSituation, width: int, at: npt.NDArray[np.intp]) -> Floats:
    """[series, *at] largest of the `width` bins up to each of these, fewer at the beginning.

    A few of them are looked up; for many it is cheaper to know all.
    """
    if width * at.size < situation.values.shape[1]:
        return reduce(np.maximum, (situation.values[:, np.maximum(at - before, 0)] for before in range(width)))
    if width not in situation.running:
        situation.running[width] = running_maximum(situation.values, width)
    return np.asarray(situation.running[width][:, at])


def _same_minute(situation: OriginSituation, back: npt.NDArray[np.intp]) -> Floats:
    """[series, origin, place] value at the origin's clock time on these days."""
    origins = situation.origins[:, None]
    return np.asarray(situation.values[:, _known(origins - back, origins)])

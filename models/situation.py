"""Situation: an origin as numbers without a unit, so that one network can look at any series.

Values are taken relative to the latest one and in units of how much the series usually changes; then the inverse
hyperbolic sine tames what is left of spikes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .trailing import trailing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .panel import Floats
    from .trailing import Origins, Trailing

LAGS = (*range(1, 13), 15, 18, 24, 30, 36, 48)
DAYS_BACK = 7
# A logarithm of a share that may be zero starts here; smaller spreads are alike.
LOG_FLOOR = 1e-2
# Values come in units of their mean, so this is a millionth of it; only series that are 0 have less.
LEAST_SCALE = 1e-6


class SeenSituation(NamedTuple):
    """What is known at origins of series.

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


def situation(values: Floats, origins: Origins, day: int) -> SeenSituation:
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
    return SeenSituation(values, origins, day, level, scale, context, view, {})


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
    return np.asarray(np.maximum(scale, 1e-4 * size) + LEAST_SCALE)


def _blend(moved: Mapping[int, Floats], origins: Origins, lag: int, width: int) -> Floats:
    """Mean change over `lag` bins within `width`; the first `lag` bins have none and are not counted."""
    counted = np.maximum(np.minimum(origins + 1 - lag, width), 1)
    return np.asarray(moved[width] * np.minimum(origins + 1, width) / counted)


def _recent(values: Floats, origins: Origins, day: int, level: Floats, scale: Floats, view: Trailing) -> Floats:
    """[feature, series, origin]: latest values, means and extremes of hours and days, relative to the level."""
    widths = (3, 6, day // 24, day // 12, day // 8, day // 4, day // 2, day, 3 * day, DAYS_BACK * day)
    lags = values[:, np.maximum(origins - np.array(LAGS)[:, None], 0)].swapaxes(0, 1)
    found = [view.mean(max(2, width)) for width in widths]
    for width in (day // 24, day // 4, day, DAYS_BACK * day):
        found += view.extremes(max(2, width))
    return squash((np.concatenate([lags, np.stack(found)]) - level) / scale)


def _spread(day: int, level: Floats, scale: Floats, view: Trailing, moved: Moved) -> Floats:
    """[feature, series, origin]: standard deviations, mean steps, and sizes in units of the scale, as logarithms."""
    widths = [max(3, width) for width in (6, day // 24, day // 8, day // 4, day, DAYS_BACK * day)]
    steps = np.stack([moved.steps[width] for width in _step_widths(day)])
    sizes = np.stack([level, view.mean(day), view.mean(DAYS_BACK * day)])
    spreads = np.concatenate([np.sqrt(np.maximum(view.variances(widths), 0)), steps])
    return np.concatenate([np.log(spreads / scale + LOG_FLOOR), np.log1p(np.abs(sizes) / scale)])


def _rhythm(values: Floats, origins: Origins, day: int, level: Floats, scale: Floats, view: Trailing) -> Floats:
    """[feature, series, origin]: how far the last hours are off those of yesterday and last week; the usual level."""
    parts = []
    for width in (max(1, w) for w in (3, day // 24, day // 8, day // 4)):
        newest = view.mean(width)
        parts += [newest - view.mean(width, back=day), newest - view.mean(width, back=DAYS_BACK * day)]
    earlier = np.maximum(origins - day * np.arange(1, DAYS_BACK + 1)[:, None], 0)
    ago = np.sort(values[:, earlier], axis=1)
    parts += [ago[:, k] - level for k in (DAYS_BACK // 2, -1, 0)]
    return squash(np.stack(parts) / scale)


def _restlessness(day: int, scale: Floats, moved: Moved) -> Floats:
    """[feature, series, origin]: changes over a day and an hour, lately, against the usual ones."""
    parts = [of[width] for width in (day, max(1, day // 4)) for of in (moved.daily, moved.hourly)]
    return np.asarray(np.log(np.stack(parts) / scale + LOG_FLOOR))


def _age(origins: Origins, day: int, view: Trailing) -> Floats:
    """[feature, series, origin]: share of idle and of unchanged bins in the last day, days of history, step length."""
    days = np.log(np.minimum((origins + 1) / day, DAYS_BACK + 1) + LOG_FLOOR)
    idle, still = view.idle(day), view.still(day)
    return np.stack([idle, still, np.broadcast_to(days, idle.shape), np.full(idle.shape, np.log(day / 288))])

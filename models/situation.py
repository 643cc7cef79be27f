"""Situation: an origin as numbers without a unit, so that one network can look at any series.

Values are taken relative to the newest one and in units of how much the series usually changes; then the inverse
hyperbolic sine tames what is left of spikes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .trailing import Extremes, Trailing, change, newest_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from .panel import Floats
    from .trailing import Origins

LAGS = (*range(1, 13), 15, 18, 24, 30, 36, 48)
DAYS = 7
# A logarithm of a share that may be zero starts here; smaller spreads are alike.
FLOOR = 1e-2
# Values come in units of their mean, so this is a millionth of it; only series that are 0 have less.
LEAST_SCALE = 1e-6


class SeenSituation(NamedTuple):
    """What is known at origins of series.

    Attributes:
        values: [series, time] without gaps.
        origins: [origin] position of the newest bin.
        day: bins of a day.
        level: [series, origin] newest value.
        scale: [series, origin] usual change over a day, > 0; over shorter times while there was no day yet.
        context: float32 [series, origin, feature].
    """

    values: Floats
    origins: Origins
    day: int
    level: Floats
    scale: Floats
    context: Floats


def situation(values: Floats, origins: Origins, day: int) -> SeenSituation:
    """Look at origins of gapless values [series, time]."""
    level = values[:, origins]
    means = Trailing(values, origins)
    steps, hourly, daily = (
        _changes(values, origins, lag, width)
        for lag, width in ((1, DAYS * day), (_hour(day), 3 * day), (day, DAYS * day))
    )
    scale = _scale(origins, day, means, steps, hourly, daily)
    context = [
        _recent(values, origins, day, level, scale, means),
        _spread(values, origins, day, level, scale, means, steps),
        _rhythm(values, origins, day, level, scale, means),
        _restlessness(day, scale, daily, hourly),
        _age(values, origins, day),
    ]
    features = np.concatenate(context).astype(np.float32)
    return SeenSituation(values, origins, day, level, scale, np.ascontiguousarray(np.moveaxis(features, 0, -1)))


def squash(value: Floats) -> Floats:
    """Linear near 0, logarithmic far out."""
    return np.asarray(np.arcsinh(value))


def _changes(values: Floats, origins: Origins, lag: int, width: int) -> Trailing:
    """Of changes over `lag` bins, to be asked for at most `width` of them."""
    part, places = newest_of(values, origins, width + lag)
    return Trailing(change(part, lag), places)


def _hour(day: int) -> int:
    return max(1, day // 24)


def _scale(origins: Origins, day: int, means: Trailing, steps: Trailing, hourly: Trailing, daily: Trailing) -> Floats:
    """Mean change over a day in the last week; a young series starts with its changes over a step and an hour.

    Changes over shorter times are smaller; 1.5 and 3 are the usual ratios of the recorded series.
    """
    short = _blend(steps, origins, 1, 3 * day) * 3.0
    medium = _blend(hourly, origins, _hour(day), 3 * day) * 1.5
    long = _blend(daily, origins, day, DAYS * day)
    some_hours = np.clip((origins + 1 - _hour(day)) / (3 * _hour(day)), 0.0, 1.0)
    some_days = np.clip((origins + 1 - day) / day, 0.0, 1.0)
    scale = some_days * long + (1 - some_days) * (some_hours * medium + (1 - some_hours) * short)
    size = np.abs(means.mean(DAYS * day))
    return np.asarray(np.maximum(scale, 1e-4 * size) + LEAST_SCALE)


def _blend(moved: Trailing, origins: Origins, lag: int, width: int) -> Floats:
    """Mean change over `lag` bins within `width`; the first `lag` bins have none and are not counted."""
    counted = np.maximum(np.minimum(origins + 1 - lag, width), 1)
    return np.asarray(moved.mean(width) * np.minimum(origins + 1, width) / counted)


def _recent(values: Floats, origins: Origins, day: int, level: Floats, scale: Floats, means: Trailing) -> Floats:
    """[feature, series, origin]: newest values, means and extremes of hours and days, relative to the level."""
    widths = (3, 6, day // 24, day // 12, day // 8, day // 4, day // 2, day, 3 * day, DAYS * day)
    lags = values[:, np.maximum(origins - np.array(LAGS)[:, None], 0)].swapaxes(0, 1)
    trailing = [means.mean(max(2, width)) for width in widths]
    extremes = Extremes(values, origins)
    for width in (day // 24, day // 4, day, DAYS * day):
        trailing += extremes.of(max(2, width))
    return squash((np.concatenate([lags, np.stack(trailing)]) - level) / scale)


def _spread(
    values: Floats, origins: Origins, day: int, level: Floats, scale: Floats, means: Trailing, steps: Trailing
) -> Floats:
    """[feature, series, origin]: standard deviations, mean steps, and sizes in units of the scale, as logarithms."""
    week, places = newest_of(values, origins, DAYS * day)
    centred = week - week.mean(axis=1, keepdims=True)
    first, second = Trailing(centred, places), Trailing(centred * centred, places)
    widths = [max(3, width) for width in (6, day // 24, day // 8, day // 4, day, DAYS * day)]
    variance = np.stack([second.mean(width) - first.mean(width) ** 2 for width in widths])
    moved = np.stack([steps.mean(max(2, width)) for width in (3, day // 24, day // 4, day, DAYS * day)])
    sizes = np.stack([level, means.mean(day), means.mean(DAYS * day)])
    spreads = np.concatenate([np.sqrt(np.maximum(variance, 0)), moved])
    return np.concatenate([np.log(spreads / scale + FLOOR), np.log1p(np.abs(sizes) / scale)])


def _rhythm(values: Floats, origins: Origins, day: int, level: Floats, scale: Floats, means: Trailing) -> Floats:
    """[feature, series, origin]: how far the last hours are off those of yesterday and last week; the usual level."""
    parts = []
    for width in (max(1, w) for w in (3, day // 24, day // 8, day // 4)):
        newest = means.mean(width)
        parts += [newest - means.mean(width, back=day), newest - means.mean(width, back=DAYS * day)]
    earlier = np.maximum(origins - day * np.arange(1, DAYS + 1)[:, None], 0)
    ago = np.sort(values[:, earlier], axis=1)
    parts += [ago[:, k] - level for k in (DAYS // 2, -1, 0)]
    return squash(np.stack(parts) / scale)


def _restlessness(day: int, scale: Floats, daily: Trailing, hourly: Trailing) -> Floats:
    """[feature, series, origin]: changes over a day and an hour, lately, against the usual ones."""
    parts = [moved.mean(width) for width in (day, max(1, day // 4)) for moved in (daily, hourly)]
    return np.asarray(np.log(np.stack(parts) / scale + FLOOR))


def _age(values: Floats, origins: Origins, day: int) -> Floats:
    """[feature, series, origin]: share of idle and of unchanged bins in the last day, days of history, step length."""
    days = np.log(np.minimum((origins + 1) / day, DAYS + 1) + FLOOR)
    part, places = newest_of(values, origins, day + 1)
    idle = _share(part == 0, places, day)
    still = _share(np.diff(part, axis=1, prepend=part[:, :1]) == 0, places, day)
    return np.stack([idle, still, np.broadcast_to(days, idle.shape), np.full(idle.shape, np.log(day / 288))])


def _share(true: npt.NDArray[np.bool_], origins: Origins, width: int) -> Floats:
    """[series, origin] share of the newest bins for which something is true."""
    return Trailing(true.astype(np.float32), origins).mean(width)

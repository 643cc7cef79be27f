"""Situation: an origin as numbers without a unit, so that one network can look at any series.

Values are taken relative to the newest one and in units of how much the series usually changes; then the inverse
hyperbolic sine tames what is left of spikes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .trailing import Extremes, Trailing, change

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


class Situation(NamedTuple):
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


def situation(values: Floats, origins: Origins, day: int) -> Situation:
    """Look at origins of gapless values [series, time]."""
    level = values[:, origins]
    means, steps, hourly, daily = (
        Trailing(part, origins, day)
        for part in (values, change(values, 1), change(values, _hour(day)), change(values, day))
    )
    scale = _scale(origins, day, means, steps, hourly, daily)
    context = [
        *_recent(values, origins, day, level, scale, means),
        *_spread(values, origins, day, level, scale, means, steps),
        *_rhythm(values, origins, day, level, scale, means),
        *_restlessness(day, scale, daily, hourly),
        *_age(values, origins, day),
    ]
    return Situation(values, origins, day, level, scale, np.stack(context, axis=-1).astype(np.float32))


def squash(value: Floats) -> Floats:
    """Linear near 0, logarithmic far out."""
    return np.asarray(np.arcsinh(value))


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


def _recent(values: Floats, origins: Origins, day: int, level: Floats, scale: Floats, means: Trailing) -> list[Floats]:
    """Newest values, means, largest and smallest of the last hours and days, relative to the level."""
    widths = (3, 6, day // 24, day // 12, day // 8, day // 4, day // 2, day, 3 * day, DAYS * day)
    parts = [values[:, np.maximum(origins - lag, 0)] for lag in LAGS]
    parts += [means.mean(max(2, width)) for width in widths]
    extremes = Extremes(values, origins, day)
    for width in (day // 24, day // 4, day, DAYS * day):
        parts += extremes.of(max(2, width))
    return [squash((part - level) / scale) for part in parts]


def _spread(
    values: Floats, origins: Origins, day: int, level: Floats, scale: Floats, means: Trailing, steps: Trailing
) -> list[Floats]:
    """Standard deviations, mean steps, and sizes in units of the scale, as logarithms."""
    centred = values - values.mean(axis=1, keepdims=True)
    first, second = Trailing(centred, origins, day), Trailing(centred * centred, origins, day)
    parts = []
    for width in (6, day // 24, day // 8, day // 4, day, DAYS * day):
        variance = second.mean(max(3, width)) - first.mean(max(3, width)) ** 2
        parts.append(np.sqrt(np.maximum(variance, 0)))
    parts += [steps.mean(max(2, width)) for width in (3, day // 24, day // 4, day, DAYS * day)]
    sizes = (level, means.mean(day), means.mean(DAYS * day))
    return [np.log(part / scale + FLOOR) for part in parts] + [np.log1p(np.abs(size) / scale) for size in sizes]


def _rhythm(values: Floats, origins: Origins, day: int, level: Floats, scale: Floats, means: Trailing) -> list[Floats]:
    """How far the last hours are off those a day and a week ago, and what the same minute was on other days."""
    parts = []
    for width in (max(1, w) for w in (3, day // 24, day // 8, day // 4)):
        newest = means.mean(width)
        parts += [newest - means.mean(width, back=day), newest - means.mean(width, back=DAYS * day)]
    ago = np.sort(np.stack([values[:, np.maximum(origins - k * day, 0)] for k in range(1, DAYS + 1)]), axis=0)
    parts += [ago[k] - level for k in (DAYS // 2, -1, 0)]
    return [squash(part / scale) for part in parts]


def _restlessness(day: int, scale: Floats, daily: Trailing, hourly: Trailing) -> list[Floats]:
    """Changes over a day and an hour, lately, against the usual ones."""
    parts = [moved.mean(width) for width in (day, max(1, day // 4)) for moved in (daily, hourly)]
    return [np.log(part / scale + FLOOR) for part in parts]


def _age(values: Floats, origins: Origins, day: int) -> list[Floats]:
    """Share of idle and of unchanged bins in the last day, days of history up to eight, and the length of a step."""
    idle = _share(values == 0, origins, day)
    still = _share(np.diff(values, axis=1, prepend=values[:, :1]) == 0, origins, day)
    days = np.broadcast_to(np.log(np.minimum((origins + 1) / day, DAYS + 1) + FLOOR), idle.shape)
    return [idle, still, days, np.full(idle.shape, np.log(day / 288))]


def _share(true: npt.NDArray[np.bool_], origins: Origins, width: int) -> Floats:
    """[series, origin] share of the newest bins for which something is true."""
    if len(origins) == 1:
        newest = int(origins[0]) + 1
        return np.asarray(true[:, max(0, newest - width) : newest].mean(axis=1, keepdims=True))
    return Trailing(true.astype(np.float32), origins, width).mean(width)

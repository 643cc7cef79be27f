"""Similar moments: those of a series' own past that were most like the present one, and what followed on them.

Load that switches on and off goes on at one of its levels; which ones there are, and how long each lasts, its own past
knows (analogue forecasting, Lorenz 1969). Networks are told quantiles of what followed, as numbers without a unit.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .situation import squash
from .trailing import running_maximum

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .forecast import StepWindow
    from .panel import Floats
    from .situation import SeenSituation
    from .trailing import Origins

    Bins = npt.NDArray[np.intp]


# Trailing means of 1, 2, 4, 8, 16 and 48 bins are compared: each is the mean of so many of the one before.
WIDER = (2, 2, 2, 2, 3)
PAST_DAYS = 8
# Moments whose future is told; with fewer than twice as many to choose from nothing is told.
NEAREST = 24
# Quantiles of what followed that are told, as positions among so many values.
TOLD = tuple(int(level * NEAREST) for level in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95))
# Origins compared with their past at a time: what lies between stays near the processor.
COMPARED_TOGETHER = 32
# Every so manieth distance shows what is usual, and how far the nearest ones are away at most.
SHOWN = 8
# Squares of distances start here before their logarithm is taken.
LEAST_SQUARE = 1e-4


class Similar(NamedTuple):
    """Similar moments of series at origins.

    Attributes:
        bins: [series, origin, moment] position of each.
        told: [origin] whether there was enough to choose from.
        context: float32 [series, origin, feature]: whether anything is told, and how far away these moments are, and a
            usual one, in the scale of the series, as logarithms.
    """

    bins: Bins
    told: npt.NDArray[np.bool_]
    context: Floats


def similar_moments(seen: SeenSituation, ahead: int) -> Similar:
    """Return the most similar moments after which `ahead` bins were known at the origin."""
    origins, shape = seen.origins, seen.level.shape
    count = np.clip(origins - ahead + 1, 0, PAST_DAYS * seen.day)
    span = max(int(count.max()), 2 * NEAREST)
    missing = max(0, span + ahead - 1 - int(origins.min()))
    bins, context = np.empty((*shape, NEAREST), np.intp), np.ones((*shape, 3), np.float32)
    together = max(1, COMPARED_TOGETHER // len(origins))
    for series in (slice(i, i + together) for i in range(0, len(seen.values), together)):
        means = _means(seen.values[series], missing)
        for at in (slice(i, i + COMPARED_TOGETHER) for i in range(0, len(origins), COMPARED_TOGETHER)):
            first = origins[at] - ahead - span + 1
            squares = _squares(means, origins[at] + missing, first + missing, span)
            shown = np.sort(squares[:, :, ::-SHOWN], axis=-1)
            chosen = _smallest(squares, shown)
            bins[series, at] = np.maximum(chosen + first[:, None], 0)
            near = np.take_along_axis(squares, chosen, axis=-1).mean(axis=-1)
            usual = np.take_along_axis(shown, count[None, at, None] // (2 * SHOWN), axis=-1)[:, :, 0]
            far = np.stack([near, usual], axis=-1)
            context[series, at, 1:] = np.log(far / np.square(seen.scale[series, at, None]) + LEAST_SQUARE) / 2
    told = count >= 2 * NEAREST
    return Similar(bins, told, np.where(told[:, None], context, np.float32(0)))


def _means(values: Floats, missing: int) -> list[Floats]:
    """[series, time] trailing means of each width, infinitely far away for `missing` bins before the record."""
    means = [values]
    for times, width in zip(WIDER, np.cumprod((1, *WIDER)).tolist(), strict=False):
        means.append(_wider(means[-1], width, times))
    return [np.pad(mean, ((0, 0), (missing, 0)), constant_values=np.inf) for mean in means] if missing else means


def _wider(mean: Floats, width: int, times: int) -> Floats:
    """Trailing means of `times` as many bins as `mean`, which has `width`; as they were at the beginning."""
    wider = mean.copy()
    start = width * (times - 1)
    for back in range(width, start + 1, width) if start < mean.shape[1] else ():
        wider[:, start:] += mean[:, start - back : mean.shape[1] - back]
    wider[:, start:] /= times
    return wider


def _squares(means: list[Floats], origins: Origins, first: Origins, span: int) -> Floats:
    """[series, origin, moment] squared distances of the `span` moments from `first` on."""
    total, apart = np.zeros((2, len(means[0]), len(origins), span), means[0].dtype)
    for mean in means:
        moments = sliding_window_view(mean, span, axis=1)
        at_first = moments[:, first] if len(first) > 1 else moments[:, first[0], None]
        np.subtract(at_first, mean[:, origins, None], out=apart)
        total += np.square(apart, out=apart)
    return total


def _smallest(squares: Floats, shown: Floats) -> Bins:
    """[series, origin, nearest] positions of the smallest; those that are shown say how large these are at most."""
    if shown.shape[-1] < NEAREST:
        return np.argpartition(squares, NEAREST - 1, axis=-1)[:, :, :NEAREST]
    at = np.flatnonzero(squares <= shown[:, :, NEAREST - 1, None])
    row, position = np.divmod(at, squares.shape[-1])
    counts = np.bincount(row)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    candidates = np.full((len(counts), counts.max()), np.inf, squares.dtype)
    positions = np.zeros(candidates.shape, np.intp)
    candidates[row, place], positions[row, place] = squares.ravel()[at], position
    chosen = np.argpartition(candidates, NEAREST - 1, axis=1)[:, :NEAREST]
    return np.take_along_axis(positions, chosen, axis=1).reshape(*squares.shape[:2], NEAREST)


def followed(seen: SeenSituation, moments: Similar, windows: Sequence[StepWindow]) -> Floats:
    """Float32 [series, origin, window, feature]: quantiles of the largest value of each window after these moments.

    Once as it was, once as a change since the moment; relative to the latest value, in the scale of the series, 0 where
    nothing is told.
    """
    was = _taken(seen.values, moments.bins)[:, :, None]
    came = np.stack([_largest(seen, window, moments.bins) for window in windows], axis=2)
    level, scale = (each[:, :, None, None].astype(came.dtype) for each in (seen.level, seen.scale))
    parts = [np.sort(part, axis=-1)[..., TOLD] for part in (came - level, came - was)]
    told = squash(np.concatenate(parts, axis=-1) / scale)
    return np.where(moments.told[:, None, None], told, 0).astype(np.float32)


def _largest(seen: SeenSituation, window: StepWindow, moments: Bins) -> Floats:
    """[series, origin, moment] largest value of the window after each moment."""
    if window.steps * moments[0].size < seen.values.shape[1]:
        steps = range(window.first, window.last + 1)
        return reduce(np.maximum, (_taken(seen.values, moments + step) for step in steps))
    if window.steps not in seen.running:
        seen.running[window.steps] = running_maximum(seen.values, window.steps)
    return _taken(seen.running[window.steps], moments + window.last)


def _taken(values: Floats, at: Bins) -> Floats:
    """[series, origin, moment] values at positions of each series."""
    flat = at.reshape(len(at), -1)
    return np.take_along_axis(values, np.minimum(flat, values.shape[1] - 1), axis=1).reshape(at.shape)

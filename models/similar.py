"""Similar moments: those of a series' own past that were most like the present one, and what followed on them.

Load that switches on and off goes on at one of its levels; which ones there are, and how long each lasts, its own past
knows (analogue forecasting, Lorenz 1969). Networks read quantiles of what followed, as numbers without a unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from .forecast import StepWindow
from .panel import Floats
from .situation import OriginSituation, squash
from .trailing import Origins, running_maximum

Bins = npt.NDArray[np.intp]

# Trailing means of 1, 2, 4, 8, 16 and 48 bins are compared, as sums: each is that of so many of the one before.
WIDER = (2, 2, 2, 2, 3)
WIDTHS = np.cumprod((1, *WIDER))
PAST_DAYS = 8
# Moments whose future the networks read; none with fewer than twice as many to choose from.
NEAREST = 24
# Quantiles of what followed that the networks read, as positions among so many values.
QUANTILES = tuple(int(level * NEAREST) for level in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95))
# Origins compared with their past at a time: what lies between stays near the processor.
ORIGINS_PER_GROUP = 32
# Every so manieth distance shows what is usual, and how far the nearest ones are away at most.
SHOWN = 8
# Squares of distances start here before their logarithm is taken.
MIN_SQUARE = 1e-4


class Similar(NamedTuple):
    """Similar moments of series at origins.

    Attributes:
        bins: [series, origin, moment] position of each.
        informed: [origin] whether there were enough moments to choose from.
        context: float32 [series, origin, feature]: whether there were enough moments, how far away these are, and
            a usual one, in the scale of the series, as logarithms.
    """

    bins: Bins
    informed: npt.NDArray[np.bool_]
    context: Floats


def similar_moments(situation: OriginSituation, ahead: int) -> Similar:
    """Return the most similar moments after which `ahead` bins were known at the origin."""
    origins, shape = situation.origins, situation.level.shape
    count = np.clip(origins - ahead + 1, 0, PAST_DAYS * situation.day)
    span = max(int(count.max()), 2 * NEAREST)
    bins, context = np.empty((*shape, NEAREST), np.intp), np.ones((*shape, 3), np.float32)
    per_group = max(1, ORIGINS_PER_GROUP // len(origins))
    for series in (slice(i, i + per_group) for i in range(0, len(situation.values), per_group)):
        sums = _sums(situation.values[series])
        for at in (slice(i, i + ORIGINS_PER_GROUP) for i in range(0, len(origins), ORIGINS_PER_GROUP)):
            first = origins[at] - ahead - span + 1
            squares = _squares(sums, origins[at], first, span)
            shown = np.sort(squares[:, :, ::-SHOWN], axis=-1)
            chosen = _smallest(squares, shown)
            bins[series, at] = np.maximum(chosen + first[:, None], 0)
            near = np.take_along_axis(squares, chosen, axis=-1).mean(axis=-1)
            usual = np.take_along_axis(shown, count[None, at, None] // (2 * SHOWN), axis=-1)[:, :, 0]
            far = np.maximum(np.stack([near, usual], axis=-1), 0)
            context[series, at, 1:] = np.log(far / np.square(situation.scale[series, at, None]) + MIN_SQUARE) / 2
    informed = count >= 2 * NEAREST
    return Similar(bins, informed, np.where(informed[:, None], context, np.float32(0)))


def _sums(values: Floats) -> Floats:
    """[series, width, time] trailing sums of each of `WIDTHS`; multiples of narrower ones at the beginning."""
    sums = np.empty((len(values), len(WIDTHS), values.shape[1]), values.dtype)
    sums[:, 0] = values
    for nth, (times, width) in enumerate(zip(WIDER, WIDTHS.tolist(), strict=False)):
        narrow, wide, start = sums[:, nth], sums[:, nth + 1], width * (times - 1)
        np.multiply(narrow[:, :start], times, out=wide[:, :start])
        np.add(narrow[:, start:], narrow[:, : max(0, values.shape[1] - start)], out=wide[:, start:])
        for back in range(width, start, width):
            wide[:, start:] += narrow[:, start - back : max(0, values.shape[1] - back)]
    return sums


def _squares(sums: Floats, origins: Origins, first: Origins, span: int) -> Floats:
    """[series, origin, moment] squared distances of the `span` moments from `first` on, infinite before the record."""
    earliest = int(first.min())
    known = sums[:, :, max(0, earliest) : int(first.max()) + span]
    squares = (_of_one if len(origins) == 1 else _of_many)(known, sums[:, :, origins])
    if earliest < 0:
        squares = np.pad(squares, ((0, 0), (0, 0), (-earliest, 0)), constant_values=np.inf)
    if len(origins) == 1:
        return squares
    return sliding_window_view(squares, span, axis=2)[:, np.arange(len(origins)), first - earliest]


def _of_one(known: Floats, now: Floats) -> Floats:
    """[series, 1, time] squared distances of [series, width, time] to [series, width, 1]."""
    apart = known - now
    np.square(apart, out=apart)
    return np.asarray(np.matmul((1 / np.square(WIDTHS)).astype(apart.dtype), apart)[:, None])


def _of_many(known: Floats, now: Floats) -> Floats:
    """[series, origin, time] squared distances of [series, width, time] to [series, width, origin].

    As the sum of both squares less twice the product, which is one multiplication of matrices; what cancels in it would
    be lost in single precision.
    """
    double, at = (sums / WIDTHS[:, None].astype(np.float64) for sums in (known, now))
    squares = np.matmul(-2 * at.swapaxes(1, 2), double)
    squares += np.einsum("swt,swt->st", double, double)[:, None]
    squares += np.einsum("swo,swo->so", at, at)[:, :, None]
    return np.asarray(squares, known.dtype)


def _smallest(squares: Floats, shown: Floats) -> Bins:
    """[series, origin, nearest] positions of the smallest; those that are shown say how large these are at most."""
    if shown.shape[-1] < NEAREST:
        return np.argpartition(squares, NEAREST - 1, axis=-1)[:, :, :NEAREST]
    small = (squares <= shown[:, :, NEAREST - 1, None]).reshape(-1, squares.shape[-1])
    at, counts = np.flatnonzero(small), np.count_nonzero(small, axis=1)
    most, rows = int(counts.max()), np.arange(len(counts))
    place = np.arange(len(at)) + np.repeat(rows * most + counts - np.cumsum(counts), counts)
    candidates = np.full((len(counts), most), np.inf, squares.dtype)
    positions = np.zeros(candidates.shape, np.intp)
    candidates.ravel()[place], positions.ravel()[place] = squares.ravel()[at], at
    chosen = np.argpartition(candidates, NEAREST - 1, axis=1)[:, :NEAREST]
    nearest = np.take_along_axis(positions, chosen, axis=1) - rows[:, None] * squares.shape[-1]
    return np.asarray(nearest.reshape(*squares.shape[:2], NEAREST))


def followed(situation: OriginSituation, moments: Similar, windows: Sequence[StepWindow]) -> Floats:
    """Float32 [series, origin, window, feature]: quantiles of the largest value of each window after these moments.

    Once as it was, once as a change since the moment; relative to the latest value, in the scale of the series, 0 where
    there were too few moments.
    """
    was = _taken(situation.values, moments.bins)[:, :, None]
    came = np.stack([_largest(situation, window, moments.bins) for window in windows], axis=2)
    level, scale = (each[:, :, None, None].astype(came.dtype) for each in (situation.level, situation.scale))
    parts = [np.sort(part, axis=-1)[..., QUANTILES] for part in (came - level, came - was)]
    features = squash(np.concatenate(parts, axis=-1) / scale)
    return np.where(moments.informed[:, None, None], features, 0).astype(np.float32)


def _largest(situation: OriginSituation, window: StepWindow, moments: Bins) -> Floats:
    """[series, origin, moment] largest value of the window after each moment."""
    if window.steps * moments[0].size < situation.values.shape[1]:
        steps = range(window.first, window.last + 1)
        return reduce(np.maximum, (_taken(situation.values, moments + step) for step in steps))
    if window.steps not in situation.running:
        situation.running[window.steps] = running_maximum(situation.values, window.steps)
    return _taken(situation.running[window.steps], moments + window.last)


def _taken(values: Floats, at: Bins) -> Floats:
    """[series, origin, moment] values at positions of each series."""
    flat = at.reshape(len(at), -1)
    return np.take_along_axis(values, np.minimum(flat, values.shape[1] - 1), axis=1).reshape(at.shape)

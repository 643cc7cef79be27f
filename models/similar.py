"""Similar moments: those of a series' own past that were most like the present one, and what followed on them.

Load that switches on and off goes on at one of its levels; which ones there are, and how long each lasts, its own past
knows (analogue forecasting, Lorenz 1969). Networks are told quantiles of what followed, as numbers without a unit.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .situation import squash
from .trailing import running_maximum

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
COMPARED_TOGETHER = 64
# Every so manieth distance shows what is usual.
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
    bins, context = np.empty((*shape, NEAREST), np.intp), np.ones((*shape, 3), np.float32)
    for series, at in _blocks(*shape):
        first = origins[at] - ahead - span + 1
        squares = _squares(seen.values[series], origins[at], first, span)
        chosen = np.argpartition(squares, NEAREST, axis=-1)[:, :, :NEAREST]
        bins[series, at] = np.maximum(chosen + first[:, None], 0)
        near = np.take_along_axis(squares, chosen, axis=-1).mean(axis=-1)
        shown = np.sort(squares[:, :, ::-SHOWN], axis=-1)
        usual = np.take_along_axis(shown, count[None, at, None] // (2 * SHOWN), axis=-1)[:, :, 0]
        far = np.stack([near, usual], axis=-1)
        context[series, at, 1:] = np.log(far / np.square(seen.scale[series, at, None]) + LEAST_SQUARE) / 2
    told = count >= 2 * NEAREST
    return Similar(bins, told, np.where(told[:, None], context, np.float32(0)))


def _blocks(series: int, origins: int) -> Iterator[tuple[slice, slice]]:
    """Slices of series and of origins with few pairs each."""
    together = max(1, COMPARED_TOGETHER // origins)
    for first in range(0, series, together):
        for at in range(0, origins, COMPARED_TOGETHER):
            yield slice(first, first + together), slice(at, at + COMPARED_TOGETHER)


def _squares(values: Floats, origins: Origins, first: Origins, span: int) -> Floats:
    """[series, origin, moment] squared distances of the `span` moments from `first` on; infinite before the record."""
    missing = max(0, -int(first.min()))
    mean = values
    total = np.square(_apart(mean, origins, first, span, missing))
    for times, width in zip(WIDER, np.cumprod((1, *WIDER)).tolist(), strict=False):
        mean = _wider(mean, width, times)
        apart = _apart(mean, origins, first, span, missing)
        total += np.square(apart, out=apart)
    return total


def _apart(mean: Floats, origins: Origins, first: Origins, span: int, missing: int) -> Floats:
    """[series, origin, moment] how far trailing means are from that of the origin."""
    now = mean[:, origins, None]
    if missing:
        mean = np.pad(mean, ((0, 0), (missing, 0)), constant_values=np.inf)
    if len(first) == 1:
        start = int(first[0]) + missing
        return mean[:, None, start : start + span] - now
    return np.lib.stride_tricks.sliding_window_view(mean, span, axis=1)[:, first + missing] - now


def _wider(mean: Floats, width: int, times: int) -> Floats:
    """Trailing means of `times` as many bins as `mean`, which has `width`; as they were at the beginning."""
    wider = mean.copy()
    start = width * (times - 1)
    for back in range(width, start + 1, width) if start < mean.shape[1] else ():
        wider[:, start:] += mean[:, start - back : mean.shape[1] - back]
    wider[:, start:] /= times
    return wider


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

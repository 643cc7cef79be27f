"""Trailing statistics of series at origins, over the latest `width` bins up to each origin.

Windows are shorter at the beginning of a series. Many origins are answered from cumulative sums; one origin, which is
what every cycle asks for, is answered from the bins themselves, block by block of series, so that what is computed on
the way stays near the processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .panel import Floats

Origins = npt.NDArray[np.intp]

# Series whose changes are computed at once: a week of five-minute bins of them is half a megabyte.
SERIES_AT_ONCE = 64


def trailing(values: Floats, origins: Origins) -> Trailing:
    """Return trailing means of gapless values [series, time] at origins, the positions of their latest bins."""
    return AtLatest(values[:, : int(origins[0]) + 1]) if len(origins) == 1 else AtOrigins(values, origins)


class AtOrigins:
    """Trailing means at many origins, cached: several features begin with the same ones."""

    def __init__(self, values: Floats, origins: Origins) -> None:
        self._values, self._origins = values, origins
        self._total = running_total(values)
        self._known: dict[tuple[int, int], Floats] = {}
        self._running = RunningMaxima(values), RunningMaxima(-values)

    def mean(self, width: int, *, back: int = 0) -> Floats:
        """[series, origin] mean of the `width` bins that end `back` bins before the origin."""
        key = width, back
        if key not in self._known:
            self._known[key] = self._mean(self._total, width, back)
        return self._known[key]

    def mean_at(self, width: int, at: Origins) -> Floats:
        """[series, *at] mean of the `width` bins up to each of these positions, fewer at the beginning."""
        return mean_of(self._total, width, at).astype(self._values.dtype)

    def changes(self, lag: int, widths: Sequence[int]) -> Mapping[int, Floats]:
        """Return by width the mean of |y(t) - y(t - lag)|, taken as 0 where there was nothing `lag` bins before."""
        total = running_total(change(self._values, lag))
        return {width: self._mean(total, width) for width in widths}

    def variances(self, widths: Sequence[int]) -> Floats:
        """[width, series, origin]; `widths` ascend."""
        centred = self._values - self._values.mean(axis=1, keepdims=True)
        first, second = running_total(centred), running_total(centred * centred)
        return np.stack([self._mean(second, width) - self._mean(first, width) ** 2 for width in widths])

    def extremes(self, width: int) -> tuple[Floats, Floats]:
        """[series, origin] largest and smallest value."""
        high, low = (extreme.of(width)[:, self._origins] for extreme in self._running)
        return high, -low

    def idle(self, width: int) -> Floats:
        """[series, origin] share of the bins that are 0."""
        return self._mean(running_total(self._values == 0), width)

    def still(self, width: int) -> Floats:
        """[series, origin] share of the bins that are as the bin before; `width` is less than the history."""
        return self._mean(running_total(np.diff(self._values, axis=1, prepend=self._values[:, :1]) == 0), width)

    def _mean(self, total: Floats, width: int, back: int = 0) -> Floats:
        return mean_of(total, width, np.maximum(self._origins - back, 0))


class AtLatest:
    """Trailing means at one origin, the latest bin. Products with equal shares are the quickest sum of rows."""

    def __init__(self, values: Floats) -> None:
        self._values = values
        self._known: dict[tuple[int, int], Floats] = {}

    def mean(self, width: int, *, back: int = 0) -> Floats:
        """See AtOrigins.mean."""
        key = width, back
        if key not in self._known:
            last = max(self._values.shape[1] - 1 - back, 0) + 1
            bins = self._values[:, max(last - width, 0) : last]
            with np.errstate(invalid="ignore"):  # BLAS was seen to raise this flag once for numbers that are finite
                self._known[key] = bins @ equal_shares(bins.shape[1], bins.dtype)
        return self._known[key]

    def mean_at(self, width: int, at: Origins) -> Floats:
        """See AtOrigins.mean_at."""
        latest = self._values.shape[1] - 1
        places, each = np.unique(latest - at, return_inverse=True)
        means = np.concatenate([self.mean(width, back=back) for back in places.tolist()], axis=1)
        return means[:, each.reshape(at.shape)]

    def changes(self, lag: int, widths: Sequence[int]) -> Mapping[int, Floats]:
        """See AtOrigins.changes."""
        series, length = self._values.shape
        changes = {width: np.zeros((series, 1), self._values.dtype) for width in widths}
        reach = min(max(widths), length - lag)
        for rows, moved in self._changed(lag, reach) if reach > 0 else ():
            for width, means in changes.items():
                bins = moved[:, reach - min(width, reach) :]
                np.matmul(bins, equal_shares(min(width, length), bins.dtype)[: bins.shape[1]], out=means[rows])
        return changes

    def variances(self, widths: Sequence[int]) -> Floats:
        """See AtOrigins.variances."""
        part = self._values[:, -widths[-1] :]
        centre = self.mean(widths[-1])
        counts = [min(width, part.shape[1]) for width in widths]
        squares = np.empty((len(widths), len(part), 1), part.dtype)
        for rows in blocks(len(part)):
            centred = part[rows] - centre[rows]
            for i, count in enumerate(counts):
                bins = centred[:, part.shape[1] - count :]
                squares[i, rows, 0] = np.vecdot(bins, bins) / count
        means = np.stack([self.mean(width) - centre for width in widths])
        return np.asarray(squares - means * means)

    def extremes(self, width: int) -> tuple[Floats, Floats]:
        """See AtOrigins.extremes."""
        bins = self._values[:, -width:]
        return bins.max(axis=1, keepdims=True), bins.min(axis=1, keepdims=True)

    def idle(self, width: int) -> Floats:
        """See AtOrigins.idle."""
        return self._share(self._values[:, -width:] == 0)

    def still(self, width: int) -> Floats:
        """See AtOrigins.still."""
        bins = self._values[:, -width - 1 :]
        return self._share(np.diff(bins, axis=1, prepend=bins[:, :1])[:, -width:] == 0)

    def _changed(self, lag: int, reach: int) -> Iterator[tuple[slice, Floats]]:
        """Blocks of series and their latest `reach` changes over `lag` bins, in memory that the next block takes over.

        Series that lie one behind the other are subtracted as one piece, in half of the time.
        """
        buffer = np.empty((SERIES_AT_ONCE, self._values.shape[1]), self._values.dtype)
        for rows in blocks(len(self._values)):
            block = self._values[rows]
            changed = buffer[: len(block)]
            if block.flags.c_contiguous:
                np.subtract(block.ravel()[lag:], block.ravel()[:-lag], out=changed.ravel()[lag:])
            else:
                np.subtract(block[:, lag:], block[:, :-lag], out=changed[:, lag:])
            latest = changed[:, changed.shape[1] - reach :]
            yield rows, np.abs(latest, out=latest)

    def _share(self, true: npt.NDArray[np.bool_]) -> Floats:
        """[series, 1] share of the bins of which something is true."""
        return np.asarray(true.astype(self._values.dtype) @ equal_shares(true.shape[1], self._values.dtype))


Trailing: TypeAlias = AtOrigins | AtLatest
"""Statistics of trailing windows."""


def blocks(count: int) -> Iterator[slice]:
    """Yield so many series in slices of `SERIES_AT_ONCE` at most."""
    return (slice(first, last) for first, last in pairwise([*range(0, count, SERIES_AT_ONCE), count]))


@lru_cache(maxsize=64)
def equal_shares(count: int, dtype: np.dtype[np.floating]) -> Floats:
    """[count, 1] of 1 / count."""
    shares = np.full((count, 1), 1 / count, dtype)
    shares.flags.writeable = False
    return shares


class RunningMaxima:
    """Largest values of trailing windows of several widths; wider ones are computed from narrower ones."""

    def __init__(self, values: Floats) -> None:
        self._doubled = [values]

    def of(self, width: int) -> Floats:
        """[series, time] largest of the latest `width` bins, fewer at the beginning."""
        doublings = width.bit_length() - 1
        while len(self._doubled) <= doublings:
            self._doubled.append(_later(self._doubled[-1], 2 ** (len(self._doubled) - 1)))
        widest = self._doubled[doublings]
        return _later(widest, width - 2**doublings) if width > 2**doublings else widest


def running_maximum(values: Floats, width: int) -> Floats:
    """[series, time] largest of the latest `width` bins, fewer at the beginning."""
    return RunningMaxima(values).of(width)


def change(values: Floats, bins: int) -> Floats:
    """[series, time] |y(t) - y(t - bins)|, 0 where there was nothing yet."""
    if not 0 < bins < values.shape[1]:
        return np.zeros_like(values)
    moved = np.empty_like(values)
    moved[:, :bins] = 0
    later = np.subtract(values[:, bins:], values[:, :-bins], out=moved[:, bins:])
    np.abs(later, out=later)
    return moved


def mean_of(total: Floats, width: int, at: Origins) -> Floats:
    """[series, *at] of sums before each bin: the mean of the `width` bins up to these positions."""
    last = at + 1
    first = np.maximum(last - width, 0)
    return np.asarray((total[:, last] - total[:, first]) / (last - first))


def running_total(values: npt.NDArray[np.generic]) -> Floats:
    """[series, time + 1] sum of all values before each bin."""
    total = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, dtype=np.float64, out=total[:, 1:])
    return total


def _later(values: Floats, bins: int) -> Floats:
    """The larger of each value and the one some bins before."""
    wider = values.copy()
    np.maximum(values[:, bins:], values[:, :-bins], out=wider[:, bins:])
    return wider

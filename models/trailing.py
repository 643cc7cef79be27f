"""Trailing statistics of many series at a few origins: what the newest `width` bins before an origin were like."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from .panel import Floats

    Origins = npt.NDArray[np.intp]


class Trailing:
    """Means of trailing windows of values [series, time] at origins (positions of their newest bin).

    Windows are shorter at the beginning. Many origins are answered from cumulative sums. One origin, which is what
    every cycle asks for, is answered by products with equal shares, the quickest way to add up rows. What was asked
    once is known: several features begin with the same means.
    """

    def __init__(self, values: Floats, origins: Origins) -> None:
        self._values, self._origins = values, origins
        self._total: Floats | None = None
        self._known: dict[tuple[int, int], Floats] = {}

    def mean(self, width: int, *, back: int = 0) -> Floats:
        """[series, origin] mean of the `width` bins that end `back` bins before the origin."""
        asked = width, back
        if asked not in self._known:
            self._known[asked] = self._mean(width, back)
        return self._known[asked]

    def _mean(self, width: int, back: int) -> Floats:
        last = np.maximum(self._origins - back, 0) + 1
        first = np.maximum(last - width, 0)
        if len(last) == 1:
            bins = self._values[:, first[0] : last[0]]
            return np.asarray(bins @ equal_shares(bins.shape[1], bins.dtype))
        total = self._sums()
        return np.asarray((total[:, last] - total[:, first]) / (last - first))

    def _sums(self) -> Floats:
        if self._total is None:
            zero = np.zeros((len(self._values), 1))
            self._total = np.concatenate([zero, np.cumsum(self._values, axis=1, dtype=np.float64)], axis=1)
        return self._total


class Extremes:
    """Largest and smallest of trailing windows of values [series, time] at origins, each [series, origin]."""

    def __init__(self, values: Floats, origins: Origins) -> None:
        self._values, self._origins = values, origins

    def of(self, width: int) -> tuple[Floats, Floats]:
        """Largest and smallest of the `width` newest bins."""
        if len(self._origins) == 1:
            newest = int(self._origins[0]) + 1
            bins = self._values[:, max(0, newest - width) : newest]
            return bins.max(axis=1, keepdims=True), bins.min(axis=1, keepdims=True)
        return self._running(self._values, width), -self._running(-self._values, width)

    def _running(self, values: Floats, width: int) -> Floats:
        return running_maximum(values, width)[:, self._origins]


def newest_of(values: Floats, origins: Origins, width: int) -> tuple[Floats, Origins]:
    """The `width` newest bins of one origin and where it is among them: what else is known would be read for nothing.

    Many origins, and a shorter history, are left as they are.
    """
    first = int(origins[0]) + 1 - width
    if len(origins) > 1 or first <= 0:
        return values, origins
    return values[:, first : first + width], np.array([width - 1])


@lru_cache(maxsize=64)
def equal_shares(count: int, dtype: np.dtype[np.floating]) -> Floats:
    """[count, 1] of 1 / count."""
    shares = np.full((count, 1), 1 / count, dtype)
    shares.flags.writeable = False
    return shares


def running_maximum(values: Floats, width: int) -> Floats:
    """[series, time] largest of the newest `width` bins, fewer at the beginning."""
    doubled, reach = values, 1
    while 2 * reach <= width:
        doubled, reach = _later(doubled, reach), 2 * reach
    return _later(doubled, width - reach) if width > reach else doubled


def change(values: Floats, bins: int) -> Floats:
    """[series, time] |y(t) - y(t - bins)|, 0 where there was nothing yet."""
    if not 0 < bins < values.shape[1]:
        return np.zeros_like(values)
    moved = np.empty_like(values)
    moved[:, :bins] = 0
    later = np.subtract(values[:, bins:], values[:, :-bins], out=moved[:, bins:])
    np.abs(later, out=later)
    return moved


def _later(values: Floats, bins: int) -> Floats:
    """The larger of each value and the one some bins before."""
    wider = values.copy()
    np.maximum(values[:, bins:], values[:, :-bins], out=wider[:, bins:])
    return wider

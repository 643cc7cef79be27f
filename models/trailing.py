"""Trailing statistics of many series at a few origins: what the newest `width` bins before an origin were like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from .panel import Floats

    Origins = npt.NDArray[np.intp]


class Trailing:
    """Means of trailing windows of values [series, time] at origins (positions of their newest bin).

    Windows are shorter at the beginning. Many origins are answered from cumulative sums. One origin, which is what
    every cycle asks for, is answered from sums of blocks of an eighth of a day: the values are read once.
    """

    def __init__(self, values: Floats, origins: Origins, day: int) -> None:
        self._values, self._origins, self._block = values, origins, max(1, day // 8)
        self._total: Floats | None = None
        self._blocks: Floats | None = None

    def mean(self, width: int, *, back: int = 0) -> Floats:
        """[series, origin] mean of the `width` bins that end `back` bins before the origin."""
        last = np.maximum(self._origins - back, 0) + 1
        first = np.maximum(last - width, 0)
        if len(last) > 1:
            total = self._sums()
            return np.asarray((total[:, last] - total[:, first]) / (last - first))
        if back or width < self._block:
            return np.asarray(self._values[:, first[0] : last[0]].mean(axis=1, keepdims=True))
        return self._of_blocks(int(first[0]), int(last[0]))

    def _of_blocks(self, first: int, last: int) -> Floats:
        if self._blocks is None:
            self._blocks = blocks(self._values, last, self._block).sum(axis=2)
        whole = (last - first) // self._block
        rest = self._values[:, first : last - whole * self._block].sum(axis=1)
        total = self._blocks[:, self._blocks.shape[1] - whole :].sum(axis=1) + rest
        return np.asarray(total[:, None] / (last - first))

    def _sums(self) -> Floats:
        if self._total is None:
            zero = np.zeros((len(self._values), 1))
            self._total = np.concatenate([zero, np.cumsum(self._values, axis=1, dtype=np.float64)], axis=1)
        return self._total


class Extremes:
    """Largest and smallest of trailing windows, each [series, origin]; the values are read once for one origin."""

    def __init__(self, values: Floats, origins: Origins, day: int) -> None:
        self._values, self._origins, self._block = values, origins, max(1, day // 4)
        newest = int(origins[-1]) + 1
        one = len(origins) == 1
        self._high = blocks(values, newest, self._block).max(axis=2) if one else values
        self._low = blocks(values, newest, self._block).min(axis=2) if one else -values

    def of(self, width: int) -> tuple[Floats, Floats]:
        """Largest and smallest of the `width` newest bins; for one origin of whole blocks and what is left of them."""
        if len(self._origins) > 1:
            return self._running(self._high, width), -self._running(self._low, width)
        newest = int(self._origins[0]) + 1
        first = max(0, newest - width)
        whole = (newest - first) // self._block
        rest = self._values[:, first : newest - whole * self._block]
        start = self._high.shape[1] - whole
        high = np.concatenate([self._high[:, start:], rest], axis=1).max(axis=1, keepdims=True)
        low = np.concatenate([self._low[:, start:], rest], axis=1).min(axis=1, keepdims=True)
        return high, low

    def _running(self, values: Floats, width: int) -> Floats:
        return running_maximum(values, width)[:, self._origins]


def blocks(values: Floats, end: int, size: int) -> Floats:
    """[series, block, bin] whole blocks that end at a position, as a view."""
    count = end // size
    return values[:, end - count * size : end].reshape(len(values), count, size)


def running_maximum(values: Floats, width: int) -> Floats:
    """[series, time] largest of the newest `width` bins, fewer at the beginning."""
    doubled, reach = values, 1
    while 2 * reach <= width:
        doubled, reach = _later(doubled, reach), 2 * reach
    return _later(doubled, width - reach) if width > reach else doubled


def change(values: Floats, bins: int) -> Floats:
    """[series, time] |y(t) - y(t - bins)|, 0 where there was nothing yet."""
    moved = np.zeros_like(values)
    if 0 < bins < values.shape[1]:
        np.subtract(values[:, bins:], values[:, :-bins], out=moved[:, bins:])
        np.abs(moved, out=moved)
    return moved


def _later(values: Floats, bins: int) -> Floats:
    """The larger of each value and the one some bins before."""
    wider = values.copy()
    np.maximum(values[:, bins:], values[:, :-bins], out=wider[:, bins:])
    return wider

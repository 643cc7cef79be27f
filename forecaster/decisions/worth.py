"""How many pods are worth having: each as long as the demand that it alone is expected to serve is worth its price.

Of n pods the last one serves what of the coming peak X lies between the capacity of n - 1 and of n: in pods, on
average the integral of P(X > x) over that pod. It is worth having while that share exceeds the price of an idle pod in
prices of a missing one: the newsvendor's rule (Arrow, Harris, Marschak 1951) for whole pods, in which
a quantile is the limit of many small pods.

Amounts are in pods. Between two quantiles X is spread evenly; below the lowest it is that one, and above the highest it
reaches a quarter further (on recorded load anything from nothing to a half made no difference).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

REACH = 1.25
"""The largest peak, in highest quantiles."""
KEEP = 0.4
"""A pod that is there is kept until it is worth this share of its price: it is ready now and would take a start-up to
come back, and every change has its own cost. On recorded load 0.5 to 0.25 were alike, 1 left a tenth more short and
changed the count twice as often."""


def pods_worth_having(levels: Sequence[float], peaks: Sequence[float], price: float, *, at_least: float = 0.0) -> int:
    """The count at which one more pod would be worth less than `price`, 0-1, the share of it that has to be used.

    `peaks` are quantiles of the coming peak in pods, not crossing; it is known to be `at_least` that large.
    """
    known = [max(peak, at_least) for peak in peaks]
    ends = [*known, REACH * known[-1]]
    beyond = [1.0 - level for level in levels] + [0.0]
    tails = _tails(ends, beyond)

    def area(x: float) -> float:
        """The integral of P(X > t) from x on."""
        if x <= ends[0]:
            return tails[0] + ends[0] - x
        i = bisect_left(ends, x)
        if i == len(ends):
            return 0.0
        left, right = ends[i - 1], ends[i]
        slope = beyond[i - 1] + (beyond[i] - beyond[i - 1]) * (x - left) / (right - left)
        return tails[i] + (right - x) * (slope + beyond[i]) / 2

    counts = range(math.floor(ends[0]), math.ceil(ends[-1]))
    return counts.start + bisect_left(counts, -price, key=lambda n: area(n + 1) - area(n))


def _tails(ends: Sequence[float], beyond: Sequence[float]) -> list[float]:
    """The integral of P(X > t) from each of the ends on."""
    tails = [0.0]
    for (left, right), (before, after) in zip(
        reversed(list(pairwise(ends))), reversed(list(pairwise(beyond))), strict=True
    ):
        tails.append(tails[-1] + (right - left) * (before + after) / 2)
    return tails[::-1]


class Tail(NamedTuple):
    """P(X > x) is `beyond` at its `ends` [end][...], and straight between them."""

    ends: Sequence[Floats]
    beyond: Sequence[float]
    widths: Sequence[Floats]

    @classmethod
    def of(cls, levels: Sequence[float], known: Sequence[Floats]) -> Tail:
        """By quantiles [level][...]; with widths that can be divided by."""
        ends = [*known, REACH * known[-1]]
        widths = [np.where(right > left, right - left, 1.0) for left, right in pairwise(ends)]
        return cls(ends, [*(1.0 - level for level in levels), 0.0], widths)

    def reaches(self, price: float) -> Floats:
        """Where it falls below a price."""
        left = sum(share > price for share in self.beyond) - 1
        if left < 0:
            return self.ends[0]
        part = (self.beyond[left] - price) / (self.beyond[left] - self.beyond[left + 1])
        return self.ends[left] + part * (self.ends[left + 1] - self.ends[left])

    def area(self, x: Floats) -> Floats:
        """The integral from x on; `x` has the whole shape of what comes out."""
        total = np.maximum(self.ends[0] - x, 0.0)
        steps = zip(pairwise(self.ends), pairwise(self.beyond), self.widths, strict=True)
        for (left, right), (before, after), width in steps:
            begin = np.minimum(np.maximum(x, left), right)
            at = before + (after - before) * (begin - left) / width
            total += (right - begin) * (at + after) / 2
        return total


def all_worth_having(
    levels: Sequence[float], peaks: Floats, price: float | Floats, *, at_least: Floats
) -> NDArray[np.int64]:
    """The same for arrays: peaks [..., level], price and `at_least` [...] broadcast against the rest of the shape."""
    tail = _tail(levels, peaks, at_least)
    shape = np.broadcast_shapes(tail.ends[0].shape, np.shape(price))
    low = np.broadcast_to(np.floor(tail.ends[0]), shape).copy()
    high = np.broadcast_to(np.maximum(np.ceil(tail.ends[-1]), low), shape).copy()
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        enough = tail.area(middle) - tail.area(middle + 1) <= price
        high = np.where(enough & (low < high), middle, high)
        low = np.where(~enough & (low < high), middle + 1, low)
    return low.astype(np.int64)


def worth_of_each(levels: Sequence[float], peaks: Floats, first: Floats, count: int, *, at_least: Floats) -> Floats:
    """[..., count]: what each of so many pods after `first` [...] is worth by peaks [..., level], as a share of it."""
    tail = _tail(levels, peaks[..., None, :], at_least[..., None])
    return -np.diff(tail.area(first[..., None] + np.arange(count + 1)), axis=-1)


def _tail(levels: Sequence[float], peaks: Floats, at_least: Floats) -> Tail:
    return Tail.of(levels, list(np.moveaxis(np.maximum(peaks, at_least[..., None]), -1, 0)))

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
from typing import TYPE_CHECKING

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


def all_worth_having(
    levels: Sequence[float], peaks: Floats, price: float | Floats, *, at_least: Floats
) -> NDArray[np.int64]:
    """The same for arrays: peaks [..., level], price and `at_least` [...] broadcast against the rest of the shape."""
    ends, beyond = _tail(levels, peaks, at_least)
    shape = np.broadcast_shapes(ends.shape[:-1], np.shape(price))
    low = np.broadcast_to(np.floor(ends[..., 0]), shape).copy()
    high = np.broadcast_to(np.maximum(np.ceil(ends[..., -1]), low), shape).copy()
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        enough = _area(ends, beyond, middle) - _area(ends, beyond, middle + 1) <= price
        high = np.where(enough & (low < high), middle, high)
        low = np.where(~enough & (low < high), middle + 1, low)
    return low.astype(np.int64)


def worth_of_each(levels: Sequence[float], peaks: Floats, first: Floats, count: int, *, at_least: Floats) -> Floats:
    """[..., count]: what each of so many pods after `first` [...] is worth by peaks [..., level], as a share of it."""
    ends, beyond = _tail(levels, peaks, at_least)
    return -np.diff(_area(ends[..., None, :], beyond, first[..., None] + np.arange(count + 1)), axis=-1)


def _tail(levels: Sequence[float], peaks: Floats, at_least: Floats) -> tuple[Floats, Floats]:
    """Where P(X > x) bends, and what it is there."""
    known = np.maximum(peaks, at_least[..., None])
    ends = np.concatenate([known, REACH * known[..., -1:]], axis=-1)
    return ends, np.append(1.0 - np.asarray(levels, float), 0.0)


def _area(ends: Floats, beyond: Floats, x: Floats) -> Floats:
    """The integral of P(X > t) from x on."""
    total = np.maximum(ends[..., 0] - x, 0.0)
    for i in range(ends.shape[-1] - 1):
        left, right = ends[..., i], ends[..., i + 1]
        begin = np.clip(x, left, right)
        width = np.where(right > left, right - left, 1.0)
        at = beyond[i] + (beyond[i + 1] - beyond[i]) * (begin - left) / width
        total = total + (right - begin) * (at + beyond[i + 1]) / 2
    return np.asarray(total)

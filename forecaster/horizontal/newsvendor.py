"""Replicas by the price of a missing pod: each as long as the demand that it alone is expected to serve is worth it.

Of n pods the last one serves what of the coming peak X lies between the capacity of n - 1 and of n: in pods, on
average the integral of P(X > x) over that pod. It pays while that share exceeds the price of an idle pod in prices of a
missing one: the newsvendor's rule (Arrow, Harris, Marschak 1951) for whole pods, in which a quantile is the limit of
many small pods.

Amounts are in pods. Between two quantiles X is spread evenly; below the lowest it is that one, and above the highest it
reaches a quarter further (on recorded load anything from nothing to a half made no difference).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.demand.censored import AT_CAPACITY
from forecaster.hpa.numbers import MAX_INT32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.horizontal.numbers import Counts, Flags, Floats

REACH = 1.25
"""The largest peak, in highest quantiles."""
KEEP = 0.4
"""A pod that is there is kept until it is worth this share of its price: it is ready now and would take a start-up to
come back, and every change has its own cost. On recorded load 0.5 to 0.25 were alike, 1 left a tenth more short and
changed the count twice as often."""


class Tail(NamedTuple):
    """P(X > x) [row]: `beyond` at its `ends` [end][row], and straight between them."""

    ends: Sequence[Floats]
    beyond: Sequence[float]
    widths: Sequence[Floats]

    @classmethod
    def of(cls, levels: Sequence[float], peaks: Sequence[Floats]) -> Tail:
        """By quantiles [level][row] of the peak; with widths that can be divided by."""
        ends = [*peaks, REACH * peaks[-1]]
        widths = [np.where(right > left, right - left, 1.0) for left, right in pairwise(ends)]
        return cls(ends, [*(1.0 - level for level in levels), 0.0], widths)

    def reaches(self, price: Floats) -> Floats:
        """The peak [row] that is exceeded with the probability `price` [row]; the lowest end for a higher price."""
        found = self.ends[0]
        for (left, right), (before, after) in zip(pairwise(self.ends), pairwise(self.beyond), strict=True):
            part = (before - price) / (before - after)
            found = np.where(before > price, left + part * (right - left), found)
        return found

    def area(self, x: Floats) -> Floats:
        """The integral [row] of P(X > t) from x on."""
        total = np.maximum(self.ends[0] - x, 0.0)
        steps = zip(pairwise(self.ends), pairwise(self.beyond), self.widths, strict=True)
        for (left, right), (before, after), width in steps:
            begin = np.minimum(np.maximum(x, left), right)
            at = before + (after - before) * (begin - left) / width
            total += (right - begin) * (at + after) / 2
        return total


def newsvendor_replicas(
    levels: Sequence[float], peaks: Floats, price: Floats, *, at_least: Floats
) -> tuple[Counts, Counts]:
    """Replicas to have and replicas to keep [row], for quantiles `peaks` [level, row] of the coming peak in pods.

    `price` is the share of a pod that has to be used, 0-1; the peak is known to be `at_least` that large. The count is
    the pod in which P(X > x) falls below the price, or the next one: one look at that pod decides.
    """
    tail = Tail.of(levels, list(np.maximum(peaks, at_least)))
    return _count(tail, price), _count(tail, KEEP * price)


def _count(tail: Tail, price: Floats) -> Counts:
    last = np.floor(tail.reaches(price))
    enough = tail.area(last) - tail.area(last + 1.0) <= price
    return np.minimum(np.where(enough, last, last + 1.0), MAX_INT32).astype(np.int64)


def cut_off(measured: Floats, ready: Counts, capacity: Floats) -> Flags:
    """Where ready pods [row] carry all they can: `demand.censored.cut_off` on arrays."""
    full = ready * capacity
    return (full > 0) & (np.abs(measured / np.where(full > 0, full, 1.0) - 1.0) <= AT_CAPACITY)

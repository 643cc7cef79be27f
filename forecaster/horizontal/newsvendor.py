"""Replicas by the price of a missing pod: each as long as the demand that it alone is expected to serve is worth it.

Of n pods the last one serves what of the coming peak X lies between the capacity of n - 1 and of n: in pods, on
average the integral of P(X > x) over that pod. It pays while that share exceeds the price of an idle pod in prices of a
missing one: the newsvendor's rule (Arrow, Harris, Marschak 1951) for whole pods, in which a quantile is the limit of
many small pods.

Amounts are in pods. Between two quantiles X is spread evenly; below the lowest it is that one, and above the highest it
reaches a quarter further (on recorded load anything from nothing to a half made no difference).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecaster.demand.censored import AT_CAPACITY
from forecaster.horizontal.columns import Counts, Flags, Floats
from forecaster.horizontal.row import KEEP
from forecaster.hpa.numbers import MAX_INT32

REACH = 1.25
"""The largest peak, in highest quantiles."""
NARROW = 1e-12
"""Pods between two ends that are taken for the same."""


class Tail(NamedTuple):
    """P(X > x) [row]: it falls in straight lines through `beyond` [end] at `ends` [end][row], and is 1 before them."""

    ends: Sequence[Floats]
    beyond: Sequence[float]
    slopes: Sequence[Floats]
    """Between two ends, negative."""

    @classmethod
    def of(cls, levels: Sequence[float], peaks: Sequence[Floats]) -> Tail:
        """Return the tail of quantiles [level][row] of the peak."""
        ends, beyond = [*peaks, REACH * peaks[-1]], [*(1.0 - level for level in levels), 0.0]
        lines = zip(pairwise(ends), pairwise(beyond), strict=True)
        slopes = [(after - before) / np.maximum(right - left, NARROW) for (left, right), (before, after) in lines]
        return cls(ends, beyond, slopes)

    def reaches(self, price: float | Floats) -> Floats:
        """The peak [row] that is exceeded with the probability `price`; the lowest end for a higher price."""
        peak = self.ends[0]
        for (left, right), (before, after) in zip(pairwise(self.ends), pairwise(self.beyond), strict=True):
            if isinstance(price, float) and not after <= price < before:
                continue
            there = left + (before - price) / (before - after) * (right - left)
            peak = there if isinstance(price, float) else np.where(before > price, there, peak)
        return peak

    def used(self, first: Floats) -> Floats:
        """The share [row] of the pod after `first` pods that is expected to be used: P(X > x) over that pod."""
        last = first + 1.0
        total = np.minimum(np.maximum(self.ends[0] - first, 0.0), 1.0)
        for (left, right), before, slope in zip(pairwise(self.ends), self.beyond, self.slopes, strict=False):
            begin = np.minimum(np.maximum(first, left), right)
            end = np.minimum(np.maximum(last, left), right)
            total += (end - begin) * (before + slope * ((begin + end) * 0.5 - left))
        return total


def newsvendor_replicas(
    levels: Sequence[float], peaks: Floats, price: float | Floats, *, at_least: Floats
) -> tuple[Counts, Counts]:
    """Replicas to have and replicas to keep [row], for quantiles `peaks` [level, row] of the coming peak in pods.

    `price` is the share of a pod that has to be used, 0-1, one for all rows or one each; the peak is known to be
    `at_least` that large. The count is the pod in which P(X > x) falls below the price, or the next one: one look at
    that pod decides.
    """
    tail = Tail.of(levels, list(np.maximum(peaks, at_least)))
    return _count(tail, price), _count(tail, KEEP * price)


def _count(tail: Tail, price: float | Floats) -> Counts:
    first = np.floor(tail.reaches(price))
    counts: Floats = np.minimum(first + (tail.used(first) > price), MAX_INT32)
    return counts.astype(np.int64)


def cut_off(measured: Floats, ready: Counts, capacity: Floats) -> Flags:
    """Return where ready pods [row] carry all they can. More is demand that is measured elsewhere, and is whole."""
    full = ready * capacity
    return (full > 0) & (np.abs(measured / np.where(full > 0, full, 1.0) - 1.0) <= AT_CAPACITY)

"""Pods worth having, lane by lane: `decisions.worth` for one target at one minute.

The count that bisection finds is the pod in which P(X > x) falls below the price, or the next one: so a single look at
that pod decides, by the very arithmetic of `all_worth_having` (a property test holds both together).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.worth import KEEP, Tail
from forecaster.demand.censored import AT_CAPACITY, BEYOND
from forecaster.replay.fast.numbers import UNKNOWN, Counts, Flags, Floats

if TYPE_CHECKING:
    from collections.abc import Sequence


class Group(NamedTuple):
    """Lanes that read one foresight at one price: their `places`, and the `rows` of their workloads.

    At one minute, `values` are [workload, level] and the others [lane]; in a block of minutes, minutes come first.
    """

    places: Counts
    rows: Counts
    levels: tuple[float, ...]
    price: float
    share: Floats
    """From an amount to pods that are full of it, headroom included."""
    values: Floats
    measured: Floats
    known: Flags
    """Where there is a forecast and a measurement."""

    def at(self, minute: int) -> Group:
        """One minute of many."""
        return self._replace(values=self.values[minute], measured=self.measured[minute], known=self.known[minute])

    def counts(self, cut_off: Flags) -> list[Counts]:
        """Pods worth adding and pods worth keeping; `UNKNOWN` without a forecast."""
        least = np.where(cut_off[self.places], self.measured * BEYOND, self.measured) * self.share
        peaks = self.values[self.rows].T * self.share
        found = worth_having(self.levels, peaks, (self.price, KEEP * self.price), at_least=least)
        return [np.where(self.known, one, UNKNOWN) for one in found]


class Worth(NamedTuple):
    """What one target asks for where it is sized by newsvendor; `in_pods` is the measured demand in pods."""

    groups: Sequence[Group]
    in_pods: Floats

    def at(self, minute: int) -> Worth:
        """One minute of many."""
        return Worth([one.at(minute) for one in self.groups], self.in_pods[minute])

    def served_by(self, now: Counts, before: Counts) -> tuple[Counts, Counts]:
        """Both counts, given the pods that are ready now and those that were a cycle ago: `demand.censored.cut_off`."""
        cut_off = self._cut_off(now) | self._cut_off(before)
        add, keep = (np.full(len(now), UNKNOWN, np.int64) for _ in range(2))
        for group in self.groups:
            add[group.places], keep[group.places] = group.counts(cut_off)
        return add, keep

    def _cut_off(self, ready: Counts) -> Flags:
        return np.asarray((ready > 0) & (np.abs(self.in_pods / np.maximum(ready, 1) - 1.0) <= AT_CAPACITY))


def worth_having(levels: Sequence[float], peaks: Floats, prices: Sequence[float], *, at_least: Floats) -> list[Counts]:
    """`all_worth_having` at each of the prices, for peaks [level, lane]; what is not known asks for anything."""
    known = np.nan_to_num(np.maximum(peaks, at_least))
    tail = Tail.of(levels, list(known))
    return [_counts(tail, price) for price in prices]


def _counts(tail: Tail, price: float) -> Counts:
    last = np.floor(tail.reaches(price))
    enough = tail.area(last) - tail.area(last + 1) <= price
    return np.where(enough, last, last + 1).astype(np.int64)

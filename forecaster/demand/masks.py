"""Training data of models: demand, not usage.

The usage of starting pods is left out. Where demand was limited, the same time of other days replaces it. Arrays are
[workload, column] in steps of five minutes, the latest last.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.demand import censored
from forecaster.demand.warm_up import without_warm_up
from forecaster.domain.signal import Signal
from forecaster.domain.window import FIVE_MINUTES
from forecaster.domain.workload import NO_RESOURCES, Workload

Floats = NDArray[np.floating]
Codes = NDArray[np.uint8]

KNOWN_DAYS = 3
"""Number of other days that must be known at a time of day before it has a usual value."""
JITTER_COLUMNS = 3
"""Columns by which the same thing may come earlier or later on another day."""


class OtherDays(NamedTuple):
    """[workload, column] of some columns; NaN where too few other days are known."""

    least: Floats
    """The lowest of the other days, a few columns around."""
    usual: Floats
    """Same weekday of the week before or after, else the median of the days."""


def other_days(values: Floats, first: int, day: int) -> OtherDays:
    """Return other days' values of the columns from `first` on; `day` is the number of columns in a day."""
    count = values.shape[1]
    columns = np.arange(first, count) + -count % day
    slots, where = np.unique(columns % day, return_inverse=True)
    low, known = _ordered(_lowest_around(values), slots, day)
    own = _folded(_lowest_around(values), day)[:, columns // day, columns % day]
    least = np.where(own <= low[:, 0, where], low[:, min(1, low.shape[1] - 1), where], low[:, 0, where])
    enough = known[:, where] - ~np.isnan(own) >= KNOWN_DAYS
    return OtherDays(np.where(enough, least, np.nan), _usual(values, first, day, slots, where))


def _usual(values: Floats, first: int, day: int, slots: NDArray[np.intp], where: NDArray[np.intp]) -> Floats:
    ordered, known = _ordered(values, slots, day)
    middle = np.take_along_axis(ordered, np.maximum(known - 1, 0)[:, None] // 2, axis=1)[:, 0]
    median = np.where(known >= KNOWN_DAYS, middle, np.nan)[:, where]
    near = np.full(median.shape, np.nan)
    for week in (7 * day, -7 * day):
        begin, end = max(first, week), min(values.shape[1], values.shape[1] + week)
        if begin < end:
            part = near[:, begin - first : end - first]
            np.copyto(part, values[:, begin - week : end - week], where=np.isnan(part))
    return np.where(np.isnan(near) | np.isnan(median), median, near)


def _ordered(values: Floats, slots: NDArray[np.intp], day: int) -> tuple[Floats, NDArray[np.intp]]:
    """[workload, day, slot] in ascending order, unknown last, and how many days are known."""
    ordered = np.sort(_folded(values, day)[:, :, slots], axis=1)
    return ordered, np.count_nonzero(~np.isnan(ordered), axis=1)


def _folded(values: Floats, day: int) -> Floats:
    """[workload, day, slot]; the latest column is the last slot of the last day."""
    padded = np.pad(values, ((0, 0), (-values.shape[1] % day, 0)), constant_values=np.nan)
    return padded.reshape(len(values), -1, day)


def _lowest_around(values: Floats) -> Floats:
    """The lowest known value within a few columns."""
    lowest = values.copy()
    for shift in range(1, JITTER_COLUMNS + 1):
        np.fmin(lowest[:, shift:], values[:, :-shift], out=lowest[:, shift:])
        np.fmin(lowest[:, :-shift], values[:, shift:], out=lowest[:, :-shift])
    return lowest


COLUMNS_A_DAY = 24 * 60 * 60 // int(FIVE_MINUTES.total_seconds())


class Masked(IntEnum):
    """Reason for not learning from a column as it was measured; of several, the largest code counts."""

    CEILING = 1
    MAXIMUM = 2
    THROTTLED = 3
    LIMIT = 4
    OUTAGE = 5

    @property
    def label(self) -> str:
        """Return the label of metrics."""
        return self.name.lower()

    @property
    def words(self) -> str:
        """Return the words of `explain`."""
        return _WORDS[self]


_WORDS = {
    Masked.CEILING: "on its own ceiling",
    Masked.MAXIMUM: "full at max replicas",
    Masked.THROTTLED: "throttled",
    Masked.LIMIT: "at the CPU limit",
    Masked.OUTAGE: "outage and return",
}


class Traits(NamedTuple):
    """Facts about each workload, all [workload]; NaN where they are not known."""

    most: Floats
    """Most replicas that its HPA allows."""
    limit: Floats
    """CPU limit of a pod."""
    capacity: Floats
    """Usage at which a pod is full: its limit, without one its request."""
    warm_up: Floats
    """Usage of a starting pod over five minutes; 0 where none is known."""
    ceiling: Floats
    """The highest value of its weeks, where it is not constant."""
    level: Floats
    """Mean of the signal."""


class CleanedPart(NamedTuple):
    """Columns to clean, the latest of a history, after `lead` columns that are only looked at."""

    usage: Floats
    pods: Floats
    throttled: NDArray[np.bool_]
    lead: int = 0


class Cleaned(NamedTuple):
    """Demand, and a `Masked` for each column in which it was not free to show, 0 elsewhere."""

    values: Floats
    why: Codes


def traits_of(signal: Signal, workloads: Sequence[Workload | None], history: Floats, warm_up: Floats) -> Traits:
    """Return the traits of workloads beside their weeks; limits and pods only where they censor the signal."""
    known = [workload if signal.limited else None for workload in workloads]
    resources = [workload.resources_of(signal) if workload else NO_RESOURCES for workload in known]
    hpas = [workload.autoscaler if workload else None for workload in known]
    limit = _amounts([stated.limit(signal.resource) for stated in resources])
    request = _amounts([stated.request(signal.resource) for stated in resources])
    most = _amounts([hpa.max_replicas if hpa else None for hpa in hpas])
    columns = np.count_nonzero(~np.isnan(history), axis=1)
    level = np.nansum(history, axis=1, dtype=np.float64) / np.maximum(columns, 1)
    return Traits(
        most=most,
        limit=limit,
        capacity=np.where(np.isnan(limit), request, limit),
        warm_up=warm_up.astype(np.float32),
        ceiling=censored.ceiling_of(history) if signal.plateau else _nothing(len(history)),
        level=level.astype(np.float32),
    )


def cleaned(part: CleanedPart, traits: Traits, history: Floats) -> Cleaned:
    """Return the columns of `part` after its lead, as demand.

    `history` ends with the same columns; its older ones show what is usual. Censored usage is replaced by the usual
    value, but never lowered; an outage is replaced by the usual value, or by a gap where there is none.
    """
    demand = _without_warm_up(part, traits)
    why = _censored(part, traits)
    rows = np.flatnonzero(why[:, part.lead :].any(axis=1) | censored.may_hold_outages(part.usage, traits.level))
    if len(rows):
        demand[rows], why[rows] = _stood_in(demand[rows], why[rows], history[rows])
    return Cleaned(demand[:, part.lead :], why[:, part.lead :])


def _without_warm_up(part: CleanedPart, traits: Traits) -> Floats:
    demand = part.usage.copy()
    rows = np.flatnonzero(traits.warm_up > 0)
    if len(rows):
        demand[rows] = without_warm_up(part.usage[rows], part.pods[rows], traits.warm_up[rows])
    return demand


def _censored(part: CleanedPart, traits: Traits) -> Codes:
    why = np.zeros(part.usage.shape, np.uint8)
    why[censored.on_ceiling(part.usage, traits.ceiling)] = Masked.CEILING
    why[censored.at_maximum(part.usage, part.pods, traits.most, traits.capacity)] = Masked.MAXIMUM
    why[part.throttled] = Masked.THROTTLED
    why[censored.at_limit(part.usage, part.pods, traits.limit)] = Masked.LIMIT
    return why


def _stood_in(demand: Floats, why: Codes, history: Floats) -> tuple[Floats, Codes]:
    """Return demand and masks of some workloads; masked columns get the usual value."""
    first = history.shape[1] - demand.shape[1]
    free = history.copy()
    free[:, first:] = np.where(why > 0, np.nan, demand)
    least, usual = other_days(free, first, COLUMNS_A_DAY)
    why[censored.outages(demand, least, usual)] = Masked.OUTAGE
    instead = np.where(why == Masked.OUTAGE, usual, np.fmax(demand, usual))
    return np.where(why > 0, instead, demand).astype(demand.dtype), why


def _amounts(values: Sequence[float | None]) -> Floats:
    """[workload] amounts, NaN without one. A limit or request of 0 is none: such a pod is not always full."""
    return np.array([value or np.nan for value in values], np.float32)


def _nothing(count: int) -> Floats:
    return np.full(count, np.nan, np.float32)

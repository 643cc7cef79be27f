"""What models learn from: demand, not usage.

What pods use to start is left out. Where demand was not free to show, the same time of other days stands in for it.
Arrays are [workload, column] by five minutes, newest last.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.demand import censored
from forecaster.demand.usual import other_days
from forecaster.demand.warm_up import without_warm_up
from forecaster.domain.signal import Signal
from forecaster.domain.window import FIVE_MINUTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecaster.domain.workload import Workload

    Floats = NDArray[np.floating]
    Codes = NDArray[np.uint8]

DAY = 24 * 60 * 60 // int(FIVE_MINUTES.total_seconds())


class Masked(IntEnum):
    """Why a column is not learned from as it was measured; of several reasons the largest counts."""

    CEILING = 1
    MAXIMUM = 2
    THROTTLED = 3
    LIMIT = 4
    OUTAGE = 5

    @property
    def label(self) -> str:
        """As metrics name it."""
        return self.name.lower()

    @property
    def words(self) -> str:
        """As `explain` says it."""
        return _WORDS[self]


_WORDS = {
    Masked.CEILING: "on its own ceiling",
    Masked.MAXIMUM: "full at max replicas",
    Masked.THROTTLED: "throttled",
    Masked.LIMIT: "at the CPU limit",
    Masked.OUTAGE: "outage and return",
}


class Traits(NamedTuple):
    """What is known of each workload, all [workload]; NaN where it is not."""

    most: Floats
    """Most replicas that its HPA allows."""
    limit: Floats
    """CPU limit of a pod."""
    capacity: Floats
    """Usage at which a pod is full: its limit, without one its request."""
    warm_up: Floats
    """What a pod uses to start, over five minutes; 0 where nothing is known of it."""
    ceiling: Floats
    """The highest value of its weeks, where it is not constant."""
    level: Floats
    """Its mean."""


class Part(NamedTuple):
    """Columns to clean, the newest of a history, after `lead` columns that are only looked at."""

    usage: Floats
    pods: Floats
    throttled: NDArray[np.bool_]
    lead: int = 0


class Cleaned(NamedTuple):
    """Demand, and a `Masked` for each column in which it was not free to show, 0 elsewhere."""

    values: Floats
    why: Codes


def traits_of(signal: Signal, workloads: Sequence[Workload | None], history: Floats, warm_up: Floats) -> Traits:
    """Of workloads beside their weeks. Only CPU is held down by limits, throttling and the number of pods."""
    known = [one if signal is Signal.CPU else None for one in workloads]
    limit = _amounts([one.resources.cpu_limit if one else None for one in known])
    request = _amounts([one.resources.cpu_request if one else None for one in known])
    most = _amounts([one.autoscaler.max_replicas if one and one.autoscaler else None for one in known])
    columns = np.count_nonzero(~np.isnan(history), axis=1)
    level = np.nansum(history, axis=1, dtype=np.float64) / np.maximum(columns, 1)
    return Traits(
        most=most,
        limit=limit,
        capacity=np.where(np.isnan(limit), request, limit),
        warm_up=warm_up.astype(np.float32),
        ceiling=_nothing(len(history)) if signal is Signal.MEMORY else censored.ceiling_of(history),
        level=level.astype(np.float32),
    )


def cleaned(part: Part, traits: Traits, history: Floats) -> Cleaned:
    """The columns of `part` after its lead, as demand.

    `history` ends with the same columns; what is older there tells what is usual. Usage that was held down becomes
    what is usual, at least what was measured; an outage becomes what is usual, and a gap where nothing is.
    """
    demand = _without_warm_up(part, traits)
    why = _held_down(part, traits)
    rows = np.flatnonzero(why[:, part.lead :].any(axis=1) | censored.may_hold_outages(part.usage, traits.level))
    if len(rows):
        demand[rows], why[rows] = _stood_in(demand[rows], why[rows], history[rows])
    return Cleaned(demand[:, part.lead :], why[:, part.lead :])


def _without_warm_up(part: Part, traits: Traits) -> Floats:
    demand = part.usage.copy()
    rows = np.flatnonzero(traits.warm_up > 0)
    if len(rows):
        demand[rows] = without_warm_up(part.usage[rows], part.pods[rows], traits.warm_up[rows])
    return demand


def _held_down(part: Part, traits: Traits) -> Codes:
    why = np.zeros(part.usage.shape, np.uint8)
    why[censored.on_ceiling(part.usage, traits.ceiling)] = Masked.CEILING
    why[censored.at_maximum(part.usage, part.pods, traits.most, traits.capacity)] = Masked.MAXIMUM
    why[part.throttled] = Masked.THROTTLED
    why[censored.at_limit(part.usage, part.pods, traits.limit)] = Masked.LIMIT
    return why


def _stood_in(demand: Floats, why: Codes, history: Floats) -> tuple[Floats, Codes]:
    """Some workloads, whose masked columns take what is usual."""
    first = history.shape[1] - demand.shape[1]
    free = history.copy()
    free[:, first:] = np.where(why > 0, np.nan, demand)
    least, usual = other_days(free, first, DAY)
    why[censored.outages(demand, least, usual)] = Masked.OUTAGE
    instead = np.where(why == Masked.OUTAGE, usual, np.fmax(demand, usual))
    return np.where(why > 0, instead, demand).astype(demand.dtype), why


def _amounts(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float32)


def _nothing(count: int) -> Floats:
    return np.full(count, np.nan, np.float32)

"""Why a container's memory is what it is, because that says what it will be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.vertical.sizing.panel import PastDays

    Doubles = NDArray[np.float64]
    Flags = NDArray[np.bool_]

LEAST_DAYS_RISING = 3
LEAST_GROWTH_A_DAY = 0.005
LEAST_GROWTH = 0.05
"""Three days of lows that rise by half a percent each, and five percent in all: noise of flat series stays below."""
FULL, BEYOND = 0.95, 1.02
"""Full is from 95 % of the limit on. Peaks beyond the limit are no cache's: the limit was another then."""
DAYS_OF_LOAD = 5
LEAST_CORRELATION = 0.8


class Mechanism(IntEnum):
    """What drives the memory of a container."""

    STEADY = 0
    LEAK = 1
    """The lows rise day by day since the last restart."""
    CACHE = 2
    """The container fills its limit and is not killed for it: usage says nothing about need."""
    LOAD = 3
    """The daily peaks go with those of the CPU."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaks:
    """[row] whether the memory leaks, by how much a day, and for how many days it has been."""

    leaks: Flags
    slope: Doubles
    days: Doubles


@dataclass(frozen=True, slots=True, eq=False)
class LoadShare:
    """[row] whether peaks of memory follow those of the CPU, and bytes per core."""

    follows: Flags
    bytes_per_core: Doubles


def leaks_of(memory: PastDays) -> Leaks:
    """Detect leaks from the daily lows, back from the latest day to the last that was not below its successor."""
    lows = memory.troughs()
    newer, older = lows[:, :-1], lows[:, 1:]
    rising = newer > older * (1 + LEAST_GROWTH_A_DAY)
    run = np.argmin(np.column_stack([rising, np.zeros(len(lows), bool)]), axis=1)
    first = np.take_along_axis(lows, run[:, None], axis=1)[:, 0]
    grown = lows[:, 0] - first
    leaks = (run >= LEAST_DAYS_RISING) & (grown >= LEAST_GROWTH * first)
    return Leaks(leaks, np.where(leaks, grown / np.maximum(run, 1), 0.0), run.astype(np.float64))


def fills_limit(peaks: Doubles, weights: Doubles, limit: Doubles, oom_floor: Doubles) -> Flags:
    """Whether most days reach the limit, without an OOM kill."""
    with np.errstate(invalid="ignore"):
        full = (peaks >= FULL * limit[:, None]) & (peaks <= BEYOND * limit[:, None]) & (weights > 0)
    share = np.where(full, weights, 0.0).sum(axis=1)
    return np.asarray((share > 1 / 2) & (oom_floor == 0))


def load_share(memory: Doubles, cpu: Doubles, weights: Doubles) -> LoadShare:
    """Fit memory to load by daily peaks of both [row, day] and the days' weights."""
    known = (weights > 0) & ~np.isnan(memory) & ~np.isnan(cpu)
    count = known.sum(axis=1)
    of_cpu, of_memory = (_centred(values, known, count) for values in (cpu, memory))
    both, own = (of_cpu * of_memory).sum(axis=1), (of_cpu**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = both / np.sqrt(own * (of_memory**2).sum(axis=1))
        slope = both / own
    follows = (count >= DAYS_OF_LOAD) & (correlation >= LEAST_CORRELATION)
    return LoadShare(follows, np.where(follows, slope, 0.0))


def _centred(values: Doubles, known: Flags, count: NDArray[np.intp]) -> Doubles:
    kept = np.where(known, values, 0.0)
    mean = kept.sum(axis=1) / np.maximum(count, 1)
    return np.where(known, kept - mean[:, None], 0.0)

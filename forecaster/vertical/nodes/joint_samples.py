"""Joint forecasts: samples that keep each workload's quantiles and the way workloads moved together in the past.

Adding the 95 % quantiles of a hundred workloads gives a number that is exceeded far less often than in one of twenty
cases, unless all of them peak together; adding means and variances assumes that they never do. Here each workload's
quantiles are reordered by the ranks that its own past deviations had beside those of the others (the empirical copula,
"Schaake shuffle": Clark et al. 2004, J. Hydrometeorology 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

DAYS_COMPARED = 2
"""A block is compared with the same time of other days."""
FEWEST_SAMPLES = 40
"""Fewest past blocks: with less the 95 % quantile of a sum would rest on one or two of them."""


@dataclass(frozen=True, slots=True, eq=False)
class DemandWindow:
    """Samples of the largest demand of every workload between two instants, joint over workloads.

    `cpu` and `memory` are [workload, sample] totals in cores and bytes, rows as in `workloads`.
    """

    begin: datetime
    until: datetime
    workloads: tuple[str, ...]
    cpu: Floats
    memory: Floats
    dependence_known: bool = True

    rows: Mapping[str, int] = field(init=False, repr=False)
    """Row of each workload; absent where there is no forecast."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", {workload: i for i, workload in enumerate(self.workloads)})


@dataclass(frozen=True, slots=True, eq=False)
class JointSum:
    """One quantile of a sum, and its values under the two extremes of dependence."""

    value: float
    independent: float
    together: float
    """If all of them were high at the same time: the sum of the quantiles."""
    samples: int
    """Past blocks behind the dependence; 0: unknown, so `value` is `together`."""

    @property
    def dependence(self) -> float:
        """0 where the sum is as if independent, 1 where all peak together."""
        span = self.together - self.independent
        return min(max((self.value - self.independent) / span, 0.0), 1.0) if span > 0 else 1.0


def past_ranks(history: Floats, day: int, block: int) -> Floats:
    """[workload, sample] in (0, 1): how high each block of the past was for its time of day.

    `history` is [workload, time] on a regular grid, NaN where unknown; `day` and `block` are lengths in bins. A block's
    peak is divided by the mean peak of the same time of day, so that a season that all share is no dependence. Blocks
    that are unknown for all drop out; a workload that is unknown in a block takes the mean rank of the others.
    """
    days = history.shape[1] // day
    blocks = day // block
    if days < DAYS_COMPARED or not blocks:
        return np.empty((history.shape[0], 0))
    latest = history[:, history.shape[1] - days * day :]
    cut = latest.reshape(history.shape[0], days, day)[:, :, : blocks * block]
    peaks = np.fmax.reduce(cut.reshape(history.shape[0], days, blocks, block), axis=-1)
    usual = _mean(peaks, axis=1)[:, None, :]
    ratios = np.divide(peaks, usual, out=np.full_like(peaks, np.nan), where=usual > 0)
    ratios = ratios.reshape(history.shape[0], days * blocks)
    return _filled(_ranks(ratios[:, ~np.isnan(ratios).all(axis=0)]))


def _mean(values: Floats, axis: int) -> Floats:
    counts = (~np.isnan(values)).sum(axis=axis)
    sums = np.nansum(values, axis=axis)
    means: Floats = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means


def _ranks(values: Floats) -> Floats:
    """Ranks of each row among its known values, in (0, 1); NaN stays."""
    order = np.argsort(np.argsort(values, axis=1, kind="stable"), axis=1, kind="stable")
    known = (~np.isnan(values)).sum(axis=1, keepdims=True)
    ranks: Floats = (order + 0.5) / np.maximum(known, 1)
    return np.where(np.isnan(values), np.nan, ranks)


def equal_ranks(workloads: int, size: int = 200) -> Floats:
    """Return ranks of workloads that are all high at the same time: the assumption where the past is too short."""
    return np.tile((np.arange(size) + 0.5) / size, (workloads, 1))


def _filled(ranks: Floats) -> Floats:
    """A workload that is unknown in a block is taken to move with the others."""
    others = _mean(ranks, axis=0)
    return np.where(np.isnan(ranks), others[None, :], ranks)


def samples(levels: Sequence[float], quantiles: Floats, ranks: Floats) -> Floats:
    """[workload, sample]: each workload's quantile function at its ranks.

    `quantiles` is [workload, level]. Beyond the outermost levels the outermost values stand.
    """
    drawn = [np.interp(rank, levels, row) for rank, row in zip(ranks, quantiles, strict=True)]
    return np.array(drawn) if drawn else np.empty((0, ranks.shape[1]))


def sum_of(amounts: Floats, quantile: float, generator: np.random.Generator, *, known: bool = True) -> JointSum:
    """Return a quantile of the sum of [workload, sample].

    `known` is false where the past is too short to show the dependence; then all workloads are assumed to be high
    together.
    """
    together = float(np.quantile(amounts, quantile, axis=1).sum()) if amounts.size else 0.0
    independent = float(np.quantile(generator.permuted(amounts, axis=1).sum(axis=0), quantile)) if amounts.size else 0.0
    value = float(np.quantile(amounts.sum(axis=0), quantile)) if amounts.size and known else together
    return JointSum(value, min(independent, together), together, amounts.shape[1] if known else 0)

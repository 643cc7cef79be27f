"""Aggregation: how much each of several experts counts, learned online from what came true, with a guarantee.

An expert is whatever gives quantiles. With the loss of an origin in units of what the series usually changes,

    regret[k] = sum of (loss of the mixture - loss of expert k)
    energy[k] = sum of the squares of the same
    rate[k]   = sqrt(log(1 / first[k]) / (2 · energy[k]))
    weight[k] ~ first[k] · exp(rate[k] · regret[k])

for each series, reach and level apart. Exponential weights with a rate that tunes itself to each expert (second-order
regret: Gaillard, Stoltz and van Erven 2014; Wintenberger 2017; on quantiles: Berrisch and Ziel 2023). Quantiles are
averaged and pinball loss is convex, so the mixture loses no more than the weighted mean of its experts, and its regret
against each grows as the square root of the number of origins while the loss grows as that number.

An expert that says nothing (NaN) at an origin sleeps: the others speak in its place, and nothing is learned of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .panel import Floats

# Differences of a millionth of the usual change are none.
LEAST_ENERGY = 1e-12


class ExpertStanding(NamedTuple):
    """What is known of the experts: both [..., level, expert]."""

    regret: Floats
    energy: Floats

    @classmethod
    def none(cls, *shape: int) -> ExpertStanding:
        """Before the first origin."""
        return cls(np.zeros(shape), np.zeros(shape))

    @classmethod
    def stacked(cls, parts: Sequence[ExpertStanding]) -> ExpertStanding:
        """One below the other."""
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def of(
        self, rows: int | slice | npt.NDArray[np.intp] | tuple[slice | npt.NDArray[np.intp] | int, ...]
    ) -> ExpertStanding:
        """A part of it."""
        return ExpertStanding(self.regret[rows], self.energy[rows])

    def weights(self, first: Floats) -> Floats:
        """[..., level, expert], positive, summing to 1; `first` [expert] before anything is known."""
        score = np.log(first) + np.sqrt(-np.log(first) / (2 * self.energy + LEAST_ENERGY)) * self.regret
        share = np.exp(score - score.max(axis=-1, keepdims=True))
        return np.asarray(share / share.sum(axis=-1, keepdims=True))

    def after(self, actual: Floats, said: Floats, first: Floats, levels: Sequence[float]) -> ExpertStanding:
        """After some origins: actual [..., origin, window] and said [..., origin, window, level, expert], comparable.

        Origins are in the order in which they matured. The windows of one origin overlap, so they are one observation:
        their mean.
        """
        at = np.asarray(levels, dtype=said.dtype)
        each = _lost(actual[..., None, None], said, at[:, None])
        standing = self
        for nth in range(actual.shape[-2]):
            came, spoken = actual[..., nth, :], said[..., nth, :, :, :]
            weights = standing.weights(first).astype(said.dtype)
            lost = _lost(came[..., None], mixed(spoken, weights[..., None, :, :]), at)
            gained = np.nan_to_num(lost[..., None] - each[..., nth, :, :, :]).mean(axis=-3)
            standing = ExpertStanding(standing.regret + gained, standing.energy + gained**2)
        return standing


def _lost(actual: Floats, quantiles: Floats, levels: Floats) -> Floats:
    """Return the pinball loss of quantiles with levels along the axis that `levels` broadcasts to."""
    missing = actual - quantiles
    return np.asarray(np.maximum(levels * missing, (levels - 1) * missing))


def mixed(said: Floats, weights: Floats) -> Floats:
    """[...] of said [..., expert]: the mean of those that speak, NaN where none does."""
    speaks = np.isfinite(said)
    parts = np.where(speaks, weights, 0.0)
    total = np.vecdot(parts, np.ones(parts.shape[-1], parts.dtype))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.vecdot(np.where(speaks, said, 0.0), parts) / total)

"""Experts: forecasts by the prior, the ridge, yesterday and last week, now and at past origins.

Quantiles are those of TRAINING_LEVELS; NaN where an expert cannot speak. Yesterday and last week are that window a day
and a week ago, with the spread that this had at the replayed origins, so that load that repeats itself is forecast as
exactly as it repeats itself.

How much each expert counts is learned online from what came true, with a guarantee. With the loss of an origin in
units of what the series usually changes,

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

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .backtest import ahead_of
from .forecast import StepWindow
from .panel import DAY, Floats
from .prior import NEAR_BINS, TRAINING_LEVELS, views_at
from .ridge import Equations, ridge_peaks_at
from .shift import Shifts
from .spread import error_table, read_table
from .trailing import Origins

# Differences of a millionth of the usual change are none.
MIN_ENERGY = 1e-12


class ExpertLosses(NamedTuple):
    """Losses of the experts on past origins: both float32 [..., level, expert]."""

    regret: Floats
    energy: Floats

    @classmethod
    def none(cls, *shape: int) -> ExpertLosses:
        """Return the losses before the first origin."""
        return cls(np.zeros(shape, np.float32), np.zeros(shape, np.float32))

    @classmethod
    def stacked(cls, parts: Sequence[ExpertLosses]) -> ExpertLosses:
        """Stack the parts."""
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def of(
        self, rows: int | slice | npt.NDArray[np.intp] | tuple[slice | npt.NDArray[np.intp] | int, ...]
    ) -> ExpertLosses:
        """Return a part of it."""
        return ExpertLosses(self.regret[rows], self.energy[rows])

    def weights(self, first: Floats) -> Floats:
        """[..., level, expert], positive, summing to 1; `first` [..., expert] before anything is known."""
        score = np.log(first) + np.sqrt(-np.log(first) / (2 * self.energy + MIN_ENERGY)) * self.regret
        share = np.exp(score - score.max(axis=-1, keepdims=True))
        return np.asarray(share / share.sum(axis=-1, keepdims=True))

    def after(self, actual: Floats, forecasts: Floats, first: Floats, levels: Sequence[float]) -> ExpertLosses:
        """Losses after origins: actual [..., origin, window] and forecasts [..., origin, window, level, expert].

        Origins are in the order in which they matured. The windows of one origin overlap, so they are one observation:
        their mean.
        """
        at = np.asarray(levels, dtype=forecasts.dtype)
        each = _lost(actual[..., None, None], forecasts, at[:, None])
        losses = self
        for nth in range(actual.shape[-2]):
            came, spoken = actual[..., nth, :], forecasts[..., nth, :, :, :]
            weights = losses.weights(first).astype(forecasts.dtype)
            lost = _lost(came[..., None], mixed(spoken, weights[..., None, :, :]), at)
            gained = lost[..., None] - each[..., nth, :, :, :]
            gained[np.isnan(gained)] = 0.0  # in place: `nan_to_num` took 5 % of a fit more
            gained = gained.mean(axis=-3)
            losses = ExpertLosses(losses.regret + gained, losses.energy + gained**2)
        return losses


def _lost(actual: Floats, quantiles: Floats, levels: Floats) -> Floats:
    """Return the pinball loss of quantiles with levels along the axis that `levels` broadcasts to."""
    missing = actual - quantiles
    return np.asarray(np.maximum(levels * missing, (levels - 1) * missing))


def mixed(forecasts: Floats, weights: Floats) -> Floats:
    """[...] mean of forecasts [..., expert] that are not NaN; NaN where all are."""
    speaks = np.isfinite(forecasts)
    parts = np.where(speaks, weights, 0.0)
    total = np.vecdot(parts, np.ones(parts.shape[-1], parts.dtype))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.vecdot(np.where(speaks, forecasts, 0.0), parts) / total)


PERIODS = (DAY, 7 * DAY)
# Windows of which one is learned: single near steps, near peaks, all that lies further ahead.
ONE, PEAK, FAR = range(3)
REACHES = FAR + 1
# [reach, expert] how much prior, ridge, yesterday and last week count before anything is known of a series; far ahead
# the prior most, because equations end there and the far networks know what followed on similar moments.
FIRST = np.array([[0.75, 0.2, 0.025, 0.025], [0.75, 0.2, 0.025, 0.025], [0.9, 0.08, 0.01, 0.01]])
MEDIAN = TRAINING_LEVELS.index(0.5)


def reach_of(window: StepWindow) -> int:
    """Return the reach of origins that are comparable with a window."""
    if window.last > NEAR_BINS:
        return FAR
    return ONE if window.steps == 1 else PEAK


class LearnedExperts(NamedTuple):
    """Learned values of the experts.

    Attributes:
        equations: of the ridge, of history at the level of today.
        shifted: that level.
        spread: float32 [series, reach, period, level] quantiles of the change over a period, NaN where there was none.
    """

    equations: Equations
    shifted: Shifts
    spread: Floats

    def of(self, rows: slice | npt.NDArray[np.intp]) -> LearnedExperts:
        """Return the experts of some series."""
        return LearnedExperts(self.equations.of(rows), self.shifted.of(rows), self.spread[rows])

    @classmethod
    def stacked(cls, parts: Sequence[LearnedExperts], step: timedelta) -> LearnedExperts | None:
        """Join the experts of all series, None where their pasts differ in length."""
        equations = Equations.stacked([part.equations for part in parts])
        if equations is None:
            return None
        shifted = Shifts.stacked([part.shifted for part in parts], step)
        return cls(equations, shifted, np.concatenate([part.spread for part in parts]))


class Past(NamedTuple):
    """Series as they are looked back at.

    Attributes:
        values: gapless [series, time] in units of their mean.
        unit: [series] that mean.
        level: gapless [series, time] at the level of today, in the unit of the panel.
        since: [series] the first bin of that level.
        day: bins of a day.
    """

    values: Floats
    unit: Floats
    level: Floats
    since: npt.NDArray[np.intp]
    day: int


class Replayed(NamedTuple):
    """Actual values and forecasts at past origins, [series, origin, window], in units of the usual change over a day.

    `forecasts` is [series, origin, window, level, expert].
    """

    actual: Floats
    forecasts: Floats


# What is further away than this many units is as far: squares of more, summed, would not fit into a float32.
MAX_LOSS = 1e15


def in_units(values: Floats, unit: Floats) -> Floats:
    """Values divided by a unit that broadcasts, however small it is."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(values / unit, -MAX_LOSS, MAX_LOSS))


def replayed(
    past: Past, learned: LearnedExperts, origins: Origins, windows: Sequence[StepWindow], *, similar: bool
) -> Replayed:
    """Return each expert's forecasts at past origins; one network for all, because their errors are alike.

    The ridge has learned from these days, so it is judged a little too well. It is judged as it forecasts, within reach
    of the prior; its forecasts before a shift of level are not comparable.
    """
    views = views_at(past.values, origins, windows, past.day, similar=similar, replayed=True)
    prior = views.in_units()
    unit = np.where(past.unit > 0, past.unit, 1.0)[:, None, None, None]
    ridge = ridge_peaks_at(past.level, learned.equations, origins, windows, TRAINING_LEVELS)
    ridge = within_reach(in_units(ridge, unit), prior)
    ridge[origins < past.since[:, None]] = np.nan
    spread = in_units(learned.spread, unit)
    kinds = [reach_of(window) for window in windows]
    ago = [
        a_period_ago(past.values, origins, windows, bins)[..., None] + spread[:, None, kinds, nth]
        for nth, bins in enumerate((past.day, 7 * past.day))
    ]
    forecasts = np.stack([prior, ridge, *ago], axis=-1)
    scale = views.situation.scale
    actual = ahead_of(past.values, origins, windows)
    return Replayed(in_units(actual, scale[:, :, None]), in_units(forecasts, scale[:, :, None, None, None]))


def within_reach(ridge: Floats, prior: Floats, axis: int = -1) -> Floats:
    """The ridge no further from the prior than the prior's own range, levels along `axis`.

    Equations extrapolate: after a shift of level by a factor of fourteen one of them expected eighteen times what came.
    """
    reach = np.take(prior, [-1], axis=axis) - np.take(prior, [0], axis=axis)
    return np.asarray(np.clip(ridge, prior - reach, prior + reach))


def a_period_ago(values: Floats, origins: Origins, windows: Sequence[StepWindow], bins: int) -> Floats:
    """[series, origin, window] largest value of each window `bins` ago, NaN before the record."""
    largest = np.full((len(values), len(origins), len(windows)), np.nan)
    known = np.flatnonzero(origins + 1 >= bins)
    if len(known):
        largest[:, known] = ahead_of(values, origins[known] - bins, windows)
    return largest


def change_of_periods(past: Past, origins: Origins, windows: Sequence[StepWindow]) -> Floats:
    """[series, period, level] quantiles of the change over each period at past origins; the median is left at 0."""
    came = ahead_of(past.values, origins, windows)
    spreads = []
    for bins in (past.day, 7 * past.day):
        change = came - a_period_ago(past.values, origins, windows, bins)
        known = change[:, np.isfinite(change).all(axis=(0, 2))].reshape(len(change), -1)
        spread = read_table(error_table(known), TRAINING_LEVELS)
        spreads.append(spread if known.shape[1] else np.full_like(spread, np.nan))
    quantiles = np.stack(spreads, axis=1)
    quantiles[:, :, MEDIAN] *= 0
    return np.asarray(quantiles * past.unit[:, None, None])

"""The prior: networks trained on recorded load that ship with the package, and the model that uses them as they are.

`prior.npz` holds plain arrays only; `python -m benchmarks.train_prior` makes it again. It has seen the first 60 % of
each recorded series and no unit, name or clock: only shapes. `similar.npz` holds networks of the same kind that are
told, beside all that, what followed on similar moments of the series' own past (`similar.py`). They forecast all but
peaks within the next quarter of an hour, and in the model `analog` these, too.

Each is a small network in plain numpy, from a situation and a window ahead to quantiles:

hidden = leaky(context · C + window · W + b)        the context is multiplied once per origin, not per window
hidden = leaky(hidden · H + b)
quantiles = hidden · Q + b, sorted
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .clean import bins_seen, bins_silent, filled
from .fitted import FittedRule
from .forecast import StepWindow
from .panel import DAY, Floats, Panel
from .situation import OriginSituation, past_windows, situation_at
from .spread import read_table
from .trailing import Origins, equal_shares

TRAINING_LEVELS = (0.05, 0.25, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)
"""Quantile levels that the shipped networks answer."""
LEAK = np.float32(0.01)
# Inputs further out than this many standard deviations are alike; nothing extrapolates.
INPUT_REACH = np.float32(6)
# Windows looked at together: a layer of as many is half a megabyte.
ROWS_AT_ONCE = 768


class Network(NamedTuple):
    """Float32 weights, and the mean and spread of inputs."""

    context: Floats
    window: Floats
    bias: Floats
    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: Floats
    context_mean: Floats
    context_spread: Floats
    window_mean: Floats
    window_spread: Floats


def quantiles(network: Network, context: Floats, window: Floats) -> Floats:
    """[origin, window, level] for context [origin, feature] and windows [origin, window, feature].

    Block by block of origins: what lies between the layers stays near the processor, in half of the time.
    """
    first = standard(context, network.context_mean, network.context_spread) @ network.context + network.bias
    out = np.empty((*window.shape[:2], len(network.out_bias)), np.result_type(first, window))
    origins = max(1, ROWS_AT_ONCE // max(1, window.shape[1]))
    for block in (slice(i, i + origins) for i in range(0, len(window), origins)):
        out[block] = _further(network, first[block], window[block])
    return out


def _further(network: Network, first: Floats, window: Floats) -> Floats:
    """Apply the layers to a few origins; sums are added in place, as new arrays would cost time.

    All windows are rows of one matrix: a product of many small ones takes a third longer where windows are few.
    """
    hidden = standard(window.reshape(-1, window.shape[-1]), network.window_mean, network.window_spread) @ network.window
    by_origin = hidden.reshape(*window.shape[:2], -1)
    by_origin += first[:, None, :]
    deep = leaky(hidden) @ network.hidden
    deep += network.hidden_bias
    out = leaky(deep) @ network.out
    out += network.out_bias
    out.sort(axis=-1)
    return np.asarray(out.reshape(*window.shape[:2], -1))


def standard(inputs: Floats, mean: Floats, spread: Floats) -> Floats:
    """Centred, scaled and cut off inputs."""
    scaled = inputs - mean
    scaled /= spread
    return np.asarray(np.clip(scaled, -INPUT_REACH, INPUT_REACH, out=scaled))


def leaky(value: Floats) -> Floats:
    """Return the value, or a hundredth of it below 0."""
    low = LEAK * value
    return np.asarray(np.maximum(value, low, out=low))


# The near networks know windows that end within fifteen steps, the far ones within a day: few cycles ask for those.
NEAR_BINS = 15
# Peaks within a quarter of an hour are forecast by the networks that look for no similar moments, in half of the time:
# each cycle asks for these, and there they served better live.
QUARTERS_A_DAY = 96
# Fewer bins than this have no shape; series younger than eight days are looked at in groups of about the same age.
MIN_BINS, GROWN_DAYS, AGE_RATIO = 3, 8, 1.08
# Series looked at together: enough that calls on arrays cost little, few enough that memory stays bounded.
PRIOR_ROWS = 512


class Views(NamedTuple):
    """Squashed quantiles [series, origin, window, level] of the prior, and their reference values."""

    situation: OriginSituation
    squashed: Floats

    def in_units(self) -> Floats:
        """[series, origin, window, level] in the unit of the series."""
        scale, level = self.situation.scale, self.situation.level
        return np.asarray(np.sinh(self.squashed) * scale[:, :, None, None] + level[:, :, None, None])


Nothing: TypeAlias = tuple[()]
"""State of a model that learns nothing."""


@dataclass(frozen=True)
class Prior:
    """Forecast learned from recorded load, without learning from this series; needs three bins.

    Steps and windows may reach a day ahead.

    Attributes:
        similar: whether the networks that read similar moments forecast peaks of the next quarter of an hour, too.
    """

    similar: bool = False
    name: str = "prior"

    def fit(self, panel: Panel) -> FittedRule[Nothing]:
        """Learn nothing."""
        return FittedRule(self, panel, ())

    def stacked(self, learned: Sequence[Nothing], step: timedelta) -> Nothing:  # noqa: ARG002  no learning
        """Return the learned state of the series of several panels."""
        return ()

    def part(self, learned: Nothing, rows: slice | npt.NDArray[np.intp]) -> Nothing:  # noqa: ARG002  as above
        """Return the learned state of some of the series."""
        return learned

    def reach(self, history: Panel) -> int:
        """Steps of a day."""
        return history.bins(DAY)

    def paths(self, history: Panel, learned: Nothing, steps: int, levels: Sequence[float]) -> Floats:  # noqa: ARG002  no learning
        """[series, quantile, step], NaN for series with fewer than three bins and for steps beyond a day."""
        windows = [StepWindow(step, step) for step in range(1, steps + 1)]
        return answers(history, windows, levels, similar=True)

    def peaks(self, history: Panel, learned: Nothing, window: StepWindow, levels: Sequence[float]) -> Floats:  # noqa: ARG002  as above
        """[series, quantile] of the largest value of the window."""
        return answers(history, [window], levels, similar=self.similar)[:, :, 0]


def answers(history: Panel, windows: Sequence[StepWindow], levels: Sequence[float], *, similar: bool = False) -> Floats:
    """[series, quantile, window] in the unit of the panel, group by group of series of about the same age."""
    out = np.full((len(history), len(levels), len(windows)), np.nan)
    day = history.bins(DAY)
    if day and max(window.last for window in windows) <= day:
        for rows, values, unit in alike(history, (GROWN_DAYS + 1) * day):
            views = views_at(values, np.array([values.shape[1] - 1]), windows, day, similar=similar)
            table = views.in_units()[:, 0].swapaxes(1, 2)
            peaks = table if levels == TRAINING_LEVELS else read_table(table, levels, TRAINING_LEVELS)
            out[rows] = peaks * unit[:, None, None]
    return out


def views_at(
    values: Floats,
    origins: Origins,
    windows: Sequence[StepWindow],
    day: int,
    *,
    similar: bool = False,
    replayed: bool = False,
) -> Views:
    """The prior's view of windows ahead of origins of gapless values [series, time], each by the networks of its reach.

    `similar` asks the networks that read similar moments for the next quarter of an hour, too. Many origins are
    `replayed` by one network of each kind, near peaks by one that looks for no similar moments: their errors are
    alike, and so a fit costs little.
    """
    situation = situation_at(values, origins, day)
    soon = 0 if similar else NEAR_BINS if replayed else day // QUARTERS_A_DAY
    searches = [window.last > soon or (replayed and window.steps == 1) for window in windows]
    kinds = list(zip(searches, ("near" if window.last <= NEAR_BINS else "far" for window in windows), strict=True))
    squashed = np.empty((*situation.level.shape, len(windows), len(TRAINING_LEVELS)))
    for searched, reach in dict.fromkeys(kinds):
        at = [place for place, kind in enumerate(kinds) if kind == (searched, reach)]
        averaged = networks(similar=searched)[reach][: 1 if replayed else None]
        part, ahead = [windows[place] for place in at], NEAR_BINS if reach == "near" else day
        context, features = inputs(situation, part, ahead, similar=searched)
        context = context.reshape(-1, context.shape[-1])
        flat = features.reshape(len(context), *features.shape[2:])
        mean = np.mean([quantiles(network, context, flat) for network in averaged], axis=0, dtype=np.float64)
        squashed[:, :, at] = mean.reshape(*squashed.shape[:2], len(at), -1)
    return Views(situation, squashed)


def inputs(
    situation: OriginSituation, windows: Sequence[StepWindow], ahead: int, *, similar: bool = False
) -> tuple[Floats, Floats]:
    """[series, origin, feature] and [series, origin, window, feature] that networks read about windows.

    With `similar`, also what followed on moments that were similar, `ahead` bins ago at least.
    """
    windowed = past_windows(situation, windows)
    if not similar:
        return situation.context, windowed
    from .similar import followed, similar_moments  # noqa: PLC0415  a steady cycle does without

    moments = similar_moments(situation, ahead)
    context = np.concatenate([situation.context, moments.context], axis=-1)
    return context, np.concatenate([windowed, followed(situation, moments, windows)], axis=-1)


def alike(history: Panel, width: int, most: int = PRIOR_ROWS) -> Iterator[tuple[npt.NDArray[np.intp], Floats, Floats]]:
    """Rows of series of about the same age, their latest values and the unit of these, at most so many at a time.

    Values are gapless float32 [series, time] in units [series] of their own mean, so that none is too large or small.
    """
    observed = bins_seen(history.values)
    ages = _rounded(observed, GROWN_DAYS * history.bins(DAY))
    # Rounding must not cut off the only samples of a series that has been silent since.
    ages = np.where(bins_silent(history.values) >= ages, observed, ages)
    for age in np.unique(ages[ages >= MIN_BINS]).tolist():
        rows = np.flatnonzero(ages == age)
        known = min(width, history.length) if age >= GROWN_DAYS * history.bins(DAY) else age
        latest = history.values[:, history.length - known :]
        for part in np.array_split(rows, -(-len(rows) // most)):
            neighbours = part[-1] - part[0] == len(part) - 1
            yield part, *in_own_unit(latest[part[0] : part[-1] + 1] if neighbours else latest[part])


@cache
def networks(*, similar: bool = False) -> dict[str, tuple[Network, ...]]:
    """The shipped networks by reach: those that read similar moments, or those that do not, of which none is far."""
    weights = files(__package__).joinpath("similar.npz" if similar else "prior.npz")
    with weights.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        members = sorted({tuple(name.split("/")[:2]) for name in arrays.files})
        made = [
            (reach, Network(*(arrays[f"{reach}/{seed}/{name}"] for name in Network._fields))) for reach, seed in members
        ]
    return {reach: tuple(network for name, network in made if name == reach) for reach in ("near", "far")}


def in_own_unit(values: Floats) -> tuple[Floats, Floats]:
    """Float32 values [series, time] without gaps, divided by their mean, and that mean [series]."""
    shares = equal_shares(values.shape[1], values.dtype)
    mean = values @ shares
    gappy = np.flatnonzero(np.isnan(mean))  # few have gaps, and the others need not be searched for them
    whole = filled(values[gappy])
    mean[gappy] = whole @ shares
    divisor = np.where(mean > 0, mean, values.dtype.type(1))
    scaled = values / divisor
    scaled[gappy] = whole / divisor[gappy]
    return scaled.astype(np.float32, copy=False), mean[:, 0].astype(np.float64)


def _rounded(ages: npt.NDArray[np.intp], grown: int) -> npt.NDArray[np.intp]:
    """Ages rounded down to a grid of ratios, so that a few groups hold all young series; all grown ones are alike."""
    grid = np.unique(np.floor(AGE_RATIO ** np.arange(0, np.log(max(grown, 2)) / np.log(AGE_RATIO))).astype(np.intp))
    young = grid[np.maximum(np.searchsorted(grid, ages, side="right") - 1, 0)]
    return np.where(ages >= grown, grown, np.minimum(young, ages))

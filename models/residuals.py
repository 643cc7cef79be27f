"""Residuals: past forecasts minus outcomes, and the spread of present forecasts that follows from them.

A model that has expected values only writes an `Expects`; `fitted_residuals` makes the fitted model of it. The
quantiles of a step are quantiles of the residuals as many steps ahead. The quantiles of a peak come from adding every
past path of residuals to the expected path and taking the largest value of each, so they include how steps move
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from .fitted import FittedRule
from .forecast import StepWindow
from .model import Fitted
from .panel import DAY, Floats, Panel
from .spread import error_table, read_table

Bins: TypeAlias = npt.NDArray[np.intp]
# Past origins: the p95 of 192 errors has six above it; more cost time and are near neighbours of these.
ORIGINS = 192
# Errors of the latest week: a spread that follows the season of the week and forgets older levels.
ERROR_DAYS = 7
# Errors are kept for every step up to here, from then on for steps a third apart, and interpolated.
DENSE, RATIO = 15, 4 / 3
# Errors on days that a model has learned from are smaller than those to come: by a tenth on recorded load, where the
# p95 of a harmonic regression held 93.0 % without this and 94.4 % with it.
OPTIMISM = 1.1
# Numbers held at once: 64 MiB of float32.
NUMBERS_AT_ONCE = 16_000_000


class Expects(Protocol):
    """Learned state of a model that returns expected values."""

    def expected(self, history: Panel, steps: int) -> Floats:
        """[series, step] expected values after `history`, which continues the training data; NaN if unknown."""


class Residuals(NamedTuple):
    """Errors [series, origin, anchor] as far ahead as the anchors say, and their quantiles [series, level, anchor]."""

    anchors: Bins
    errors: Floats
    table: Floats

    def paths(self, point: Floats, levels: Sequence[float]) -> Floats:
        """[series, quantile, step] around a point path [series, step]."""
        spread = read_table(self.table, levels) @ interpolation(self.anchors, point.shape[1])
        return np.asarray(point[:, None, :] + spread)

    def peaks(self, point: Floats, window: StepWindow, levels: Sequence[float]) -> Floats:
        """[series, quantile] of the largest value within a window of a point path."""
        weights = interpolation(self.anchors, window.last)[:, window.first - 1 :]
        rows = max(1, NUMBERS_AT_ONCE // max(1, self.errors.shape[1] * window.steps))
        parts = [slice(i, i + rows) for i in range(0, len(point), rows)]
        ahead = point[:, window.first - 1 : window.last]
        largest = [(ahead[part, None, :] + self.errors[part] @ weights).max(axis=2) for part in parts]
        return read_table(error_table(np.concatenate([np.empty((0, self.errors.shape[1])), *largest])), levels)


@dataclass(frozen=True)
class Places:
    """Positions of the latest bin at past origins, and how many steps ahead of each of them."""

    origins: Bins
    anchors: Bins

    @classmethod
    def of(cls, panel: Panel, min_history: int, *, origins: int = ORIGINS) -> Places:
        """Evenly spaced origins over the latest week that have `min_history` bins up to them; none in a short panel."""
        first = max(min_history - 1, panel.length - 1 - ERROR_DAYS * panel.bins(DAY))
        last = panel.length - 2
        if min_history < 1 or last - first < DENSE:
            return cls(np.zeros(0, np.intp), np.ones(1, np.intp))
        spaced = np.unique(np.linspace(first, last, origins).astype(np.intp))
        return cls(spaced, anchors_within(min(panel.bins(DAY), (last - first) // 2)))

    def __bool__(self) -> bool:
        """Whether there are past residuals."""
        return len(self.origins) > 0

    def ahead(self) -> Bins:
        """[origin, anchor] positions of the targets."""
        return np.asarray(self.origins[:, None] + self.anchors)


def interpolation(anchors: Bins, steps: int) -> Floats:
    """[anchor, step]: weights of straight lines between anchors; the last one holds beyond."""
    return np.array([np.interp(np.arange(1, steps + 1), anchors, unit) for unit in np.eye(len(anchors))])


def anchors_within(steps: int) -> Bins:
    """All steps up to DENSE, then a third further each time, up to and including `steps`."""
    further = np.array([DENSE])
    while further[-1] < steps:
        further = np.append(further, min(steps, int(np.ceil(further[-1] * RATIO))))
    return np.asarray(np.concatenate([np.arange(1, DENSE), further]), dtype=np.intp)


def residuals_of(panel: Panel, places: Places, expected: Floats, *, stretch: float = 1.0) -> Residuals:
    """Return errors of past expectations, [series, origin, anchor].

    `stretch` widens errors of a model that has seen what it is judged by: n / (n - p) for p numbers learned from n.
    """
    target = np.minimum(places.ahead(), panel.length - 1)
    ahead = places.ahead() >= panel.length
    known = np.where(ahead, np.nan, panel.values[:, target] - expected) * stretch * OPTIMISM
    errors = resampled(known).astype(panel.values.dtype)
    return Residuals(places.anchors, errors, error_table(errors))


def resampled(errors: Floats) -> Floats:
    """[series, origin, anchor] with the known errors of an anchor, in turn, where one is NaN; 0 where none is known."""
    known = np.isfinite(errors)
    if known.all():
        return errors
    known_first = np.argsort(~known, axis=1, kind="stable")
    turn = np.arange(errors.shape[1])[:, None] % np.maximum(1, known.sum(axis=1, keepdims=True))
    others = np.take_along_axis(errors, np.take_along_axis(known_first, turn, axis=1), axis=1)
    return np.where(known, errors, np.nan_to_num(others))


def blind(series: int) -> Residuals:
    """Return no residuals, for a panel too short to look back."""
    errors = np.zeros((series, 1, 1))
    return Residuals(np.ones(1, np.intp), errors, error_table(errors))


class LearnedResiduals(NamedTuple):
    """Expected values, and their past errors."""

    expects: Expects
    residuals: Residuals


@dataclass(frozen=True)
class Judged:
    """The rule of a model that expects: its path with the spread of its own past errors."""

    name: str
    failures: Mapping[str, str] = field(default_factory=dict)
    """Reasons why some series have no expected values, by key."""

    def paths(self, history: Panel, learned: LearnedResiduals, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step]."""
        return learned.residuals.paths(learned.expects.expected(history, steps), levels)

    def peaks(self, history: Panel, learned: LearnedResiduals, window: StepWindow, levels: Sequence[float]) -> Floats:
        """[series, quantile] of the largest value within the window."""
        return learned.residuals.peaks(learned.expects.expected(history, window.last), window, levels)


@dataclass(frozen=True)
class Silent:
    """Expects nothing: for panels that are too short to learn from."""

    def expected(self, history: Panel, steps: int) -> Floats:
        """[series, step] of NaN."""
        return np.full((len(history), steps), np.nan)


def fitted_residuals(
    name: str, panel: Panel, expects: Expects, residuals: Residuals, failures: Mapping[str, str] = MappingProxyType({})
) -> Fitted:
    """The fitted model; the series of `failures` expect nothing and are held at the last value with that reason."""
    return FittedRule(Judged(name, failures), panel, LearnedResiduals(expects, residuals))


def too_short(name: str, panel: Panel) -> Fitted:
    """The fitted model of a panel that holds too little to learn from."""
    return fitted_residuals(name, panel, Silent(), blind(len(panel)))

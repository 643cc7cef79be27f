"""Regressions learned from all series of a panel, so that series learn from each other: boosted trees, and an equation.

Every origin of every series becomes numbers without a unit, the same that the prior looks at, and the next hour in the
same numbers is what is learned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .backtest import NEAR_WINDOWS, ahead_of
from .fitted import FittedRule
from .forecast import StepWindow
from .panel import DAY, Floats, Panel
from .prior import GROWN_DAYS, alike
from .situation import OriginSituation, past_windows, situation_at, squash
from .spread import TABLE_LEVELS, error_table, read_table

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

HORIZON = max(window.last for window in NEAR_WINDOWS)
# Origins of a series, and examples without which nothing is learned.
MAX_ORIGINS, MIN_ROWS = 192, 200
# Series looked at together.
SERIES_PER_GROUP = 64


class Regression(Protocol):
    """Quantiles of numbers without a unit."""

    @property
    def levels(self) -> tuple[float, ...]:
        """Ascending levels that were learned."""

    def quantiles(self, columns: Floats) -> Floats:
        """[row, level] for columns [row, column]."""


@dataclass(frozen=True)
class Pooled(ABC):
    """A regression that learns from all series together; forecasts series of a day and more, twelve steps ahead.

    Attributes:
        rows: examples learned from, shared by all series; more of them brought less than richer columns did.
        pooled: what is said of a series depends on those it was fitted beside.
    """

    rows: int = 60_000
    pooled: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in forecasts and in the catalogue."""

    @abstractmethod
    def learn(self, columns: Floats, targets: Floats) -> Regression:
        """The regression of columns [row, column] and targets [row]."""

    def fit(self, panel: Panel) -> FittedRule[Regression | None]:
        """Learn from origins all over the panel; nothing where it is shorter than a day and a half."""
        parts = [self._rows(values, panel) for _, values, _ in alike(panel, panel.length, SERIES_PER_GROUP)]
        columns, targets = zip(*(part for part in parts if part), strict=True) if any(parts) else ((), ())
        if sum(map(len, targets)) < MIN_ROWS:
            return FittedRule(self, panel, None)
        return FittedRule(self, panel, self.learn(np.concatenate(columns), np.concatenate(targets)))

    def _rows(self, values: Floats, panel: Panel) -> tuple[Floats, Floats] | None:
        """Columns and targets of gapless values [series, time]; None of too short ones."""
        day, last = panel.bins(DAY), values.shape[1] - 1 - HORIZON
        count = min(MAX_ORIGINS, max(2, self.rows // (len(panel) * len(NEAR_WINDOWS))))
        origins = np.unique(np.linspace(day, last, count).astype(np.intp)) if 0 < day < last else np.empty(0, np.intp)
        if len(origins) <= 1:
            return None
        situation = situation_at(values, origins, day)
        change = ahead_of(values, origins, NEAR_WINDOWS) - situation.level[:, :, None]
        return _columns(situation, NEAR_WINDOWS), squash(change / situation.scale[:, :, None]).ravel()

    def reach(self, history: Panel) -> int:  # noqa: ARG002  the same for any history
        """Steps that were learned."""
        return HORIZON

    def paths(self, history: Panel, learned: Regression | None, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step], NaN for series younger than a day and beyond an hour of five-minute steps."""
        return self._answers(history, learned, [StepWindow(step, step) for step in range(1, steps + 1)], levels)

    def peaks(self, history: Panel, learned: Regression | None, window: StepWindow, levels: Sequence[float]) -> Floats:
        """[series, quantile] of the largest value of the window."""
        return self._answers(history, learned, [window], levels)[:, :, 0]

    def _answers(
        self, history: Panel, learned: Regression | None, windows: Sequence[StepWindow], levels: Sequence[float]
    ) -> Floats:
        out = np.full((len(history), len(levels), len(windows)), np.nan)
        day = history.bins(DAY)
        if learned is None or windows[-1].last > HORIZON:
            return out
        for rows, values, unit in alike(history, (GROWN_DAYS + 1) * day):
            if values.shape[1] > day:
                situation = situation_at(values, np.array([values.shape[1] - 1]), day)
                changes = learned.quantiles(_columns(situation, windows)).reshape(len(rows), len(windows), -1)
                ahead = np.sinh(np.sort(changes, axis=-1)) * situation.scale[:, :, None] + situation.level[:, :, None]
                out[rows] = read_table(ahead.swapaxes(1, 2), levels, learned.levels) * unit[:, None, None]
        return out

    def stacked(self, learned: Sequence[Regression | None], step: timedelta) -> Regression | None:  # noqa: ARG002  the signature of a rule
        """Return the one regression of all, None where they differ."""
        return learned[0] if all(regression is learned[0] for regression in learned) else None

    def part(self, learned: Regression | None, rows: slice | npt.NDArray[np.intp]) -> Regression | None:  # noqa: ARG002  the same for all
        """Return the regression for some of the series."""
        return learned


def _columns(situation: OriginSituation, windows: Sequence[StepWindow]) -> Floats:
    """[series · origin · window, column]."""
    ahead = past_windows(situation, windows)
    context = np.broadcast_to(situation.context[:, :, None], (*ahead.shape[:3], situation.context.shape[-1]))
    return np.concatenate([context, ahead], axis=-1).reshape(-1, context.shape[-1] + ahead.shape[-1])


# Quantiles that trees learn; those between are read off straight lines between normal scores.
BOOSTED_LEVELS = (0.05, 0.5, 0.8, 0.95, 0.99)
# Few rows bear few trees.
ROWS_PER_TREE, MIN_TREES, MAX_TREES = 400, 10, 150
# Added to the diagonal of the normal equations of standardised columns: as much as so many rows.
PENALTY = 10.0
# Columns further out than this many standard deviations are alike, so that no equation extrapolates.
COLUMN_REACH = 6.0
# The logarithm of the spread of a row stays between these.
MIN_LOG, MAX_LOG = -8.0, 3.0


@dataclass(frozen=True)
class Boosting(Pooled):
    """Gradient boosting on histograms with pinball loss, one for each level."""

    name: str = "boosting"

    def learn(self, columns: Floats, targets: Floats) -> Boosted:
        """See Pooled.learn."""
        from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415  takes a second to import

        trees = int(np.clip(len(targets) // ROWS_PER_TREE, MIN_TREES, MAX_TREES))
        spec = {"max_iter": trees, "learning_rate": 0.08, "min_samples_leaf": 40, "early_stopping": False}
        each = ({"loss": "quantile", "quantile": level, "random_state": 0, **spec} for level in BOOSTED_LEVELS)
        return Boosted(tuple(HistGradientBoostingRegressor(**options).fit(columns, targets) for options in each))


@dataclass(frozen=True)
class PooledLinear(Pooled):
    """One equation for the middle and one for the spread."""

    name: str = "pooled-linear"

    def learn(self, columns: Floats, targets: Floats) -> Linear:
        """See Pooled.learn."""
        standard = Standard(columns.mean(axis=0), columns.std(axis=0) + 1e-3)
        known = standard(columns)
        middle = _least_squares(known, targets)
        off = targets - known @ middle
        log_spread = _least_squares(known, np.log(np.abs(off) + 1e-3))
        return Linear(standard, middle, log_spread, error_table(off / _spread(known, log_spread), axis=0))


@dataclass(frozen=True)
class Boosted:
    """Trees by level; Ke et al. 2017 as scikit-learn has it."""

    trees: tuple[HistGradientBoostingRegressor, ...]
    levels: tuple[float, ...] = BOOSTED_LEVELS

    def quantiles(self, columns: Floats) -> Floats:
        """[row, level]."""
        return np.stack([tree.predict(columns) for tree in self.trees], axis=1)


class Standard(NamedTuple):
    """Mean and spread of columns."""

    mean: Floats
    spread: Floats

    def __call__(self, columns: Floats) -> Floats:
        """Standardised columns and a column of ones."""
        scaled = np.clip((columns - self.mean) / self.spread, -COLUMN_REACH, COLUMN_REACH)
        return np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1)


@dataclass(frozen=True)
class Linear:
    """Expected value, the logarithm of its error's size, and quantiles of the errors in units of that size.

    Location and scale by least squares: heteroscedastic regression as in Harvey 1976.
    """

    standard: Standard
    middle: Floats
    log_spread: Floats
    errors: Floats
    levels: tuple[float, ...] = TABLE_LEVELS

    def quantiles(self, columns: Floats) -> Floats:
        """[row, level]."""
        known = self.standard(columns)
        return np.asarray((known @ self.middle)[:, None] + _spread(known, self.log_spread)[:, None] * self.errors)


def _spread(known: Floats, log_spread: Floats) -> Floats:
    return np.exp(np.clip(known @ log_spread, MIN_LOG, MAX_LOG))


def _least_squares(known: Floats, targets: Floats) -> Floats:
    squares = known.T @ known + PENALTY * np.eye(known.shape[1])
    return np.asarray(np.linalg.solve(squares, known.T @ targets))

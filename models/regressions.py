"""Regressions for pooled models: boosted trees, and one linear equation; both give quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .pooled import Pooled
from .spread import TABLE_LEVELS, error_table

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

    from .panel import Floats

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

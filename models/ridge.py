"""Ridge autoregression with clock-time terms: one linear equation per coming step, all series at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from .fitted import Remembered
from .gaps import bins_seen
from .panel import DAY, Floats, Panel
from .peaks import window_maximum
from .regressors import Regressors
from .spread import TABLE_LEVELS, error_table, read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .forecast import Window

# Numbers held at once while fitting: 64 MiB of float32 per array, so memory does not grow with the number of series.
BLOCK = 16_000_000
# Errors of the newest week: a spread that follows the season of the week and forgets older levels.
ERROR_DAYS = 7
# Replayed origins behind a direct peak: enough for a p95, cheap enough for every cycle.
PAST_ORIGINS = 128


class Equations(NamedTuple):
    """[series, column, step] coefficients, [series, table level, step] quantiles of their errors, what columns mean."""

    regressors: Regressors
    coefficients: Floats
    errors: Floats


@dataclass(frozen=True)
class Ridge:
    """Direct regression of each step on the newest values, their means, and the same clock time a day and a week ago.

    Quantiles are empirical quantiles of the errors per series and step. Values are centred and scaled per series, so
    one penalty fits all. Needs two days; a panel with eight uses the week too. Steps beyond `horizon` fall back.

    Attributes:
        horizon: steps that are learned.
        lags: newest values used.
        days: newest days used.
        penalty: added to the diagonal of the normal equations of standardised values.
    """

    horizon: int = 12
    lags: int = 12
    penalty: float = 3.0
    days: int = 14
    name: str = "ridge"

    def fit(self, panel: Panel) -> Remembered[Equations]:
        """Solve the normal equations of blocks of series, so that memory stays bounded."""
        panel = panel.last(self.days * DAY)
        regressors = Regressors.of(panel, self.lags, self.horizon)
        rows = max(1, BLOCK // max(1, panel.length * (regressors.count + self.horizon)))
        blocks = [_solve(self, panel.take(slice(i, i + rows)), regressors) for i in range(0, max(1, len(panel)), rows)]
        coefficients, errors = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return Remembered(self, panel, Equations(regressors, coefficients, errors))

    def paths(self, history: Panel, learned: Equations, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step], NaN for series younger than two days and for more steps than were learned."""
        regressors = learned.regressors
        if steps > self.horizon or not regressors.answerable(history):
            return np.full((len(history), len(levels), steps), np.nan)
        scaled, centre, scale = regressors.standardised(history.values)
        point = np.einsum("sp,sph->sh", regressors.newest(scaled), learned.coefficients[:, :, :steps])
        paths = point[:, None] + read_table(learned.errors[:, :, :steps], levels)
        paths = paths * scale[:, None, None] + centre[:, None, None]
        return np.where(_old_enough(history, regressors)[:, None, None], paths, np.nan)

    def peaks(self, history: Panel, learned: Equations, window: Window, levels: Sequence[float]) -> Floats:
        """[series, quantile]: the largest point of the window plus quantiles of its error at past origins."""
        regressors = learned.regressors
        if window.last > self.horizon or not regressors.answerable(history):
            return np.full((len(history), len(levels)), np.nan)
        rows = max(1, BLOCK // (PAST_ORIGINS * regressors.count))
        parts = [slice(i, i + rows) for i in range(0, len(history), rows)]
        blocks = [_peaks(history.take(part), learned.coefficients[part], regressors, window, levels) for part in parts]
        return np.concatenate([np.empty((0, len(levels))), *blocks])


def _old_enough(history: Panel, regressors: Regressors) -> npt.NDArray[np.bool_]:
    return bins_seen(history.values) >= regressors.least + regressors.day


def _solve(spec: Ridge, panel: Panel, regressors: Regressors) -> tuple[Floats, Floats]:
    """Batched normal equations; steps that were gaps count nothing."""
    if not regressors.possible:
        return np.zeros((len(panel), 0, spec.horizon)), np.zeros((len(panel), len(TABLE_LEVELS), spec.horizon))
    scaled, _, _ = regressors.standardised(panel.values)
    origins = regressors.origins(spec.horizon)
    columns = regressors.columns(scaled, origins)
    targets = np.stack([scaled[:, origins + h] for h in range(1, spec.horizon + 1)], axis=2)
    product = columns.transpose(0, 2, 1)
    squares, cross = (product @ columns).astype(np.float64), (product @ targets).astype(np.float64)
    coefficients = np.zeros((len(panel), regressors.count, spec.horizon), np.float32)
    for step in range(1, spec.horizon + 1):
        own = np.asarray(regressors.of_step(step))
        left = squares[:, own[:, None], own] + spec.penalty * np.eye(len(own))
        coefficients[:, own, step - 1] = np.linalg.solve(left, cross[:, own, step - 1 : step])[:, :, 0]
    errors = (targets - columns @ coefficients)[:, -ERROR_DAYS * regressors.day :]
    return coefficients, error_table(errors)


def _peaks(
    panel: Panel, coefficients: Floats, regressors: Regressors, window: Window, levels: Sequence[float]
) -> Floats:
    scaled, centre, scale = regressors.standardised(panel.values)
    actual = window_maximum(scaled, window)
    known = regressors.within(panel).origins(window.last)
    origins = known[np.unique(np.linspace(0, len(known) - 1, PAST_ORIGINS).astype(np.intp))]
    steps = slice(window.first - 1, window.last)
    expected = (regressors.columns(scaled, origins) @ coefficients[:, :, steps]).max(axis=2)
    point = np.einsum("sp,sph->sh", regressors.newest(scaled), coefficients[:, :, steps]).max(axis=1)
    peaks = point[:, None] + read_table(error_table(actual[:, origins] - expected), levels)
    return np.where(_old_enough(panel, regressors)[:, None], peaks * scale[:, None] + centre[:, None], np.nan)

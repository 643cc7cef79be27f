"""Ridge autoregression with clock-time terms: one linear equation per coming step, all series at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .clean import bins_seen, filled
from .fitted import FittedRule
from .forecast import StepWindow
from .panel import DAY, Floats, Panel
from .regressors import Regressors, Unit
from .spread import TABLE_LEVELS, error_table, read_table

# Numbers held at once while fitting: 16 MiB of float32 per array, near the processor and not growing with the series.
NUMBERS_WHILE_FITTING = 4_000_000
# Errors of the latest week: a spread that follows the season of the week and forgets older levels.
RIDGE_ERROR_DAYS = 7
# Replayed origins behind a direct peak: enough for a p95.
PAST_ORIGINS = 128
# Windows within half an hour (of five-minute steps), and narrow ones within an hour, are those that decisions ask for
# in every cycle. Their errors are learned when fitting: 2 kB a series against a replay of 128 origins in each cycle.
RIDGE_WINDOWS = (
    *(StepWindow(first, last) for last in range(1, 7) for first in range(1, last + 1)),
    *(StepWindow(first, last) for last in range(7, 13) for first in (last - 1, last)),
)


class Equations(NamedTuple):
    """Learned coefficients, in the unit of each series at the time of learning.

    Attributes:
        regressors: what the columns mean.
        unit: [series] centre and scale.
        coefficients: [series, column, step].
        errors: [series, table level, step] quantiles of the errors of each step.
        peak_errors: [series, one of RIDGE_WINDOWS, table level] quantiles of the errors of its largest value.
    """

    regressors: Regressors
    unit: Unit
    coefficients: Floats
    errors: Floats
    peak_errors: Floats

    def of(self, rows: slice | npt.NDArray[np.intp]) -> Equations:
        """Return the equations of some series."""
        arrays = (self.coefficients, self.errors, self.peak_errors)
        return Equations(self.regressors, self.unit.of(rows), *(array[rows] for array in arrays))

    @classmethod
    def stacked(cls, parts: Sequence[Equations]) -> Equations | None:
        """Join the equations of all series, None where the columns do not mean the same."""
        if any(part.regressors != parts[0].regressors for part in parts):
            return None
        centre, scale = (np.concatenate(each) for each in zip(*(part.unit for part in parts), strict=True))
        arrays = zip(*((part.coefficients, part.errors, part.peak_errors) for part in parts), strict=True)
        return cls(parts[0].regressors, Unit(centre, scale), *(np.concatenate(each) for each in arrays))


@dataclass(frozen=True)
class Ridge:
    """Direct regression of each step on the latest values, their means, and the same clock time a day and a week ago.

    Quantiles are empirical quantiles of the errors per series and step. Values are centred and scaled per series, so
    one penalty fits all. Needs two days; a panel with eight uses the week too. Steps beyond `horizon` fall back.

    Attributes:
        horizon: steps that are learned.
        lags: latest values used.
        days: latest days used.
        penalty: added to the diagonal of the normal equations of standardised values.
    """

    horizon: int = 12
    lags: int = 12
    penalty: float = 3.0
    days: int = 14
    name: str = "ridge"

    def fit(self, panel: Panel) -> FittedRule[Equations]:
        """Solve the normal equations of blocks of series, so that memory stays bounded."""
        panel = panel.last(self.days * DAY)
        regressors = Regressors.of(panel, self.lags, self.horizon)
        rows = max(1, NUMBERS_WHILE_FITTING // max(1, panel.length * (regressors.count + self.horizon)))
        blocks = [
            _learned(self, filled(panel.values[i : i + rows]), regressors) for i in range(0, max(1, len(panel)), rows)
        ]
        centre, scale, *others = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return FittedRule(self, panel, Equations(regressors, Unit(centre, scale), *others))

    def reach(self, history: Panel) -> int:  # noqa: ARG002  the same for any history
        """Steps that were learned."""
        return self.horizon

    def paths(self, history: Panel, learned: Equations, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step], NaN for series younger than two days and for more steps than were learned."""
        if steps > self.horizon or not learned.regressors.answerable(history):
            return np.full((len(history), len(levels), steps), np.nan)
        point = _expected(history, learned, slice(0, steps))
        paths = learned.unit.restored(point[:, None] + read_table(learned.errors[:, :, :steps], levels))
        return np.where(_old_enough(history, learned.regressors)[:, None, None], paths, np.nan)

    def peaks(self, history: Panel, learned: Equations, window: StepWindow, levels: Sequence[float]) -> Floats:
        """[series, quantile]: the largest point of the window plus quantiles of its error at past origins."""
        return self.several_peaks(history, learned, (window,), levels)[0]

    def several_peaks(
        self, history: Panel, learned: Equations, windows: Sequence[StepWindow], levels: Sequence[float]
    ) -> list[Floats]:
        """Return peaks of several windows; the history is read once."""
        near = [window for window in windows if window.last <= self.horizon]
        if not near or not learned.regressors.answerable(history):
            return [np.full((len(history), len(levels)), np.nan) for _ in windows]
        first = min(window.first for window in near) - 1
        expected = _expected(history, learned, slice(first, max(window.last for window in near)))
        old = _old_enough(history, learned.regressors)[:, None]

        def peaks(window: StepWindow) -> Floats:
            if window.last > self.horizon:
                return np.full((len(history), len(levels)), np.nan)
            point = expected[:, window.first - 1 - first : window.last - first].max(axis=1)
            errors = (
                _known_errors(learned, window)
                if window in RIDGE_WINDOWS
                else _replayed_errors(history, learned, window)
            )
            return np.where(old, learned.unit.restored(point[:, None] + read_table(errors, levels)), np.nan)

        return [peaks(window) for window in windows]


def ridge_peaks_at(
    values: Floats,
    learned: Equations,
    origins: npt.NDArray[np.intp],
    windows: Sequence[StepWindow],
    levels: Sequence[float],
) -> Floats:
    """[series, origin, window, level] at past origins of gapless values [series, time] that it has learned from.

    NaN at origins that cannot look back far enough. Windows are single steps or of RIDGE_WINDOWS.
    """
    out = np.full((len(values), len(origins), len(windows), len(levels)), np.nan)
    known = np.flatnonzero(origins >= learned.regressors.min_history)
    if not (len(known) and learned.regressors.possible):
        return out
    points = learned.regressors.columns(learned.unit.past(values), origins[known]) @ learned.coefficients
    for i, window in enumerate(windows):
        if window.last > learned.coefficients.shape[2]:
            continue
        single = window.steps == 1
        errors = learned.errors[:, :, window.first - 1] if single else _known_errors(learned, window)
        largest = points[:, :, window.first - 1 : window.last].max(axis=2)
        out[:, known, i] = learned.unit.restored(largest[:, :, None] + read_table(errors, levels)[:, None])
    return out


def _old_enough(history: Panel, regressors: Regressors) -> npt.NDArray[np.bool_]:
    return bins_seen(history.values) >= regressors.min_history + regressors.day


def _expected(history: Panel, learned: Equations, steps: slice) -> Floats:
    """[series, step] standardised points; a series that was nothing when its equation was learned gets NaN."""
    latest = learned.regressors.latest(history.values, learned.unit)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.einsum("sp,sph->sh", latest, learned.coefficients[:, :, steps]))


def _known_errors(learned: Equations, window: StepWindow) -> Floats:
    return learned.peak_errors[:, RIDGE_WINDOWS.index(window)]


def _replayed_errors(history: Panel, learned: Equations, window: StepWindow) -> Floats:
    """[series, table level], by blocks of series."""
    regressors = learned.regressors.within(history)
    rows = max(1, NUMBERS_WHILE_FITTING // (PAST_ORIGINS * regressors.count))
    tables: list[Floats] = [np.empty((0, len(TABLE_LEVELS)))]
    for part in (slice(i, i + rows) for i in range(0, len(history), rows)):
        scaled = learned.unit.of(part).past(filled(history.values[part]))
        tables.append(_peak_errors(scaled, learned.coefficients[part], regressors, [window])[:, 0])
    return np.concatenate(tables)


def _learned(spec: Ridge, values: Floats, regressors: Regressors) -> tuple[Floats, ...]:
    """The arrays of Equations for some series with gapless values."""
    if not regressors.possible:
        return _nothing(len(values), spec.horizon)
    unit = regressors.unit(values)
    scaled = unit.past(values)
    coefficients, errors = _solve(spec, scaled, regressors)
    near = [window for window in RIDGE_WINDOWS if window.last <= spec.horizon]
    return *unit, coefficients, errors, _peak_errors(scaled, coefficients, regressors, near)


def _nothing(series: int, horizon: int) -> tuple[Floats, ...]:
    levels = len(TABLE_LEVELS)
    shapes = ((), (), (0, horizon), (levels, horizon), (len(RIDGE_WINDOWS), levels))
    return tuple(np.zeros((series, *shape), np.float32) for shape in shapes)


def _solve(spec: Ridge, scaled: Floats, regressors: Regressors) -> tuple[Floats, Floats]:
    """Solve the normal equations of each step for all series at once; gaps count as they were filled."""
    origins = regressors.origins(spec.horizon)
    columns = regressors.columns(scaled, origins)
    targets = np.stack([scaled[:, origins + h] for h in range(1, spec.horizon + 1)], axis=2)
    product = columns.transpose(0, 2, 1)
    squares, cross = (product @ columns).astype(np.float64), (product @ targets).astype(np.float64)
    coefficients = np.zeros((len(scaled), regressors.count, spec.horizon), np.float32)
    for step in range(1, spec.horizon + 1):
        own = np.asarray(regressors.of_step(step))
        left = squares[:, own[:, None], own] + spec.penalty * np.eye(len(own))
        coefficients[:, own, step - 1] = np.linalg.solve(left, cross[:, own, step - 1 : step])[:, :, 0]
    errors = (targets - columns @ coefficients)[:, -RIDGE_ERROR_DAYS * regressors.day :]
    return coefficients, error_table(errors)


def _peak_errors(scaled: Floats, coefficients: Floats, regressors: Regressors, windows: Sequence[StepWindow]) -> Floats:
    """[series, window, table level] quantiles of actual minus expected largest values at past origins."""
    reach = max(window.last for window in windows)
    known = regressors.origins(reach)
    origins = known[np.unique(np.linspace(0, len(known) - 1, PAST_ORIGINS).astype(np.intp))]
    points = regressors.columns(scaled, origins) @ coefficients[:, :, :reach]
    expected = np.ascontiguousarray(np.moveaxis(points, 2, 0))
    actual = np.stack([scaled[:, origins + step] for step in range(1, reach + 1)])
    return np.stack([error_table(_largest(actual, window) - _largest(expected, window)) for window in windows], axis=1)


def _largest(steps: Floats, window: StepWindow) -> Floats:
    """[series, origin] of [step, series, origin]."""
    return np.asarray(np.maximum.reduce(steps[window.first - 1 : window.last]))

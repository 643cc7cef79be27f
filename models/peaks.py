"""The maximum over a window, for models that only know single steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .clean import filled
from .spread import error_table, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .forecast import StepWindow
    from .panel import Floats, Panel

# Past origins that are replayed; a p95 of 32 errors is rough, so a model used for decisions has a direct answer.
REPLAYS = 32


def window_maximum(values: Floats, window: StepWindow) -> Floats:
    """[series, time - window.last]: for each origin the largest value within the window after it.

    Column t belongs to the origin at the end of bin t.
    """
    count = max(0, values.shape[1] - window.last)
    columns = [values[:, first : first + count] for first in range(window.first, window.last + 1)]
    return np.asarray(np.maximum.reduce(columns))


def replayed_peaks(
    median: Callable[[Panel], Floats], history: Panel, window: StepWindow, levels: Sequence[float]
) -> Floats:
    """[series, quantile]: the largest median of the window plus quantiles of the error this rule made in the past.

    Not the largest of the step quantiles: how much the peak of a window exceeds the peak of its medians depends on how
    the steps move together, and only replayed windows know that. `median` gives [series, step] for a panel.
    """
    actual = window_maximum(filled(history.values), window)
    origins = _spaced(actual.shape[1])
    errors = [actual[:, origin] - _expected(median, _before(history, origin), window) for origin in origins]
    if not errors:
        return np.full((len(history), len(levels)), np.nan)
    spread = read_table(error_table(np.stack(errors, axis=1)), levels)
    return _expected(median, history, window)[:, None] + spread


def _expected(median: Callable[[Panel], Floats], history: Panel, window: StepWindow) -> Floats:
    return np.asarray(np.max(median(history)[:, window.first - 1 :], axis=1))


def _before(history: Panel, origin: int) -> Panel:
    return history.until(history.start + (origin + 1) * history.step)


def _spaced(count: int) -> list[int]:
    """Origins over the newer half, where a rule has enough history behind it."""
    wanted = np.linspace(count // 2, max(0, count - 1), min(REPLAYS, count // 2))
    return [int(origin) for origin in np.unique(wanted.astype(np.intp))]

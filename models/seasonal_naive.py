"""Naive models: the last value, and the value at the same time one period ago, each with its recent errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from .clean import bins_seen, bins_silent, filled
from .fitted import FittedRule, held, held_peaks
from .forecast import StepWindow
from .panel import DAY, Floats, Panel
from .spread import error_table, read_table, window_maximum


@dataclass(frozen=True)
class LastValue:
    """The latest value plus quantiles of the changes over as many steps; what every model falls back to."""

    name: str = "last-value"

    def fit(self, panel: Panel) -> FittedRule[None]:
        """Learn nothing: changes are read from the history when asked."""
        return FittedRule(self, panel, None)

    def paths(self, history: Panel, learned: None, steps: int, levels: Sequence[float]) -> Floats:  # noqa: ARG002  no learning
        """[series, quantile, step]."""
        return held(history.values, steps, levels)

    def peaks(self, history: Panel, learned: None, window: StepWindow, levels: Sequence[float]) -> Floats:  # noqa: ARG002  as above
        """[series, quantile]."""
        return held_peaks(history.values, window, levels)


# Errors of the last seven days make the spread; a shorter memory forgets the weekend, a longer one old levels.
MEMORY_DAYS = 7


@dataclass(frozen=True)
class SeasonalNaive:
    """The value one period ago, plus quantiles of the change over one period; the median is left at that value.

    Needs one period and a tenth; the yardstick that every other model has to beat.

    >>> import numpy as np, datetime as dt
    >>> monday = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    >>> wave = 10 + 5 * np.sin(np.arange(96) / 24 * 2 * np.pi)
    >>> panel = Panel(wave[None], monday, dt.timedelta(hours=1), ("shop/web",))
    >>> SeasonalNaive().fit(panel).forecast(3, (0.5,)).values.round(1).tolist()
    [[[10.0, 11.3, 12.5]]]
    """

    period: timedelta = DAY

    @property
    def name(self) -> str:
        """seasonal-naive-day, seasonal-naive-week, or the number of minutes."""
        known = {DAY: "day", 7 * DAY: "week"}
        return f"seasonal-naive-{known.get(self.period, f'{self.period // timedelta(minutes=1)}min')}"

    def fit(self, panel: Panel) -> FittedRule[Floats]:
        """Learn the spread: [series, table level] quantiles of the change over one period."""
        return FittedRule(self, panel, error_table(self._errors(filled(panel.values), panel)))

    def paths(self, history: Panel, learned: Floats, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step], NaN for series younger than a period and a tenth."""
        point = self._period_ago(history, steps)
        return point[:, None, :] + self._spread(learned, levels)[:, :, None]

    def peaks(self, history: Panel, learned: Floats, window: StepWindow, levels: Sequence[float]) -> Floats:  # noqa: ARG002  the spread of a maximum is another one
        """[series, quantile]: the same window one period ago plus quantiles of how its maximum changes."""
        point: Floats = self._period_ago(history, window.last)[:, window.first - 1 :].max(axis=1)
        errors = self._errors(window_maximum(filled(history.values), window), history)
        return point[:, None] + self._spread(error_table(errors), levels)

    def _period_ago(self, history: Panel, steps: int) -> Floats:
        lag = history.bins(self.period)
        if not lag or history.length < lag:
            return np.full((len(history), steps), np.nan)
        latest = filled(history.values[:, -lag:])
        if (silent := bins_silent(history.values) >= lag).any():
            latest[silent] = filled(history.values[silent])[:, -lag:]
        return np.where(bins_seen(history.values)[:, None] > 1.1 * lag, latest[:, np.arange(steps) % lag], np.nan)

    def _errors(self, values: Floats, panel: Panel) -> Floats:
        lag = panel.bins(self.period)
        if not lag:
            return values[:, :0]
        return (values[:, lag:] - values[:, :-lag])[:, -MEMORY_DAYS * panel.bins(DAY) :]

    @staticmethod
    def _spread(table: Floats, levels: Sequence[float]) -> Floats:
        spread = read_table(table, levels)
        return np.where(np.isclose(levels, 0.5), 0.0, spread)

"""A model of one's own in twenty lines; `write_your_own_model` explains it, and settings can name it."""

# ruff: noqa: ARG002  (types are optional in a model of one's own)

from dataclasses import dataclass

import numpy as np

from models.clean import filled
from models.fitted import FittedRule
from models.panel import DAY


@dataclass(frozen=True)
class MedianOfDays:
    """Median of the last days at the same time of day, moved by as much as the series now differs from those days."""

    days: int = 7
    name: str = "median-of-days"

    def fit(self, panel):
        """Nothing is learned: the days are looked up at each forecast."""
        return FittedRule(self, panel, None)

    def paths(self, history, learned, steps, levels):
        """[series, quantile, step]; NaN says "I cannot speak", and the last value is held instead, with a reason."""
        day, known = history.bins(DAY), filled(history.values)
        days = min(self.days, history.length // max(1, day) - 1)
        if days < 2:
            return np.full((len(history), len(levels), steps), np.nan)
        ahead = np.arange(steps) % day
        ago = np.stack([known[:, history.length - back * day + ahead] for back in range(1, days + 1)])
        then = np.stack([known[:, -1 - back * day] for back in range(1, days + 1)])
        moved = ago + 0.8 ** (1 + ahead / 6) * (known[:, -1] - then)[:, :, None]
        return np.quantile(moved, levels, axis=0).swapaxes(0, 1)

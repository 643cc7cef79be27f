"""Hour of the week: quantiles of the same hour of past weeks, by the clock and calendar of the load's users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .calendar import Calendar, Clock
from .clean import bins_seen, filled
from .fitted import FittedRule
from .forecast import StepWindow
from .panel import DAY, Floats, Panel
from .residuals import Bins
from .spread import window_maximum

HOUR_OF_WEEK_DAYS = 2
# The same weekday counts so often against another one of its kind: two weeks hold it only twice.
SAME_WEEKDAY = 2


@dataclass(frozen=True)
class HourOfWeek:
    """Empirical quantiles of the same local hour on days of the same kind, the same weekday counting double.

    Working days and days off are the two kinds. Knows nothing of the latest value: a profile to plan by, steady when
    load follows the clock, and slow after a change of level. Needs two days; a kind of day that has not been seen yet
    is read from all days.

    Attributes:
        calendar: time zone and holidays.
        days: latest days used.

    >>> import datetime as dt
    >>> from models import Panel
    >>> monday = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    >>> panel = Panel(np.arange(96.0)[None] % 24, monday, dt.timedelta(hours=1), ("shop/web",))
    >>> HourOfWeek().fit(panel).forecast(3, (0.5,)).values.round(1).tolist()
    [[[0.0, 1.0, 2.0]]]
    """

    calendar: Calendar = field(default_factory=Calendar)
    days: int = 14
    name: str = "hour-of-week"

    def fit(self, panel: Panel) -> FittedRule[None]:
        """Learn nothing: quantiles are read from the history when asked."""
        return FittedRule(self, panel, None, memory=self.days * DAY)

    def paths(self, history: Panel, learned: None, steps: int, levels: Sequence[float]) -> Floats:  # noqa: ARG002  no learning
        """[series, quantile, step], NaN for series younger than two days."""
        clock = self.calendar.of(history, beyond=steps)
        off = self.calendar.days_off(clock)
        out = np.full((len(history), len(levels), steps), np.nan)
        for hour in same_hours(clock.hour_of_week[history.length :]):
            bins = like(clock, off, history.length, history.length + int(hour[0]))
            out[:, :, hour] = known_quantiles(history.values[:, bins], levels)[:, :, None]
        return _old_enough(history, out)

    def peaks(self, history: Panel, learned: None, window: StepWindow, levels: Sequence[float]) -> Floats:  # noqa: ARG002  as above
        """[series, quantile] of the maxima that windows of this length had when they began in the same hour."""
        maxima = window_maximum(filled(history.values), window)
        clock = self.calendar.of(history, beyond=window.first)
        bins = like(clock, self.calendar.days_off(clock), history.length, history.length + window.first - 1)
        origins = bins - window.first
        origins = origins[(origins >= 0) & (origins < maxima.shape[1])]
        return _old_enough(history, known_quantiles(maxima[:, origins], levels))


def same_hours(hours: Bins) -> list[Bins]:
    """Return the positions of coming bins, grouped by hour."""
    changes = np.flatnonzero(np.diff(hours)) + 1
    return np.split(np.arange(len(hours)), changes)


def like(clock: Clock, off: npt.NDArray[np.bool_], known: int, target: int) -> Bins:
    """Return known bins of the same hour and kind of day as a target, repeating those of the same weekday."""
    same_hour = clock.hour[:known] == clock.hour[target]
    same_hour |= not same_hour.any()  # bins of a day begin at another hour after the clocks change
    same_kind = same_hour & (off[:known] == off[target])
    chosen = np.flatnonzero(same_kind if same_kind.any() else same_hour)
    twin = chosen[(clock.weekday[chosen] == clock.weekday[target]) & (off[chosen] == off[target])]
    return np.concatenate([chosen, *[twin] * (SAME_WEEKDAY - 1)])


def known_quantiles(samples: Floats, levels: Sequence[float]) -> Floats:
    """[series, quantile] of samples [series, sample], NaN left out; NaN without samples."""
    out = np.full((len(samples), len(levels)), np.nan)
    known = np.isfinite(samples)
    whole = known.all(axis=1) & (samples.shape[1] > 0)
    if whole.any():
        out[whole] = np.quantile(samples[whole], levels, axis=1).T
    for row in np.flatnonzero(known.any(axis=1) & ~whole):
        out[row] = np.quantile(samples[row, known[row]], levels)
    return out


def _old_enough(history: Panel, values: Floats) -> Floats:
    values[bins_seen(history.values) < HOUR_OF_WEEK_DAYS * max(1, history.bins(DAY))] = np.nan
    return values

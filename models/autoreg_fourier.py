"""Autoregression around waves of the day: latest values, the value a day ago, Fourier terms; fitted by statsmodels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .clean import UNMOVED, bins_seen, bounded, filled
from .fitted import LARGEST_GROWTH
from .library import Failed, attempted, failures
from .panel import DAY
from .residuals import Places, blind, fitted_residuals, residuals_of, too_short

if TYPE_CHECKING:
    from datetime import datetime

    from .model import Fitted
    from .panel import Floats, Panel
    from .residuals import Bins, Residuals

FOURIER_DAYS = 3
# Series of which the past is recomputed together: a day ahead from all origins, 60 MB.
FOURIER_ROWS = 128


@dataclass(frozen=True)
class AutoregFourier:
    """Least squares of the next value on the latest, the one a day ago, and waves of the day; steps follow each other.

        y(t) = c + Σᵢ φᵢ·y(t - i) + φ_day·y(t - day) + Σₖ aₖ·cos(2πkt/day) + bₖ·sin(2πkt/day)

    statsmodels' AutoReg finds the coefficients of each series; the recursion runs over all series, and over all past
    origins, at once. Needs three days. Source: Box, Jenkins, Time Series Analysis, chapter 5; Fourier terms:
    Hyndman and Athanasopoulos, Forecasting: Principles and Practice, 10.5.

    Attributes:
        lags: latest values used.
        daily: waves of the day.
        days: latest days used.

    >>> import numpy as np, datetime as dt
    >>> from models import Panel
    >>> monday = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    >>> wave = 10 + 5 * np.sin(np.arange(96) / 24 * 2 * np.pi)
    >>> panel = Panel(wave[None], monday, dt.timedelta(hours=1), ("shop/web",))
    >>> AutoregFourier().fit(panel).forecast(3, (0.5,)).values.round(1).tolist()
    [[[10.0, 11.3, 12.5]]]
    """

    lags: int = 3
    daily: int = 4
    days: int = 14
    name: str = "autoreg-fourier"

    def fit(self, panel: Panel) -> Fitted:
        """Fit one series after the other."""
        panel = panel.last(self.days * DAY)
        day = panel.bins(DAY)
        if day <= self.lags + 1 or panel.length < FOURIER_DAYS * day:
            return too_short(self.name, panel)
        seen, frequencies = bounded(panel), wave_frequencies(day, self.daily)
        known = filled(seen.values).astype(np.float64)
        lags = (*range(1, self.lags + 1), day)
        columns = waves(np.arange(panel.length), frequencies)[:, 1:]
        found = [attempted(self.name, fitted_coefficients, row, lags, columns) for row in known]
        width = 1 + len(lags) + columns.shape[1]
        coefficients = np.array([np.full(width, np.nan) if isinstance(one, Failed) else one for one in found])
        equation = Equation(panel.start, lags, frequencies, coefficients.reshape(len(panel), width))
        reasons = failures(panel.keys, found)
        return fitted_residuals(self.name, panel, equation, _hindsight(seen, known, equation), reasons)


@dataclass(frozen=True, eq=False)
class Equation:
    """Coefficients [series, 1 + lag + wave] and the instant from which waves are counted."""

    start: datetime
    lags: tuple[int, ...]
    frequencies: Floats
    coefficients: Floats

    def expected(self, history: Panel, steps: int) -> Floats:
        """See Expects."""
        bins = (history.end - self.start) // history.step
        reach = min(self.lags[-1], history.length)
        known = filled(history.values[:, history.length - reach :]).astype(np.float64)
        drive = self.drive(bins, steps)[:, None]
        point = continued(known, np.array([reach - 1]), self, drive)[:, 0]
        young = bins_seen(history.values) < FOURIER_DAYS * self.lags[-1]
        return np.where(young[:, None], np.nan, point)

    def drive(self, first: int, count: int) -> Floats:
        """[series, bin] the part that the clock drives, at bins counted from the start."""
        columns = waves(np.arange(first, first + count), self.frequencies)
        clock = np.concatenate([self.coefficients[:, :1], self.coefficients[:, 1 + len(self.lags) :]], axis=1)
        return np.asarray(clock @ columns.T)


def fitted_coefficients(values: Floats, lags: tuple[int, ...], columns: Floats) -> Floats:
    """Constant, lags, waves of one gapless series [time]; a series that does not move stays where it is."""
    still = np.zeros(1 + len(lags) + columns.shape[1])
    scale = np.std(values)
    if not scale > UNMOVED * np.abs(values).max():
        still[1] = 1.0
        return still
    found = np.asarray(library_model(values / scale, lags, columns).fit().params)
    if not np.isfinite(found).all():
        raise ArithmeticError("a coefficient is not finite")
    found[0] *= scale
    found[1 + len(lags) :] *= scale
    return found


def library_model(values: Floats, lags: tuple[int, ...], columns: Floats) -> Any:
    """Statsmodels' model of one gapless series [time] with columns [time, wave]."""
    from statsmodels.tsa.ar_model import AutoReg  # noqa: PLC0415  two seconds; only fitting needs it

    return AutoReg(values, lags=lags, trend="c", exog=columns)


def continued(known: Floats, origins: Bins, equation: Equation, drive: Floats) -> Floats:
    """[series, origin, step]: the recursion from every origin at once, driven by [series, origin, step].

    Held within a multiple of what is known, since an unstable equation runs away.
    """
    weights = equation.coefficients[:, 1 : 1 + len(equation.lags)]
    bound = LARGEST_GROWTH * np.abs(known).max(axis=1, initial=0.0, keepdims=True)
    steps = np.empty(drive.shape)
    for step in range(drive.shape[2]):
        value = drive[:, :, step].copy()
        for weight, lag in zip(weights.T, equation.lags, strict=True):
            back = steps[:, :, step - lag] if step >= lag else known[:, np.maximum(origins + 1 + step - lag, 0)]
            value += weight[:, None] * back
        steps[:, :, step] = np.clip(value, -bound, bound)
    return steps


def _hindsight(panel: Panel, known: Floats, equation: Equation) -> Residuals:
    places = Places.of(panel, equation.lags[-1])
    if not places:
        return blind(len(panel))
    parts = [slice(i, i + FOURIER_ROWS) for i in range(0, max(1, len(panel)), FOURIER_ROWS)]
    return residuals_of(
        panel, places, np.concatenate([_expected_then(known, equation, part, places) for part in parts])
    )


def _expected_then(known: Floats, equation: Equation, part: slice, places: Places) -> Floats:
    """[series, origin, anchor] for some of the series."""
    steps, some = int(places.anchors[-1]), replace(equation, coefficients=equation.coefficients[part])
    clock = some.drive(0, known.shape[1] + steps)
    drive = clock[:, places.origins[:, None] + np.arange(1, steps + 1)]
    return continued(known[part], places.origins, some, drive)[:, :, places.anchors - 1]


def wave_frequencies(day: int, daily: int) -> Floats:
    """Return cycles per bin of the first `daily` waves of the day, as far as a day of `day` bins shows them."""
    return np.arange(1, min(daily, (day - 1) // 2) + 1) / day


def waves(bins: Bins, frequencies: Floats) -> Floats:
    """[bin, 1 + 2·frequency]: a constant, then the cosines, then the sines."""
    angle = 2 * np.pi * bins[:, None] * frequencies
    return np.concatenate([np.ones((len(bins), 1)), np.cos(angle), np.sin(angle)], axis=1)

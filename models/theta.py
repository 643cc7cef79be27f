"""Theta: a smoothed level with half the drift of the trend line, around a season; fitted by statsmodels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from .clean import UNMOVED, bins_seen, bounded, filled
from .model import Fitted
from .panel import DAY, Floats, Panel
from .residuals import Bins, Places, Residuals, blind, fitted_residuals, residuals_of, too_short

THETA_DAYS = 3
# What the optimisers and the linear algebra of statsmodels raise; nothing of it leaves this file.
LIBRARY_ERRORS = (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError, np.linalg.LinAlgError)


class ThetaLine(NamedTuple):
    """Learned values of Theta per series: smoothing and drift [series], season [series, bin of the day]."""

    smoothing: Floats
    drift: Floats
    season: Floats


@dataclass(frozen=True)
class Theta:
    """The Theta method with an additive season of a day.

        expected(h) = l + (1 - 1/θ)·b·(h - 1 + 1/α - (1 - α)ⁿ/α) + season,  l' = l + α·(y - season - l)

    for n bins seen. statsmodels' ThetaModel finds season, drift b and smoothing α; levels of all series are then
    carried by one recursion, from cycle to cycle only over the new bins. A gap moves no level. Needs three days.
    Source: Assimakopoulos and Nikolopoulos 2000; the form is Hyndman and Billah, Unmasking the Theta method, 2003.

    Attributes:
        days: latest days used; a fit costs in proportion.
        theta: 1 leaves the drift out, 2 is the usual half of it.

    >>> import numpy as np, datetime as dt
    >>> from models import Panel
    >>> monday = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    >>> wave = 10 + 5 * np.sin(np.arange(96) / 24 * 2 * np.pi)
    >>> panel = Panel(wave[None], monday, dt.timedelta(hours=1), ("shop/web",))
    >>> Theta().fit(panel).forecast(3, (0.5,)).values.round(1).tolist()
    [[[10.0, 11.3, 12.5]]]
    """

    days: int = 7
    theta: float = 2.0
    name: str = "theta"

    def fit(self, panel: Panel) -> Fitted:
        """Fit one series after the other."""
        used = bounded(panel.last(min(self.days, panel.length // max(1, panel.bins(DAY))) * DAY))
        day = panel.bins(DAY)
        if day <= 1 or used.length < THETA_DAYS * day:
            return too_short(self.name, panel)
        known = filled(used.values).astype(np.float64)
        fits = [_attempted(self.name, row, day) for row in known]
        lines = _stacked(fits, day)
        weight = 1 - 1 / self.theta
        levels = smoothed(used.values - seasons(lines, np.arange(used.length)), lines, known[:, 0] - lines.season[:, 0])
        expects = Drifting(used.start, weight, lines, levels[:, -1], used.length)
        failures = {key: fit for key, fit in zip(panel.keys, fits, strict=True) if isinstance(fit, str)}
        return fitted_residuals(self.name, panel, expects, _residuals(used, lines, levels, weight), failures)


@dataclass(frozen=True, eq=False)
class Drifting:
    """Lines, and the level [series] after `bins` bins from `start`."""

    start: datetime
    weight: float
    lines: ThetaLine
    level: Floats
    bins: int

    def expected(self, history: Panel, steps: int) -> Floats:
        """See Expects."""
        bins = (history.end - self.start) // history.step
        level = self.level
        if bins > self.bins:
            latest = history.values[:, max(0, history.length - (bins - self.bins)) :]
            since = np.arange(bins - latest.shape[1], bins)
            level = smoothed(latest - seasons(self.lines, since), self.lines, level)[:, -1]
        ahead = np.arange(1, steps + 1)
        point = level[:, None] + drifted(self.lines, self.weight, bins, ahead) + seasons(self.lines, bins - 1 + ahead)
        young = bins_seen(history.values) < THETA_DAYS * self.lines.season.shape[1]
        return np.where(young[:, None], np.nan, point)


def _attempted(name: str, values: Floats, day: int) -> ThetaLine | str:
    """Fit the line of one gapless series [time], without the warnings of statsmodels; or say why that failed."""
    if find_spec("statsmodels") is None:
        return f"{name} needs statsmodels: pip install 'kube-forecaster[models]'; the last value is held"
    import statsmodels.tools.sm_exceptions  # noqa: F401, PLC0415  it sets filters when first imported; ours come after

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return fitted_line(values, day)
    except LIBRARY_ERRORS as error:
        return f"{name} could not be fitted ({type(error).__name__}: {error}); the last value is held"


def fitted_line(values: Floats, day: int) -> ThetaLine:
    """Smoothing, drift and season of one gapless series [time]."""
    scale = np.std(values)
    if not scale > UNMOVED * np.abs(values).max():
        return ThetaLine(np.array(0.5), np.array(0.0), np.zeros(day))
    result = library_model(values / scale, day).fit()
    drift, smoothing = result.params[["b0", "alpha"]]
    season = np.asarray(result._seasonal)  # noqa: SLF001  it has no public name
    line = ThetaLine(np.array(smoothing), np.array(drift * scale), season * scale)
    if not all(np.isfinite(part).all() for part in line):
        raise ArithmeticError(f"smoothing {smoothing} or drift {drift} is not finite")
    return line


def library_model(values: Floats, day: int) -> Any:
    """Statsmodels' model of one gapless series [time]."""
    from statsmodels.tsa.forecasting.theta import ThetaModel  # noqa: PLC0415  two seconds; only fitting needs it

    return ThetaModel(values, period=day, deseasonalize=True, use_test=False, method="additive")


def seasons(lines: ThetaLine, bins: Bins) -> Floats:
    """[series, bin] at bins counted from the first one that was learned from."""
    return np.asarray(lines.season[:, bins % lines.season.shape[1]])


def smoothed(values: Floats, lines: ThetaLine, level: Floats) -> Floats:
    """[series, time] levels after each bin of deseasonalised values; a gap moves nothing."""
    levels = np.empty((values.shape[1], len(values)))
    for i, column in enumerate(values.T):
        error = column - level
        level = level + lines.smoothing * np.where(np.isnan(error), 0.0, error)
        levels[i] = level
    return levels.T


def drifted(lines: ThetaLine, weight: float, bins: int | Bins, ahead: Bins) -> Floats:
    """[series, ...] the share of the drift that many steps ahead, once `bins` bins are known."""
    smoothing = lines.smoothing.reshape(-1, *(1 for _ in np.shape(ahead)))
    known = (1 - (1 - smoothing) ** bins) / np.where(smoothing > 0, smoothing, 1.0)
    return np.asarray(weight * lines.drift.reshape(smoothing.shape) * (ahead - 1 + known))


def _residuals(panel: Panel, lines: ThetaLine, levels: Floats, weight: float) -> Residuals:
    places = Places.of(panel, panel.bins(DAY))
    if not places:
        return blind(len(panel))
    ahead = np.broadcast_to(places.anchors, (len(places.origins), len(places.anchors)))
    drift = drifted(lines, weight, (places.origins + 1)[:, None], ahead)
    expected = levels[:, places.origins, None] + drift + seasons(lines, places.ahead())
    days = panel.length // panel.bins(DAY)
    return residuals_of(panel, places, expected, stretch=days / (days - 1))


def _stacked(fits: list[ThetaLine | str], day: int) -> ThetaLine:
    """NaN for series that could not be fitted."""
    nothing = ThetaLine(np.array(np.nan), np.array(np.nan), np.zeros(day))
    lines = [nothing if isinstance(fit, str) else fit for fit in fits]
    numbers = np.array([(line.smoothing, line.drift) for line in lines]).reshape(len(lines), 2)
    return ThetaLine(numbers[:, 0], numbers[:, 1], np.array([line.season for line in lines]).reshape(len(lines), day))

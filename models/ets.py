"""ETS: exponential smoothing of level, damped trend, season; parameters from statsmodels, states carried by numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .clean import UNMOVED, bins_seen, bounded, filled
from .library import Failed, attempted, failures
from .panel import DAY
from .residuals import Places, Residuals, blind, fitted_residuals, residuals_of, too_short, unable

if TYPE_CHECKING:
    from datetime import datetime

    from .model import Fitted
    from .panel import Floats, Panel
    from .residuals import Bins

# The latest week is smoothed; the days before it, two at least, make the first season.
SMOOTHED_DAYS, START_DAYS, LEAST_DAYS = 7, 2, 3
# statsmodels copies the whole season at each bin, so its cost grows with the square of this.
LONGEST_SEASON = 1440


class Parameters(NamedTuple):
    """Smoothing of level, trend and season, and damping of the trend: each [series]."""

    level: Floats
    trend: Floats
    season: Floats
    damping: Floats


class States(NamedTuple):
    """Level and trend [series], and the season [bin of the coming day, series]."""

    level: Floats
    trend: Floats
    season: Floats

    def of(self, series: int) -> States:
        """Return the states of one series, with the series axis kept."""
        return States(self.level[series, None], self.trend[series, None], self.season[:, series, None])

    def scaled(self, factor: float) -> States:
        """Return the states in another unit."""
        return States(*(part * factor for part in self))


class EtsTrack(NamedTuple):
    """Level and trend after each bin [time, series]; the season [day + time, series], the first day before any bin."""

    level: Floats
    trend: Floats
    season: Floats

    def after(self, bins: int) -> States:
        """The states after so many bins."""
        day = len(self.season) - len(self.level)
        return States(self.level[bins - 1], self.trend[bins - 1], self.season[bins : bins + day])


@dataclass(frozen=True)
class Ets:
    """ETS(A, Ad, A): additive errors, damped trend, additive season of a day.

        expected = l + φ·b + s(t - day);  e = y - expected
        l' = l + φ·b + α·e;  b' = φ·b + β·e;  s(t) = s(t - day) + γ·e

    statsmodels' ETSModel fits α, β, γ, φ to the latest days of each series, in a bounded number of iterations; the
    recursion then runs over all series at once, and from cycle to cycle only over the new bins. A gap moves no state.
    Needs three days. Source: Hyndman, Koehler, Ord, Snyder, Forecasting with Exponential Smoothing, 2008, table 2.1.

    Attributes:
        days: latest days used.
        iterations: of the optimiser; five come within a thousandth of the optimum on recorded load.

    >>> import numpy as np, datetime as dt
    >>> from models import Panel
    >>> monday = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    >>> wave = 10 + 5 * np.sin(np.arange(96) / 24 * 2 * np.pi)
    >>> panel = Panel(wave[None], monday, dt.timedelta(hours=1), ("shop/web",))
    >>> Ets().fit(panel).forecast(3, (0.5,)).values.round(1).tolist()
    [[[10.0, 11.3, 12.5]]]
    """

    days: int = 14
    iterations: int = 5
    name: str = "ets"

    def fit(self, panel: Panel) -> Fitted:
        """Fit one series after the other, then follow the states of blocks of series, so that memory stays bounded."""
        panel = panel.last(self.days * DAY)
        day = panel.bins(DAY)
        if day > LONGEST_SEASON:
            return unable(self.name, panel, f"a day of {day} bins is too long for {self.name}; the last value is held")
        if day <= 1 or panel.length < LEAST_DAYS * day:
            return too_short(self.name, panel)
        start, newest = _split(bounded(panel), day)
        first = first_states(filled(start.values), day)
        found = [self._parameters(newest.values[i], first.of(i)) for i in range(len(panel))]
        parameters = Parameters(*np.array([_or_nothing(one) for one in found]).reshape(len(panel), 4).T)
        path = track(newest.values.T, parameters, first)
        smoothed = Smoothed(panel.end, parameters, path.after(newest.length))
        seen = _hindsight(newest, path, parameters)
        return fitted_residuals(self.name, panel, smoothed, seen, failures(panel.keys, found))

    def _parameters(self, values: Floats, first: States) -> Parameters | Failed:
        """Parameters of one series [time]."""
        known = filled(values[None])[0].astype(np.float64)
        scale = np.std(known)
        if not scale > UNMOVED * np.abs(known).max():
            return STILL_PARAMETERS
        return attempted(self.name, fitted_parameters, known / scale, first.scaled(1 / scale), self.iterations)


# A series that does not move teaches nothing: these are taken.
STILL_PARAMETERS = Parameters(np.array(0.1), np.array(0.0), np.array(0.0), np.array(0.9))


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Parameters and the states at an instant; what came since is smoothed in when asked."""

    at: datetime
    parameters: Parameters
    states: States

    def expected(self, history: Panel, steps: int) -> Floats:
        """See Expects."""
        day = len(self.states.season)
        bins = (history.end - self.at) // history.step
        states = self.states
        if bins:
            newest = history.values[:, max(0, history.length - bins) :].T
            gap = np.full((bins - len(newest), len(history)), np.nan)
            states = track(np.concatenate([gap, newest]), self.parameters, states).after(bins)
        point = ahead(self.parameters, states, steps).T
        young = bins_seen(history.values) < LEAST_DAYS * day
        broken = ~np.isfinite(self.parameters.level)
        return np.where((young | broken)[:, None], np.nan, point)


def fitted_parameters(values: Floats, states: States, iterations: int) -> Parameters:
    """α, β, γ, φ of one series [time] by maximum likelihood, from given first states."""
    model = library_model(values, states)
    level, trend, season, damping = model.fit(maxiter=iterations, disp=False, return_params=True)[:4]
    if not np.isfinite([level, trend, season, damping]).all():
        raise ArithmeticError(f"parameters {level}, {trend}, {season}, {damping} are not finite")
    return Parameters(level, trend, season, damping)


def library_model(values: Floats, states: States) -> Any:
    """Statsmodels' model of one series [time] with known first states."""
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel  # noqa: PLC0415  two seconds; only fitting needs it

    return ETSModel(
        values,
        error="add",
        trend="add",
        damped_trend=True,
        seasonal="add",
        seasonal_periods=len(states.season),
        initialization_method="known",
        initial_level=states.level[0],
        initial_trend=states.trend[0],
        initial_seasonal=states.season[:, 0],
    )


def first_states(values: Floats, day: int) -> States:
    """States after gapless values [series, time] of whole days: means by clock time around the mean, no trend."""
    profile = values.astype(np.float64).reshape(len(values), values.shape[1] // day, day).mean(axis=1)
    level = profile.mean(axis=1)
    return States(level, np.zeros(len(values)), (profile - level[:, None]).T.copy())


def track(values: Floats, parameters: Parameters, states: States) -> EtsTrack:
    """Run the recursion over values [time, series] of all series."""
    count, day = len(values), len(states.season)
    levels, trends = np.empty((count, values.shape[1])), np.empty((count, values.shape[1]))
    seasons = np.concatenate([states.season, np.empty((count, values.shape[1]))])
    level, trend = states.level, states.trend
    for i in range(count):
        trend = parameters.damping * trend
        level = level + trend
        error = values[i] - level - seasons[i]
        error = np.where(np.isnan(error), 0.0, error)
        level = level + parameters.level * error
        trend = trend + parameters.trend * error
        levels[i], trends[i], seasons[i + day] = level, trend, seasons[i] + parameters.season * error
    return EtsTrack(levels, trends, seasons)


def ahead(parameters: Parameters, states: States, steps: int) -> Floats:
    """[step, series] expected values from one state."""
    season = states.season[np.arange(steps) % len(states.season)]
    return states.level + damped(parameters.damping, np.arange(1, steps + 1)) * states.trend + season


def damped(damping: Floats, steps: Bins) -> Floats:
    """[step, series] φ + φ² + ... + φ^step."""
    powers = np.cumsum(damping ** np.arange(1, steps.max() + 1)[:, None], axis=0)
    return np.asarray(powers[steps - 1])


def _split(panel: Panel, day: int) -> tuple[Panel, Panel]:
    """Whole days to start from, and the latest days to smooth."""
    days = panel.length // day
    smoothed = min(SMOOTHED_DAYS, days - START_DAYS) * DAY
    newest = panel.last(smoothed)
    return panel.until(newest.start).last((days * DAY) - smoothed), newest


def _hindsight(panel: Panel, path: EtsTrack, parameters: Parameters) -> Residuals:
    """What the states would have said at past origins, and how wrong it was."""
    places = Places.of(panel, 1)
    if not places:
        return blind(len(panel))
    day = panel.bins(DAY)
    same_clock = places.origins[:, None] + 1 + (places.anchors - 1) % day
    drift = damped(parameters.damping, places.anchors) * path.trend[places.origins][:, None]
    expected = path.level[places.origins][:, None] + drift + path.season[same_clock]
    return residuals_of(panel, places, expected.transpose(2, 0, 1))


def _or_nothing(found: Parameters | Failed) -> Parameters:
    return Parameters(*np.full(4, np.nan)) if isinstance(found, Failed) else found

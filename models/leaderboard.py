"""Leaderboard: models beside each other on the past of a panel, as a table and as a picture, in two lines.

    board = compare(panel, ["seasonal-naive-day", "theta", MyModel()])
    board.table(), board.plot()

Every model is fitted and asked at the same past origins, and sees only what was known there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .errors import QuestionError
from .evaluate import EVALUATION_WINDOW, SCORED_LEVELS, Score, cost_of_reserve, leaderboard, origins
from .forecast import checked_levels
from .past_forecasts import Backtest, Winner, error_bar, relative_draws, winner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd
    from matplotlib.figure import Figure

    from .forecast import Forecast, Peak, StepWindow
    from .model import Fitted, Model
    from .panel import Floats, Panel

Result = TypeVar("Result")
REFERENCE = "seasonal-naive-day"


@dataclass(frozen=True)
class Entry:
    """One model on the board.

    Attributes:
        backtest: its forecasts beside what came.
        cost: [series] cost of reserving its highest level, a missing unit costing nineteen idle ones.
        milliseconds: time for one series at one origin, fit and forecast.
    """

    backtest: Backtest
    cost: Floats
    milliseconds: float

    @property
    def score(self) -> Score:
        """All origins together, per series."""
        return self.backtest.score


@dataclass(frozen=True, repr=False)
class Leaderboard:
    """What `compare` found; `reference` is the model against which losses are relative."""

    entries: Mapping[str, Entry]
    reference: str

    def table(self) -> pd.DataFrame:
        """One row per model, best first.

        Columns: sQL_rel and cost_rel (geometric mean over series of loss and cost relative to the reference; below 1 is
        better), low and high (the error bar of sQL_rel: nine in ten draws of other origins lie within), MASE, cov50,
        cov90, ... (share of values at or below that quantile; right is the level), unanswered (share without a
        forecast of its own), ms (per series and origin).
        """
        table = leaderboard([entry.score for entry in self.entries.values()], self.reference)
        base = self.entries[self.reference]
        entries = [self.entries[name] for name in table.index]
        bars = [error_bar(relative_draws(entry.backtest, base.backtest)) for entry in entries]
        table.insert(1, "low", [low for low, _ in bars])
        table.insert(2, "high", [high for _, high in bars])
        table.insert(3, "cost_rel", [relative(entry.cost, base.cost) for entry in entries])
        table["unanswered"] = [entry.backtest.unanswered for entry in entries]
        return table.assign(ms=[entry.milliseconds for entry in entries])

    def __getitem__(self, name: str) -> Backtest:
        """The backtest of one model."""
        if name not in self.entries:
            raise QuestionError(f"{name!r} was not compared; these were: {', '.join(self.entries)}")
        return self.entries[name].backtest

    @property
    def backtests(self) -> list[Backtest]:
        """Return the backtest of every model, in the order in which they were named."""
        return [entry.backtest for entry in self.entries.values()]

    def winner(self) -> Winner:
        """The model to choose; none where a tenth is unanswered, or where chance explains the difference."""
        return winner_of(self.backtests, self.reference)

    def __repr__(self) -> str:
        return f"{self.table().round(3).to_string()}\n{self.winner()}"

    def _repr_html_(self) -> str:
        return f"<p>{self.winner()}</p>{self.table().round(3).to_html()}"

    def per_series(self) -> pd.DataFrame:
        """Loss (sQL) of each series (row) under each model (column): which model is best for which workload."""
        import pandas as pd  # noqa: PLC0415  a table for people; the service does without pandas

        scores = [entry.score for entry in self.entries.values()]
        return pd.DataFrame({score.name: score.loss for score in scores}, index=list(scores[0].keys))

    def plot(self) -> Figure:
        """Losses as bars with error bars, best on top, and how far coverage is off its level."""
        from .pictures import plot_losses  # noqa: PLC0415  a picture for people; half a second

        return plot_losses(self.table(), self.reference, self.backtests[0].levels)

    def plot_origins(self, names: Sequence[str] = ()) -> Figure:
        """Loss at each origin, a line a model."""
        from .pictures import plot_origins  # noqa: PLC0415  as above

        return plot_origins([self[name] for name in names] or self.backtests)

    def plot_calibration(self, names: Sequence[str] = ()) -> Figure:
        """The share at or below each quantile against its level, with error bars."""
        from .pictures import plot_calibration  # noqa: PLC0415  as above

        return plot_calibration([self[name] for name in names] or self.backtests)


def compare(
    panel: Panel,
    models: Sequence[str | Model],
    *,
    steps: int = 12,
    count: int = 10,
    levels: Sequence[float] = SCORED_LEVELS,
    reference: str = REFERENCE,
    clock: Callable[[], float] = perf_counter,
) -> Leaderboard:
    """Score models at `count` past origins of the latest 40 % of a panel, `steps` ahead.

    The reference takes part whether it is named or not. Models are names as in `create`, or specs.

    Raises:
        QuestionError: an unknown model, two of one name, or a panel too short for origins.
    """
    at, asked = origins(panel, count, steps=steps), checked_levels(levels)
    found = _specs(models, reference)
    entries = {}
    for name, model in found.items():
        watched = WatchedModel(model, clock)
        for origin in at:
            watched.fit(panel.until(origin).last(EVALUATION_WINDOW)).forecast(steps, asked)
        spent = 1000 * watched.spent / (len(at) * max(1, len(panel)))
        test = Backtest(name, panel, tuple(watched.forecasts), EVALUATION_WINDOW)
        entries[name] = Entry(test, watched.cost(panel), spent)
    return Leaderboard(entries, reference)


def relative(loss: Floats, base: Floats) -> float:
    """Geometric mean of loss / base over the series for which both are positive."""
    both = np.isfinite(loss) & np.isfinite(base) & (loss > 0) & (base > 0)
    return float(np.exp(np.mean(np.log(loss[both] / base[both])))) if both.any() else float("nan")


@dataclass
class WatchedModel:
    """A model with a stopwatch that keeps the forecasts it made."""

    model: Model
    clock: Callable[[], float]
    spent: float = 0.0
    forecasts: list[Forecast] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self.model.name

    def fit(self, panel: Panel) -> Fitted:
        """The fitted model, watched as well."""
        return WatchedFitted(self.timed(lambda: self.model.fit(panel)), self)

    def timed(self, work: Callable[[], Result]) -> Result:
        """The result of some work; its time is added."""
        begin = self.clock()
        result = work()
        self.spent += self.clock() - begin
        return result

    def cost(self, panel: Panel) -> Floats:
        """[series] mean cost of the highest quantile as a reserve, NaN where there was none."""
        costs = [_cost(panel, forecast) for forecast in self.forecasts]
        known = np.isfinite(costs)
        total = np.where(known, costs, 0.0).sum(axis=0)
        return np.where(known.any(axis=0), total / np.maximum(1, known.sum(axis=0)), np.nan)


@dataclass
class WatchedFitted:
    """A fitted model with forecasts that are timed and kept."""

    fitted: Fitted
    watch: WatchedModel

    def update(self, panel: Panel) -> Fitted:
        """See Fitted.update."""
        return WatchedFitted(self.fitted.update(panel), self.watch)

    def forecast(self, steps: int, quantiles: Sequence[float]) -> Forecast:
        """See Fitted.forecast."""
        found = self.watch.timed(lambda: self.fitted.forecast(steps, quantiles))
        self.watch.forecasts.append(found)
        return found

    def forecast_peak(self, window: StepWindow, quantiles: Sequence[float]) -> Peak:
        """See Fitted.forecast_peak."""
        return self.fitted.forecast_peak(window, quantiles)


def _specs(models: Sequence[str | Model], reference: str) -> dict[str, Model]:
    """Return the models by name; a name with settings stays as it was asked for."""
    from . import create  # noqa: PLC0415  the catalogue imports every model; this module is no part of it

    named = [(one, create(one)) if isinstance(one, str) else (one.name, one) for one in models]
    names = [name for name, _ in named]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise QuestionError(f"two models are called {twice[0]!r}; give one another name")
    return dict(named if reference in names else [(reference, create(reference)), *named])


def _cost(panel: Panel, forecast: Forecast) -> Floats:
    """[series] of a panel, NaN without a forecast or without a known value."""
    first = (forecast.origin - panel.start) // panel.step
    actual = panel.values[:, first : first + forecast.steps].astype(np.float64)
    rows = forecast.provenance.rows(panel.keys)
    out = np.full(len(panel), np.nan)
    scored = np.flatnonzero((rows >= 0) & np.isfinite(actual).any(axis=1))
    out[scored] = cost_of_reserve(actual[scored], forecast.values[rows[scored], -1])
    return out

"""Leaderboard: models beside each other on the past of a panel, as a table and as a picture, in two lines.

    board = compare(panel, ["seasonal-naive-day", "theta", MyModel()])
    board.table(), board.plot()

Every model is fitted and asked at the same past origins, and sees only what was known there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from .checks import answering, check_forecast
from .errors import QuestionError
from .evaluate import EVALUATION_WINDOW, SCORED_LEVELS, Backtest, above_zero, draws, error_bar, known_mean, origins
from .forecast import checked_levels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from .model import Model
    from .panel import Floats, Panel

REFERENCE = "seasonal-naive-day"


@dataclass(frozen=True, repr=False)
class Leaderboard:
    """Results of `compare`.

    Attributes:
        tests: the backtest of each model, by name, in the order in which they were asked for.
        milliseconds: time for one series at one origin, fit and forecast, by model.
        reference: the model against which losses are relative.
    """

    tests: Mapping[str, Backtest]
    milliseconds: Mapping[str, float]
    reference: str

    def table(self) -> pd.DataFrame:
        """One row per model, best first.

        Columns: sQL_rel and cost_rel (geometric mean over series of loss and cost relative to the reference; below 1 is
        better), low and high (the error bar of sQL_rel: nine in ten draws of these origins lie within), MASE, cov50,
        cov90, ... (share of values at or below that quantile; right is the level), unanswered (share without a
        forecast of its own), ms (per series and origin).
        """
        import pandas as pd  # noqa: PLC0415  a table for people; the service does without pandas

        rows = {name: self._row(name) for name in self.tests}
        return pd.DataFrame.from_dict(rows, orient="index").sort_values("sQL_rel")

    def _row(self, name: str) -> Mapping[str, float]:
        test, base = self[name], self[self.reference]
        score, (low, high) = test.score, error_bar(relative_draws(test, base))
        shares = {f"cov{100 * level:g}": float(known_mean(score.coverage[:, i])) for i, level in enumerate(test.levels)}
        return {
            "sQL_rel": float(relative(score.loss, base.score.loss)),
            "low": low,
            "high": high,
            "cost_rel": float(relative(test.cost, base.cost)),
            "MASE": float(known_mean(score.mase)),
            **shares,
            "unanswered": test.unanswered,
            "ms": self.milliseconds[name],
        }

    def __getitem__(self, name: str) -> Backtest:
        """The backtest of one model."""
        if name not in self.tests:
            raise QuestionError(f"{name!r} was not compared; these were: {', '.join(self.tests)}")
        return self.tests[name]

    @property
    def backtests(self) -> list[Backtest]:
        """Return the backtest of every model, in the order in which they were named."""
        return list(self.tests.values())

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

        keys = list(self.backtests[0].panel.keys)
        return pd.DataFrame({name: test.score.loss for name, test in self.tests.items()}, index=keys)

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
        ContractError: a model raises, or answers with something else than quantiles.
    """
    at, quantiles = origins(panel, count, steps=steps), checked_levels(levels)
    tests, milliseconds = {}, {}
    for name, model in _specs(models, reference).items():
        forecasts, spent = [], 0.0
        for origin in at:
            past, begin = panel.until(origin).last(EVALUATION_WINDOW), clock()
            where = f"the panel until {origin:%Y-%m-%d %H:%M} UTC; models.checks.check_model tests all that it promises"
            with answering(model, where):
                forecasts.append(model.fit(past).forecast(steps, quantiles))
            spent += clock() - begin
            check_forecast(model, where, past, forecasts[-1], (len(quantiles), steps))
        tests[name] = Backtest(name, panel, tuple(forecasts))
        milliseconds[name] = 1000 * spent / (len(at) * max(1, len(panel)))
    return Leaderboard(tests, milliseconds, reference)


def relative(loss: Floats, base: Floats, axis: int | None = None) -> Floats:
    """Geometric mean of loss / base over the series for which both are positive; NaN where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.exp(known_mean(np.log(loss / base), axis))


def _specs(models: Sequence[str | Model], reference: str) -> dict[str, Model]:
    """Return the models by name; a name with settings stays as it was written."""
    from . import create  # noqa: PLC0415  the catalogue imports every model; this module is no part of it

    named = [(model, create(model)) if isinstance(model, str) else (model.name, model) for model in models]
    names = [name for name, _ in named]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise QuestionError(f"two models are called {twice[0]!r}; give one another name")
    return dict(named if reference in names else [(reference, create(reference)), *named])


def relative_draws(test: Backtest, base: Backtest) -> Floats:
    """[draw] geometric mean over series of the loss of one relative to another, on the origins that were drawn."""
    drawn = draws(len(test.forecasts))
    own, other = (drawn @ each.summed("loss") / above_zero(drawn @ each.summed("scale")) for each in (test, base))
    return relative(own, other, axis=1)


MAX_UNANSWERED = 0.1
"""Largest share of unanswered questions: a model that answers selectively is judged on easier questions."""
MIN_ORIGINS = 3
"""Draws of one or two origins are all alike: they say nothing of chance."""


@dataclass(frozen=True, slots=True)
class Winner:
    """The model to choose, or none, and why."""

    name: str | None
    reason: str

    def __str__(self) -> str:
        """The reason: it names the model."""
        return self.reason


def winner_of(tests: Sequence[Backtest], reference: str) -> Winner:
    """The model of least loss; none where a tenth is unanswered, or where chance may have chosen it."""
    open_ = [test for test in tests if test.unanswered > MAX_UNANSWERED]
    if tests[0].unscored > MAX_UNANSWERED:
        return Winner(None, f"no winner: {tests[0].unscored:.0%} of what came is not known; take days without gaps")
    if open_:
        named = ", ".join(f"{test.name} {test.unanswered:.0%}" for test in open_)
        remedy = "leave such a model out, ask for fewer steps, or give it a longer history"
        return Winner(None, f"no winner: unanswered by {named}; {remedy}")
    base = next(test for test in tests if test.name == reference)
    best, *others = sorted(tests, key=lambda test: np.nan_to_num(known_mean(relative_draws(test, base)), nan=np.inf))
    if not others:
        return Winner(best.name, f"{best.name} was compared with nothing")
    low, high = error_bar(relative_draws(best, others[0]))
    if np.isnan(low):
        return Winner(None, "no winner: no loss is comparable; take load that changes from one day to the next")
    name, between = best.name, f"{low:.2f} to {high:.2f} of the loss of {others[0].name}"
    if high >= 1 or len(best.forecasts) < MIN_ORIGINS:
        return Winner(None, f"no winner: {name} has {between}, which chance explains; take the simpler, or ask more")
    return Winner(name, f"{name}: {between}, the next best, on {len(best.forecasts)} origins")

"""Backtest: one model's forecasts at past origins beside what came, with errors per origin and their error bars."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .display import level_text, number, span_text, table
from .evaluate import EVALUATION_WINDOW, Score, Tally, actual_after, score_of, tally

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    import numpy.typing as npt
    import pandas as pd
    from matplotlib.figure import Figure

    from .forecast import Forecast
    from .panel import Floats, Panel

DRAWS = 1000
"""Draws of origins for an error bar; its ends move by a twentieth of its width with another seed."""
SEED = 7
OUTER = (0.05, 0.95)
"""Quantiles of the draws: nine times in ten the figure of other origins of the same days lies within."""


@dataclass(frozen=True, eq=False, repr=False)
class Backtest:
    """Forecasts of one model at past origins of one panel; each saw only what was known then.

    Attributes:
        name: the model.
        panel: what was measured, before and after the origins.
        forecasts: one an origin, of equal steps and levels.
        memory: how much of the past the model saw.
    """

    name: str
    panel: Panel
    forecasts: tuple[Forecast, ...]
    memory: timedelta = EVALUATION_WINDOW

    @property
    def origins(self) -> tuple[datetime, ...]:
        """Return the origins of the forecasts."""
        return tuple(one.origin for one in self.forecasts)

    @property
    def levels(self) -> tuple[float, ...]:
        """The quantile levels asked for."""
        return self.forecasts[0].levels

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """The sums of each origin."""
        return tuple(
            tally(self.panel.until(one.origin).last(self.memory), actual_after(self.panel, one.origin, one.steps), one)
            for one in self.forecasts
        )

    @cached_property
    def score(self) -> Score:
        """All origins together, per series."""
        return score_of(self.name, self.panel.keys, self.levels, self.tallies)

    @cached_property
    def unanswered(self) -> float:
        """Share of series and origins without a forecast of this model: none at all, or one of its fallback."""
        asked = len(self.forecasts) * max(1, len(self.panel))
        own = sum(sum(not why for why in one.provenance.reasons) for one in self.forecasts)
        return 1 - own / asked

    @property
    def unscored(self) -> float:
        """Share of the values asked for of which nothing is known that came."""
        came = [actual_after(self.panel, one.origin, one.steps) for one in self.forecasts]
        return float(np.isnan(came).mean())

    def to_frame(self) -> pd.DataFrame:
        """One row an origin and series: loss and error in the usual change over a day, coverage per level."""
        import pandas as pd  # noqa: PLC0415  a table for people; the service does without pandas

        index = pd.MultiIndex.from_product([self.origins, self.panel.keys], names=["origin", "series"])
        with np.errstate(invalid="ignore", divide="ignore"):
            columns = {"loss": 2 * self.summed("loss") / self.summed("scale")}
            columns["error"] = self.summed("error") / self.summed("scale")
            shares = np.stack([one.hits / one.scored[:, None] for one in self.tallies])
        columns |= {f"cov{100 * level:g}": shares[:, :, i] for i, level in enumerate(self.levels)}
        return pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index)

    def summed(self, name: str) -> Floats:
        """[origin, series] of one field of the tallies."""
        return np.stack([getattr(one, name) for one in self.tallies])

    def calibration(self) -> pd.DataFrame:
        """Per level the share of values at or below it, with the ends of its error bar."""
        import pandas as pd  # noqa: PLC0415  as above

        hits = np.stack([one.hits.sum(axis=0) for one in self.tallies])
        scored = np.stack([one.scored.sum() for one in self.tallies])
        drawn = draws(len(hits))
        with np.errstate(invalid="ignore"):
            shares = (drawn @ hits) / (drawn @ scored)[:, None]
            share = hits.sum(axis=0) / scored.sum()
        low, high = np.nanquantile(shares, OUTER, axis=0)
        return pd.DataFrame({"share": share, "low": low, "high": high}, index=pd.Index(self.levels, name="level"))

    def plot(self, key: str = "", count: int = 4) -> Figure:
        """Cut-offs: what was forecast at some origins, and what came; the origins with the largest errors first."""
        from .pictures import plot_cut_offs  # noqa: PLC0415  a picture for people

        return plot_cut_offs(self, self.panel.key(key) if key else self.panel.keys[0], count)

    def plot_calibration(self) -> Figure:
        """The share at or below each quantile against its level; the diagonal is right."""
        from .pictures import plot_calibration  # noqa: PLC0415  as above

        return plot_calibration([self])

    def worst_origins(self, key: str, count: int) -> list[int]:
        """Places of the origins with the largest loss of one series, in the order of time."""
        loss = self.summed("loss")[:, self.panel.keys.index(key)]
        return sorted(np.argsort(-loss)[:count].tolist())

    def __repr__(self) -> str:
        first = self.forecasts[0]
        said = f"Backtest of {self.name}: {len(self.forecasts)} origins, {first.steps} steps of {span_text(first.step)}"
        return f"{said}; {self.unanswered:.0%} unanswered"

    def _repr_html_(self) -> str:
        heads = ("series", "loss (sQL)", "MASE", *(f"at or below {level_text(level)}" for level in self.levels))
        rows = [
            (key, number(self.score.loss[i]), number(self.score.mase[i]), *map(number, self.score.coverage[i]))
            for i, key in enumerate(self.panel.keys[:12])
        ]
        return f"<p>{self!r}</p>{table(heads, rows, len(self.panel))}"


def draws(count: int) -> npt.NDArray[np.float64]:
    """[draw, origin] how often each origin is drawn, of as many with replacement."""
    rng = np.random.default_rng(SEED)
    return rng.multinomial(count, np.full(count, 1 / count), size=DRAWS).astype(np.float64)


def relative_draws(one: Backtest, base: Backtest) -> Floats:
    """[draw] geometric mean over series of the loss of one relative to another, on the origins that were drawn."""
    drawn = draws(len(one.forecasts))
    with np.errstate(invalid="ignore", divide="ignore"):
        losses = [(drawn @ each.summed("loss")) / (drawn @ each.summed("scale")) for each in (one, base)]
        ratio = np.log(losses[0] / losses[1])
    known = np.isfinite(ratio)
    total = np.where(known, ratio, 0.0).sum(axis=1)
    return np.where(known.any(axis=1), np.exp(total / np.maximum(1, known.sum(axis=1))), np.nan)


def error_bar(values: Floats) -> tuple[float, float]:
    """The ends of an error bar of draws; NaN where nothing is known."""
    known = values[np.isfinite(values)]
    return tuple(np.quantile(known, OUTER).tolist()) if len(known) else (float("nan"), float("nan"))


MOST_UNANSWERED = 0.1
"""A model that answers what it likes is judged on easier questions than the others."""


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
    open_ = [one for one in tests if one.unanswered > MOST_UNANSWERED]
    if tests[0].unscored > MOST_UNANSWERED:
        return Winner(None, f"no winner: {tests[0].unscored:.0%} of what came is not known; take days without gaps")
    if open_:
        named = ", ".join(f"{one.name} {one.unanswered:.0%}" for one in open_)
        return Winner(None, f"no winner: unanswered by {named}; leave such a model out, or give it a longer history")
    base = next(one for one in tests if one.name == reference)
    ranked = sorted((float(np.nanmean(relative_draws(one, base))), one.name, one) for one in tests)
    (_, name, best), others = ranked[0], ranked[1:]
    if not others:
        return Winner(name, f"{name} was compared with nothing")
    low, high = error_bar(relative_draws(best, others[0][2]))
    between = f"{low:.2f} to {high:.2f} of the loss of {others[0][1]}"
    if high >= 1:
        return Winner(None, f"no winner: {name} has {between}, which chance explains; take the simpler, or ask more")
    return Winner(name, f"{name}: {between}, the next best, on {len(best.forecasts)} origins")

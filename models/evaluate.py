"""Losses of quantile forecasts at past origins, and one model's forecasts beside what came; NaN is not scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from .clean import filled
from .display import level_text, number, span_text, table
from .errors import QuestionError
from .panel import DAY, Floats, Panel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from .forecast import Forecast

# A missing unit costs as much as nineteen idle ones: the price at which p95 is the right reserve.
PRICE_OF_MISSING = 19.0


def pinball(actual: Floats, quantiles: Floats, levels: Sequence[float]) -> Floats:
    """max(q·(y-p), (q-1)·(y-p)) for actual [..., step] and quantiles [..., level, step]: [..., level, step]."""
    level = np.asarray(levels)[:, None]
    missing = actual[..., None, :] - quantiles
    return np.maximum(level * missing, (level - 1) * missing)


def coverage(actual: Floats, quantiles: Floats) -> Floats:
    """Share of values at or below the quantile, per level: [..., level]. Right is the level itself."""
    known = np.isfinite(actual)[..., None, :]
    below = (actual[..., None, :] <= quantiles) & known
    return np.asarray(below.sum(axis=-1) / np.maximum(1, known.sum(axis=-1)))


def cost_of_reserve(actual: Floats, reserve: Floats) -> Floats:
    """Mean cost of a reserve when a missing unit costs PRICE_OF_MISSING idle ones."""
    missing = actual - reserve
    return known_mean(np.where(missing > 0, PRICE_OF_MISSING * missing, -missing), axis=-1)


def known_mean(values: Floats, axis: int | None = None) -> Floats:
    """Mean of the finite values along an axis; NaN without any."""
    known = np.isfinite(values)
    return np.asarray(np.where(known, values, 0.0).sum(axis=axis) / above_zero(known.sum(axis=axis)))


def above_zero(values: npt.ArrayLike) -> Floats:
    """Values to divide by; NaN where one is 0."""
    return np.where(np.asarray(values) > 0, values, np.nan)


def seasonal_scale(history: Floats, season: int) -> Floats:
    """[series] mean |y(t) - y(t - season)| of filled history [series, time]: the unit of scaled losses."""
    return np.asarray(np.abs(history[:, season:] - history[:, :-season]).mean(axis=1))


SCORED_LEVELS = (0.5, 0.9, 0.95)
EVALUATION_WINDOW = 14 * DAY
"""History that a model sees, as in the service."""


@dataclass(frozen=True)
class Score:
    """Score of one model on a panel, per series; NaN where never scored, losses also where it never changes.

    Attributes:
        loss: sQL, 2 · mean pinball over the levels / mean change over a day, summed over origins before dividing.
        mase: mean |y - p50| / mean change over a day; NaN where p50 was not asked for.
        coverage: [series, level] share of values at or below the quantile.
    """

    loss: Floats
    mase: Floats
    coverage: Floats


def origins(panel: Panel, count: int, *, steps: int, share: float = 0.4) -> tuple[datetime, ...]:
    """Evenly spaced origins over the latest `share` of a panel, each with `steps` bins after it."""
    first, last = round(panel.length * (1 - share)), panel.length - steps
    if first >= last or min(count, steps) < 1:
        request = f"with {steps} steps after it, and {count} are asked for"
        raise QuestionError(f"a panel of {panel.length} bins leaves no origin {request}; request one of both at least")
    bins = np.unique(np.linspace(first, last, count).astype(int))
    return tuple(panel.start + int(b) * panel.step for b in bins)


class Tally(NamedTuple):
    """Sums over the steps of one origin: all [series], hits [series, level]."""

    loss: Floats
    error: Floats
    scale: Floats
    scored: Floats
    hits: Floats


def tally(past: Panel, actual: Floats, forecast: Forecast) -> Tally:
    """The sums of one origin: of a forecast made from `past`, against what came [series, step]."""
    levels, rows, steps = forecast.levels, forecast.provenance.rows(past.keys), actual.shape[1]
    actual = np.where(rows[:, None] < 0, np.nan, actual)
    quantiles = forecast.values[rows] if len(forecast.keys) else np.zeros((len(past), len(levels), steps))
    known = np.isfinite(actual)
    middle, scored = np.isclose(levels, 0.5), known.sum(axis=1)
    median = quantiles[:, middle.argmax()] if middle.any() else np.nan
    return Tally(
        loss=np.where(known[:, None], pinball(actual, quantiles, levels), 0.0).mean(axis=1).sum(axis=1),
        error=np.where(known, np.abs(actual - median), 0.0).sum(axis=1),
        scale=_scale(past) * scored,
        scored=scored.astype(np.float64),
        hits=coverage(actual, quantiles) * scored[:, None],
    )


def actual_after(panel: Panel, origin: datetime, steps: int) -> Floats:
    """[series, step] a copy of the `steps` bins after an origin."""
    first = int((origin - panel.start) // panel.step)
    if first + steps > panel.length:
        raise QuestionError(f"only {panel.length - first} bins follow {origin}; {steps} are to be scored")
    return panel.values[:, first : first + steps].astype(np.float64)


def _scale(past: Panel) -> Floats:
    day = past.bins(DAY)
    known = filled(past.values).astype(np.float64)
    return seasonal_scale(known, day if past.length > day > 0 else 1)


DRAWS = 1000
"""Draws of origins for an error bar; its ends move by a twentieth of its width with another seed."""
SEED = 7
OUTER = (0.05, 0.95)
"""Quantiles of the draws: with a dozen origins, the figure of all moments of these days is mostly within."""


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
        return tuple(forecast.origin for forecast in self.forecasts)

    @property
    def levels(self) -> tuple[float, ...]:
        """Quantile levels of the forecasts."""
        return self.forecasts[0].levels

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """The sums of each origin."""
        return tuple(
            tally(
                self.panel.until(forecast.origin).last(self.memory),
                actual_after(self.panel, forecast.origin, forecast.steps),
                forecast,
            )
            for forecast in self.forecasts
        )

    @cached_property
    def score(self) -> Score:
        """All origins together, per series."""
        total = Tally(*(np.sum(column, axis=0) for column in zip(*self.tallies, strict=True)))
        scale, scored = above_zero(total.scale), above_zero(total.scored)[:, None]
        return Score(2 * total.loss / scale, total.error / scale, total.hits / scored)

    @cached_property
    def cost(self) -> Floats:
        """[series] mean cost of reserving the highest level, a missing unit costing nineteen idle ones; NaN unknown."""
        return known_mean(np.array([_cost(self.panel, forecast) for forecast in self.forecasts]), axis=0)

    @cached_property
    def unanswered(self) -> float:
        """Share of series and origins without a forecast of this model: none at all, or one of its fallback."""
        total = len(self.forecasts) * max(1, len(self.panel))
        own = sum(sum(not why for why in forecast.provenance.reasons) for forecast in self.forecasts)
        return 1 - own / total

    @property
    def unscored(self) -> float:
        """Share of the forecast values without a known outcome."""
        came = [actual_after(self.panel, forecast.origin, forecast.steps) for forecast in self.forecasts]
        return float(np.isnan(came).mean())

    def to_frame(self) -> pd.DataFrame:
        """One row an origin and series: loss and error in the usual change over a day, coverage per level."""
        import pandas as pd  # noqa: PLC0415  a table for people; the service does without pandas

        index = pd.MultiIndex.from_product([self.origins, self.panel.keys], names=["origin", "series"])
        scale = above_zero(self.summed("scale"))
        columns = {"loss": 2 * self.summed("loss") / scale, "error": self.summed("error") / scale}
        shares = self.summed("hits") / above_zero(self.summed("scored"))[:, :, None]
        columns |= {f"cov{100 * level:g}": shares[:, :, i] for i, level in enumerate(self.levels)}
        return pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index)

    def summed(self, name: str) -> Floats:
        """[origin, series] of one field of the tallies."""
        return np.stack([getattr(sums, name) for sums in self.tallies])

    def calibration(self) -> pd.DataFrame:
        """Per level the share of values at or below it, with the ends of its error bar."""
        import pandas as pd  # noqa: PLC0415  as above

        hits, scored = self.summed("hits").sum(axis=1), self.summed("scored").sum(axis=1)
        drawn, share = draws(len(hits)), hits.sum(axis=0) / above_zero(scored.sum())
        shares = (drawn @ hits) / above_zero(drawn @ scored)[:, None]
        low, high = np.array([error_bar(each) for each in shares.T]).T
        return pd.DataFrame({"share": share, "low": low, "high": high}, index=pd.Index(self.levels, name="level"))

    def plot(self, key: str = "", count: int = 4) -> Figure:
        """Plot the forecasts of some origins, and the outcome; the origins with the largest errors first."""
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
        first, count = self.forecasts[0], len(self.forecasts)
        summary = f"Backtest of {self.name}: {count} origins, {first.steps} steps of {span_text(first.step)}"
        return f"{summary}; {self.unanswered:.0%} unanswered"

    def _repr_html_(self) -> str:
        heads = ("series", "loss (sQL)", "MASE", *(f"at or below {level_text(level)}" for level in self.levels))
        rows = [
            (escape(key), number(self.score.loss[i]), number(self.score.mase[i]), *map(number, self.score.coverage[i]))
            for i, key in enumerate(self.panel.keys[:12])
        ]
        return f"<p>{escape(repr(self))}</p>{table(heads, rows, len(self.panel))}"


def error_bar(values: Floats) -> tuple[float, float]:
    """The ends of an error bar of draws; NaN where nothing is known."""
    known = values[np.isfinite(values)]
    return tuple(np.quantile(known, OUTER).tolist()) if len(known) else (float("nan"), float("nan"))


def draws(count: int) -> npt.NDArray[np.float64]:
    """[draw, origin] how often each origin is drawn, of as many with replacement."""
    rng = np.random.default_rng(SEED)
    return rng.multinomial(count, np.full(count, 1 / count), size=DRAWS).astype(np.float64)


def _cost(panel: Panel, forecast: Forecast) -> Floats:
    """[series] of a panel, NaN without a forecast or without a known value."""
    actual = actual_after(panel, forecast.origin, forecast.steps)
    rows = forecast.provenance.rows(panel.keys)
    out = np.full(len(panel), np.nan)
    out[rows >= 0] = cost_of_reserve(actual[rows >= 0], forecast.values[rows[rows >= 0], -1])
    return out

"""Evaluation of models on past origins, and the losses of quantile forecasts; NaN targets are not scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .clean import filled
from .errors import QuestionError
from .forecast import checked_levels
from .panel import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    import pandas as pd

    from .forecast import Forecast
    from .model import Model
    from .panel import Floats, Panel


# A missing unit costs as much as nineteen idle ones: the price at which p95 is the right reserve.
PRICE_OF_MISSING = 19.0


def pinball(actual: Floats, quantiles: Floats, levels: Sequence[float]) -> Floats:
    """max(q·(y-p), (q-1)·(y-p)) for actual [..., step] and quantiles [..., level, step]: [..., level, step]."""
    level = np.asarray(levels)[:, None]
    missing = actual[..., None, :] - quantiles
    return np.maximum(level * missing, (level - 1) * missing)


def scaled_quantile_loss(actual: Floats, quantiles: Floats, levels: Sequence[float], scale: Floats) -> Floats:
    """2 · mean pinball over levels and steps / scale: [...], scale [...] as the mean change over a day."""
    loss = 2 * np.nanmean(pinball(actual, quantiles, levels), axis=(-2, -1))
    return np.asarray(loss / scale)


def coverage(actual: Floats, quantiles: Floats) -> Floats:
    """Share of values at or below the quantile, per level: [..., level]. Right is the level itself."""
    known = np.isfinite(actual)[..., None, :]
    below = (actual[..., None, :] <= quantiles) & known
    return np.asarray(below.sum(axis=-1) / np.maximum(1, known.sum(axis=-1)))


def mean_absolute_scaled_error(actual: Floats, median: Floats, scale: Floats) -> Floats:
    """Mean |y - p50| / scale (MASE with the seasonal naive forecast of the history as scale)."""
    return np.asarray(np.nanmean(np.abs(actual - median), axis=-1) / scale)


def cost_of_reserve(actual: Floats, reserve: Floats, price: float = PRICE_OF_MISSING) -> Floats:
    """Mean of price · missing + idle, what a reserve costs when a missing unit costs `price` idle ones."""
    missing = actual - reserve
    return np.asarray(np.nanmean(np.where(missing > 0, price * missing, -missing), axis=-1))


def seasonal_scale(history: Floats, season: int) -> Floats:
    """[series] mean |y(t) - y(t - season)| of filled history [series, time]: the unit of scaled losses."""
    return np.asarray(np.abs(history[:, season:] - history[:, :-season]).mean(axis=1))


SCORED_LEVELS = (0.5, 0.9, 0.95)
EVALUATION_WINDOW = 14 * DAY
"""What a model sees of the past, as in the service."""


@dataclass(frozen=True)
class Score:
    """How well one model did on a panel, per series; NaN where a series was never scored.

    Attributes:
        name: the model.
        keys: the series.
        loss: sQL, 2 · mean pinball over the levels / mean change over a day, summed over origins before dividing.
        mase: mean |y - p50| / mean change over a day.
        coverage: [series, level] share of values at or below the quantile.
        unanswered: share of series and origins without a forecast.
    """

    name: str
    keys: tuple[str, ...]
    levels: tuple[float, ...]
    loss: Floats
    mase: Floats
    coverage: Floats
    unanswered: float


def origins(panel: Panel, count: int, *, steps: int, share: float = 0.4) -> tuple[datetime, ...]:
    """Evenly spaced origins over the latest `share` of a panel, each with `steps` bins after it."""
    first, last = round(panel.length * (1 - share)), panel.length - steps
    if first >= last:
        raise QuestionError(f"a panel of {panel.length} bins leaves no origin with {steps} steps after it")
    bins = np.unique(np.linspace(first, last, count).astype(int))
    return tuple(panel.start + int(b) * panel.step for b in bins)


def evaluate(
    model: Model,
    panel: Panel,
    *,
    steps: int,
    at: Sequence[datetime],
    levels: Sequence[float] = SCORED_LEVELS,
    memory: timedelta = EVALUATION_WINDOW,
) -> Score:
    """Fit on what was known at each origin (the latest `memory`), forecast, and score against what came.

    Raises:
        QuestionError: an origin leaves fewer than `steps` bins, or the levels do not ascend.
    """
    asked = checked_levels(levels)
    tallies = []
    for origin in at:
        past = panel.until(origin).last(memory)
        actual = actual_after(panel, origin, steps)
        tallies.append(tally(past, actual, model.fit(past).forecast(steps, asked)))
    return score_of(model.name, panel.keys, asked, tallies)


def leaderboard(scores: Sequence[Score], reference: str = "seasonal-naive-day") -> pd.DataFrame:
    """One row per model, best first: geometric mean of the loss relative to a reference, MASE, coverage per level."""
    import pandas as pd  # noqa: PLC0415  a table for people; the service does without pandas

    base = next((score for score in scores if score.name == reference), scores[0])
    rows = {score.name: _row(score, base) for score in scores}
    return pd.DataFrame.from_dict(rows, orient="index").sort_values("sQL_rel")


def _row(score: Score, base: Score) -> Mapping[str, float]:
    both = np.isfinite(score.loss) & np.isfinite(base.loss) & (base.loss > 0) & (score.loss > 0)
    relative = float(np.exp(np.mean(np.log(score.loss[both] / base.loss[both])))) if both.any() else np.nan
    shares = {
        f"cov{round(100 * level)}": float(np.nanmean(score.coverage[:, i])) for i, level in enumerate(score.levels)
    }
    return {"sQL_rel": relative, "MASE": float(np.nanmean(score.mase)), **shares, "unanswered": score.unanswered}


class Tally(NamedTuple):
    """Sums over the steps of one origin: all [series], hits [series, level]."""

    loss: Floats
    error: Floats
    scale: Floats
    scored: Floats
    hits: Floats
    unanswered: Floats


def tally(past: Panel, actual: Floats, forecast: Forecast) -> Tally:
    """The sums of one origin: of a forecast made from `past`, against what came [series, step]."""
    levels, rows, steps = forecast.levels, forecast.provenance.rows(past.keys), actual.shape[1]
    actual = np.where(rows[:, None] < 0, np.nan, actual)
    quantiles = forecast.values[rows] if len(forecast.keys) else np.zeros((len(past), len(levels), steps))
    known = np.isfinite(actual)
    median = quantiles[:, np.argmin(np.abs(np.asarray(levels) - 0.5))]
    scored = known.sum(axis=1)
    return Tally(
        loss=np.nan_to_num(pinball(actual, quantiles, levels)).mean(axis=1).sum(axis=1),
        error=np.nan_to_num(np.abs(actual - median)).sum(axis=1),
        scale=_scale(past) * scored,
        scored=scored.astype(np.float64),
        hits=coverage(actual, quantiles) * scored[:, None],
        unanswered=(rows < 0).astype(np.float64),
    )


def score_of(name: str, keys: tuple[str, ...], levels: tuple[float, ...], tallies: Sequence[Tally]) -> Score:
    """The score of all origins together."""
    total = Tally(*(np.sum(column, axis=0) for column in zip(*tallies, strict=True)))
    with np.errstate(invalid="ignore", divide="ignore"):
        return Score(
            name=name,
            keys=keys,
            levels=levels,
            loss=2 * total.loss / total.scale,
            mase=total.error / total.scale,
            coverage=total.hits / total.scored[:, None],
            unanswered=float(np.mean(total.unanswered)) / len(tallies),
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
    return seasonal_scale(known, day if past.length > day else 1)

"""Forecast accuracy by horizon: rolling origins over the last 40 % of each recorded series."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.bench.loads import by_step, load, sample
from benchmarks.bench.losses import covered, daily_change, geometric_mean_ratio, quantile_loss
from benchmarks.bench.tables import Table
from models import Panel, create
from models.clean import filled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from benchmarks.bench.loads import Series
    from models import Model

    Floats = NDArray[np.float64]

LEVELS = (0.5, 0.9, 0.95)
MODELS = ("seasonal-naive-day", "last-value", "theta", "ridge", "prior", "adaptive")
OTHERS = ("nearest-day", "hour-of-week", "seasonal-naive-week")
"""Models of the catalogue that are compared an hour ahead."""
REFERENCE = "seasonal-naive-day"
"""Model that repeats the value of a day ago, with the spread of its own errors."""
TRAINED_ON = 0.6
"""Share of a series that trained weights have seen; origins lie in the rest."""
HISTORY_DAYS = 14
MIN_DAYS = 2
MOST_MISSING = 0.2
TRIES = 8


@dataclass(frozen=True)
class Task:
    """A question to the models: how far ahead, in which bins, from how many origins of each series."""

    title: str
    step: int
    """Seconds of a bin."""
    ahead: timedelta
    origins: int
    models: Sequence[str] = MODELS


TASKS = (
    Task("10 minutes ahead", 60, timedelta(minutes=10), 20),
    Task("1 hour ahead", 300, timedelta(hours=1), 20, (*MODELS, *OTHERS)),
    Task("1 day ahead", 300, timedelta(days=1), 6),
)


class Question(NamedTuple):
    """A series cut at an origin: the history before it, and the values that followed."""

    series: Series
    history: Floats
    actual: Floats
    end: int
    """Epoch second at which the history ends."""


def accuracy(
    task: Task, models: Sequence[str] = MODELS, series: int | None = None, families: Sequence[str] = ()
) -> pd.DataFrame:
    """Losses and hits of each series and model: columns model, family, series, loss, and one `p50` … for each level."""
    chosen = sample([item for item in load(task.step) if not families or item.family in families], series)
    rows = [
        row
        for group in by_step(chosen).values()
        for questions in rounds(group, task)
        for row in _round(questions, models)
    ]
    sums = pd.DataFrame(rows).groupby(["model", "family", "series"], as_index=False).sum()
    sums["loss"] /= sums.pop("scale")
    hits = [f"p{level * 100:g}" for level in LEVELS]
    sums[hits] = sums[hits].div(sums.pop("steps"), axis=0)
    return sums


def accuracy_table(rows: pd.DataFrame, task: Task) -> Table:
    """A line a model: loss relative to the same time yesterday, and the coverage of its quantiles."""
    losses = rows.pivot_table(index="series", columns="model", values="loss").dropna()
    table = Table(f"Forecasts, {task.title} ({len(losses)} series)", ("model", "loss", "p50", "p90", "p95", "worse on"))
    for model, own in rows.groupby("model", sort=False):
        ratio = geometric_mean_ratio(losses[model].to_numpy(), losses[REFERENCE].to_numpy())
        worse = float((losses[model] > losses[REFERENCE]).mean())
        shares = (f"{own[f'p{level * 100:g}'].mean():.3f}" for level in LEVELS)
        table.add(str(model), f"{ratio:.3f}", *shares, f"{worse:.0%}")
    return table.sorted_by("loss")


def rounds(group: Sequence[Series], task: Task) -> Iterator[list[Question]]:
    """One origin of each series at a time, so that no forecast knows what came later in its own batch."""
    steps = int(task.ahead.total_seconds()) // group[0].step
    cuts = [(series, origins(series, task.origins, steps)) for series in group]
    for turn in range(task.origins):
        questions = [question(series, places[turn], steps) for series, places in cuts if turn < len(places)]
        if long_enough := [
            question for question in questions if len(question.history) >= MIN_DAYS * question.series.day
        ]:
            yield long_enough


def question(series: Series, origin: int, steps: int) -> Question:
    """The series cut before bin `origin`."""
    first = max(0, origin - HISTORY_DAYS * series.day - 4)
    history, actual = series.values[first:origin].copy(), series.values[origin : origin + steps]
    return Question(series, history, actual, series.start + origin * series.step)


def origins(series: Series, count: int, steps: int) -> list[int]:
    """At most `count` ascending bins in the last 40 %, one drawn from each equal part, where enough was measured."""
    edges = np.linspace(int(len(series.values) * TRAINED_ON), len(series.values) - steps, count + 1).astype(int)
    rng = np.random.default_rng(len(series.values))
    drawn = (_origin(series, low, high, steps, rng) for low, high in pairwise(edges.tolist()))
    return [origin for origin in drawn if origin is not None]


def _origin(series: Series, low: int, high: int, steps: int, rng: np.random.Generator) -> int | None:
    for _ in range(TRIES):
        origin = int(rng.integers(low, max(low + 1, high)))
        missing = np.isnan(series.values[origin : origin + steps]).mean()
        if missing <= MOST_MISSING and not np.isnan(series.values[origin - 1]):
            return origin
    return None


def _round(questions: Sequence[Question], models: Sequence[str]) -> Iterator[dict[str, object]]:
    for name in models:
        forecasts = forecast(create(name), questions)
        for question, quantiles in zip(questions, forecasts, strict=True):
            scale = daily_change(
                pd.Series(question.history).interpolate().ffill().bfill().to_numpy(), question.series.day
            )
            measured = int((~np.isnan(question.actual)).sum())
            hits = zip(LEVELS, covered(question.actual, quantiles), strict=True)
            yield {
                "model": name,
                "family": question.series.family,
                "series": question.series.name,
                "loss": quantile_loss(question.actual, quantiles, LEVELS),
                "scale": scale * measured,
                "steps": measured,
                **{f"p{level * 100:g}": int(hit) for level, hit in hits},
            }


def forecast(model: Model, questions: Sequence[Question]) -> Floats:
    """Quantiles [question, level, step] by one model fitted on all histories of a round."""
    return quantiles_of(model, panel_of(questions), len(questions[0].actual), LEVELS)


def quantiles_of(model: Model, panel: Panel, steps: int, levels: Sequence[float]) -> Floats:
    """Quantiles [row of the panel, level, step] by a model fitted on the panel, or the last value."""
    answer = model.fit(panel).forecast(steps, levels)
    last = filled(np.pad(panel.values, ((0, 0), (1, 0)), constant_values=np.nan))[:, -1]
    out = np.tile(last[:, None, None], (1, len(levels), steps))
    rows = answer.provenance.rows(panel.keys)
    out[rows >= 0] = answer.values[rows[rows >= 0]]
    return out


def panel_of(questions: Sequence[Question]) -> Panel:
    """The histories of a round as one panel, which ends where the last of them does."""
    length = max(len(question.history) for question in questions)
    values = np.full((len(questions), length), np.nan)
    for row, question in zip(values, questions, strict=True):
        row[length - len(question.history) :] = question.history
    step = timedelta(seconds=questions[0].series.step)
    start = datetime.fromtimestamp(max(question.end for question in questions), UTC) - length * step
    return Panel.cleaned(values, start, step, [question.series.name for question in questions])

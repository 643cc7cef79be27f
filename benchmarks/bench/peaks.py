"""Coverage of the coming peak: the largest minute of a window, from which a decision computes its count.

Forecast by a model from minutes, of which replays have weeks; and by the service, which keeps weeks of five-minute
points, and three hours of minutes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bench.accuracy import TASKS, Task, panel_of, rounds
from benchmarks.bench.loads import load, sample
from benchmarks.bench.replay import TICK
from benchmarks.bench.service import history_of, ids_of
from benchmarks.bench.tables import Table
from forecaster.demand.alignment import rows_among
from forecaster.domain.signal import REQUESTS
from forecaster.domain.window import MINUTE
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.forecasting.peaks import LEVELS as KNOWN_LEVELS
from models import StepWindow, create

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from benchmarks.bench.accuracy import Question
    from benchmarks.bench.loads import Series

    Floats = NDArray[np.float64]

LEVELS = (0.5, 0.8, 0.9, 0.95)
LEAD_MINUTES = (2, 5, 10, 20, 30)
WINDOW_MINUTES = 4
MODEL = "adaptive"
ORIGINS = 60
"""Cuts of each series: chance moves a share of 720 peaks by 0.011, of 240 by 0.02."""
CHOSEN_LEVELS = [KNOWN_LEVELS.index(level) for level in LEVELS]
TASK = Task("peaks", TASKS[0].step, timedelta(minutes=max(LEAD_MINUTES) + WINDOW_MINUTES), ORIGINS)


def peak_table(series: int | None = None, families: Sequence[str] = (), model: str = MODEL) -> Table:
    """A line a lead time: the share of windows whose largest minute lies at or below each quantile of a model."""
    chosen = sample(by_the_minute(families), series)
    return _table("by the minute", chosen, lambda questions: model_quantiles(questions, model))


def service_peak_table(series: int | None = None, families: Sequence[str] = ()) -> Table:
    """A line a lead time, as `peak_table`, of the quantiles that the service forecasts."""
    chosen = sample(by_the_minute(families), series)
    return _table("by the service from five-minute points", chosen, service_quantiles)


def _table(how: str, chosen: Sequence[Series], quantiles: Callable[[Sequence[Question]], Floats]) -> Table:
    title = f"Peaks of {WINDOW_MINUTES} minutes, forecast {how} ({len(chosen)} series)"
    table = Table(title, ("lead time", *(f"p{level * 100:g}" for level in LEVELS)))
    hits = np.concatenate([covered(questions, quantiles(questions)) for questions in rounds(chosen, TASK)])
    for lead, shares in zip(LEAD_MINUTES, np.nanmean(hits, axis=0), strict=True):
        table.add(f"{lead} min", *(f"{share:.3f}" for share in shares))
    return table


def by_the_minute(families: Sequence[str] = ()) -> list[Series]:
    """Series of these families, or of all, that were recorded by the minute."""
    return [item for item in load(TICK) if item.recorded_step == TICK and (not families or item.family in families)]


def covered(questions: Sequence[Question], quantiles: Floats) -> Floats:
    """Whether each peak lies at or below its quantile [question, lead time, level]; NaN where either is not known."""
    actual = np.stack([question.actual for question in questions])
    windows = [actual[:, lead : lead + WINDOW_MINUTES].max(axis=1) for lead in LEAD_MINUTES]
    largest = np.stack(windows, axis=1)[:, :, None]
    return np.where(np.isnan(largest) | np.isnan(quantiles), np.nan, largest <= quantiles + 1e-12)


def model_quantiles(questions: Sequence[Question], model: str) -> Floats:
    """[question, lead time, level] the peaks that a model forecasts from weeks of minutes; NaN without a forecast."""
    panel = panel_of(questions)
    fitted = create(model).fit(panel)
    out = np.full((len(questions), len(LEAD_MINUTES), len(LEVELS)), np.nan)
    for place, lead in enumerate(LEAD_MINUTES):
        peak = fitted.forecast_peak(StepWindow(lead + 1, lead + WINDOW_MINUTES), LEVELS)
        rows = peak.provenance.rows(panel.keys)
        out[rows >= 0, place] = peak.values[rows[rows >= 0]]
    return out


def service_quantiles(questions: Sequence[Question]) -> Floats:
    """[question, lead time, level] the peaks that the service forecasts, to which the series are requests."""
    minutes = panel_of(questions).values
    ids, end = ids_of(len(minutes)), datetime(2026, 1, 5, tzinfo=UTC)
    spans = [PeakSpan(lead * MINUTE, WINDOW_MINUTES * MINUTE) for lead in LEAD_MINUTES]
    peaks = Forecaster(MODEL).peaks(REQUESTS, history_of(minutes, end), spans, end)
    rows = [rows_among(ids, peaks[span].place) for span in spans]
    return np.stack([peaks[span].values[row][:, CHOSEN_LEVELS] for span, row in zip(spans, rows, strict=True)], axis=1)

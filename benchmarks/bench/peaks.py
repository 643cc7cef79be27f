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
from benchmarks.bench.tables import Table
from forecaster.demand.fresh import FreshHistory, point_means
from forecaster.domain.signal import REQUESTS
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Window
from forecaster.domain.workload import WorkloadId
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.forecasting.minutes import WIDTH
from forecaster.forecasting.peaks import LEVELS as KNOWN_LEVELS
from models import StepWindow, create

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.bench.accuracy import Question
    from benchmarks.bench.loads import Series

LEVELS = (0.5, 0.8, 0.9, 0.95)
LEAD_MINUTES = (2, 5, 10, 20, 30)
WINDOW_MINUTES = 4
MODEL = "adaptive"
KEPT = 180
"""Minutes that the service keeps."""
CHOSEN_LEVELS = [KNOWN_LEVELS.index(level) for level in LEVELS]
TASK = Task("peaks", TASKS[0].step, timedelta(minutes=max(LEAD_MINUTES) + WINDOW_MINUTES), 20)


def peak_table(series: int | None = None, families: Sequence[str] = (), model: str = MODEL) -> Table:
    """A line a lead time: the share of windows whose largest minute lies at or below each quantile."""
    chosen = sample(by_the_minute(families), series)
    title = f"Peaks of {WINDOW_MINUTES} minutes, forecast by the minute ({len(chosen)} series)"
    table = Table(title, ("lead time", *(f"p{level * 100:g}" for level in LEVELS)))
    hits = np.concatenate([covered_peaks(questions, model) for questions in rounds(chosen, TASK)])
    for lead, shares in zip(LEAD_MINUTES, np.nanmean(hits, axis=0), strict=True):
        table.add(f"{lead} min", *(f"{share:.3f}" for share in shares))
    return table


def service_peak_table(series: int | None = None) -> Table:
    """A line a lead time, as `peak_table`: the quantiles that the service forecasts."""
    chosen = sample(by_the_minute(), series)
    title = f"Peaks of {WINDOW_MINUTES} minutes, forecast by the service from five-minute points ({len(chosen)} series)"
    table = Table(title, ("lead time", *(f"p{level * 100:g}" for level in LEVELS)))
    hits = np.concatenate([peaks_of_the_service(questions) for questions in rounds(chosen, TASK)])
    for lead, shares in zip(LEAD_MINUTES, np.nanmean(hits, axis=0), strict=True):
        table.add(f"{lead} min", *(f"{share:.3f}" for share in shares))
    return table


def peaks_of_the_service(questions: Sequence[Question]) -> NDArray[np.float64]:
    """Return what `covered_peaks` does, by the service's forecaster: to it the series are requests."""
    minutes = panel_of(questions).values.astype(np.float32)
    ids = tuple(WorkloadId("bench", "Deployment", f"series-{row}") for row in range(len(questions)))
    end = datetime(2026, 1, 5, tzinfo=UTC)
    points = point_means(minutes[:, minutes.shape[1] % WIDTH :].reshape(len(ids), -1, WIDTH))
    weeks = Window(ids, end - (points.shape[1] - 1) * FIVE_MINUTES, FIVE_MINUTES, points)
    latest = Window(ids, end - (KEPT - 1) * MINUTE, MINUTE, minutes[:, -KEPT:])
    spans = {PeakSpan(lead * MINUTE, WINDOW_MINUTES * MINUTE): lead for lead in LEAD_MINUTES}
    forecaster = Forecaster(MODEL)
    peaks = forecaster.peaks(REQUESTS, FreshHistory(weeks, points[:, :0], end, latest), tuple(spans), end)
    out = np.full((len(questions), len(LEAD_MINUTES), len(LEVELS)), np.nan)
    for place, (span, lead) in enumerate(spans.items()):
        for row, (id_, question) in enumerate(zip(ids, questions, strict=True)):
            largest, at = question.actual[lead : lead + WINDOW_MINUTES].max(), peaks[span].row.get(id_)
            if at is not None and not np.isnan(largest):
                out[row, place] = largest <= peaks[span].values[at, CHOSEN_LEVELS] + 1e-12
    return out


def by_the_minute(families: Sequence[str] = ()) -> list[Series]:
    """Series of these families, or of all, that were recorded by the minute."""
    return [item for item in load(TICK) if item.recorded_step == TICK and (not families or item.family in families)]


def covered_peaks(questions: Sequence[Question], model: str = MODEL) -> NDArray[np.float64]:
    """Whether each peak lies at or below its quantile [question, lead time, level]; NaN where it was not measured."""
    panel = panel_of(questions)
    fitted = create(model).fit(panel)
    actual = np.stack([question.actual for question in questions])
    out = np.full((len(questions), len(LEAD_MINUTES), len(LEVELS)), np.nan)
    for place, lead in enumerate(LEAD_MINUTES):
        peak = fitted.forecast_peak(StepWindow(lead + 1, lead + WINDOW_MINUTES), LEVELS)
        largest = actual[:, lead : lead + WINDOW_MINUTES].max(axis=1)
        rows = peak.provenance.rows(panel.keys)
        known = (rows >= 0) & ~np.isnan(largest)
        out[known, place] = largest[known, None] <= peak.values[rows[known]] + 1e-12
    return out

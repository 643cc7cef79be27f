"""`explain --html`: a page of decisions, with demand and forecast as a picture and every step in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

import numpy as np

from forecaster.domain.decision import Recommendation, SignalView
from forecaster.domain.signal import StepForecast
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.domain.workload import WorkloadId
from forecaster.ports import Histories
from forecaster.report.page import document, paragraph
from forecaster.report.plot import Area, Line, Mark, Plot, half_day, linear, scale_of, windows_of
from forecaster.report.replay_plots import hovered, runs_of, time_ticks

LOW, MIDDLE, HIGH = 0.1, 0.5, 0.9
KEY = (
    '<ul class="key"><li><i class="demand"></i>demand</li><li><i class="ours"></i>forecast: p10 to p90, and p50</li>'
    "<li>the mark is the peak that was decided on</li></ul>"
)


@dataclass(frozen=True, slots=True)
class Explained:
    """One decision: its numbers, its sentences, and what is forecast step by step where a model said so."""

    decided: Recommendation
    lines: Sequence[str]
    paths: Mapping[str, StepForecast]


def explained_page(workloads: Sequence[Explained], history: Histories) -> str:
    """One file that loads nothing."""
    at = f"{workloads[0].decided.at:%Y-%m-%d %H:%M} UTC"
    title = str(workloads[0].decided.id) if len(workloads) == 1 else f"{len(workloads)} workloads"
    parts = [f"<h1>{escape(title)}</h1>", paragraph(f"Why these numbers, {at}", "soft"), KEY]
    windows = windows_of(history)
    parts += [part for workload in workloads for part in _workload(workload, windows)]
    return document(f"{title}, {at}", parts)


def _workload(workload: Explained, windows: Mapping[str, Window]) -> Iterable[str]:
    head, *steps = workload.lines
    yield f"<h2>{escape(head)}</h2>"
    for view in workload.decided.signals:
        yield _picture(workload.decided.id, workload.decided.at, view, windows, workload.paths.get(view.signal))
    yield "".join(
        f'<p style="margin-left:{(len(line) - len(line.lstrip())) / 2}em">{_step(line.strip())}</p>' for line in steps
    )


def _step(text: str) -> str:
    """A result stands out."""
    return f"<b>{escape(text.removeprefix('=> '))}</b>" if text.startswith("=>") else escape(text)


def _picture(
    id_: WorkloadId, at: datetime, view: SignalView, windows: Mapping[str, Window], path: StepForecast | None
) -> str:
    past = half_day(windows, id_, view.signal)
    if not np.isfinite(past).any():
        return paragraph(f"{view.signal}: no history to show", "soft")
    ahead = _ahead(path) if path else np.zeros((3, 0))
    count = len(past) + ahead.shape[1]
    peak = view.forecast.peak if view.forecast else None
    largest = max(float(np.nanmax(past)), float(ahead.max(initial=0.0)), peak or 0.0)
    scale, unit = scale_of(view.unit, largest)
    past, ahead, peak = past / scale, ahead / scale, None if peak is None else peak / scale
    up = linear([*past[np.isfinite(past)], *ahead.ravel(), *([peak] if peak else [])], from_zero=True)
    first = len(past)
    low, middle, high = (_line(row, first, count, up.place) for row in ahead)
    marks = []
    if peak is not None and view.forecast:
        place = (first + (view.forecast.begin - at) / FIVE_MINUTES) / count
        marks = [
            Mark(
                min(1.0, place), up.place(peak), f"peak p{100 * view.forecast.quantile:g}: {peak:.4g} {unit}", own=True
            )
        ]
    begin = at - first * FIVE_MINUTES
    return Plot(
        title=f"{view.signal} of {id_}",
        across=time_ticks(begin, count * FIVE_MINUTES),
        up=up.ticks(),
        up_name=f"{view.signal}, {unit}",
        across_name="time, UTC",
        lines=[*_runs(past, count, up.place), Line(middle, "ours", marks=marks)],
        areas=[Area(high, low, "band")] if ahead.size else [],
        hover={
            "begin": (begin + FIVE_MINUTES).timestamp(),
            "step": FIVE_MINUTES.total_seconds(),
            "count": count,
            "series": [
                (f"demand, {unit}", hovered(np.r_[past, np.full(ahead.shape[1], np.nan)])),
                ("p90", hovered(np.r_[np.full(first, np.nan), ahead[2]])),
            ],
        },
    ).html()


def _ahead(path: StepForecast) -> np.ndarray:
    """[low, middle, high; step] at the levels that lie nearest."""
    levels = np.asarray(path.levels)
    values = np.asarray(path.values, dtype=float)
    return np.stack([values[:, int(np.abs(levels - level).argmin())] for level in (LOW, MIDDLE, HIGH)])


def _line(values: np.ndarray, first: int, count: int, place: Callable[[float], float]) -> list[tuple[float, float]]:
    return [((first + i + 0.5) / count, place(float(value))) for i, value in enumerate(values)]


def _runs(past: np.ndarray, count: int, place: Callable[[float], float]) -> Iterable[Line]:
    """A line for every stretch without a gap."""
    for first, last in runs_of(np.isfinite(past)):
        yield Line(_line(past[first:last], first, count, place), "demand")

"""History in the form that models read: points that end at the latest minute, with facts beside the usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import rows_among
from forecaster.demand.censored import ThrottledTime
from forecaster.domain.signal import Signal
from forecaster.domain.window import Window
from forecaster.domain.workload import Workload, WorkloadId

Rows = slice | NDArray[np.intp]

MIN_KNOWN = 3
"""Minutes of a five-minute point that must be known, so that a single scrape does not count for all."""


@dataclass(frozen=True, slots=True, eq=False)
class FreshHistory:
    """Weeks of points, the latest few hours of which are cut anew to end at `end`; rows as in `weeks`.

    Older points keep the clock's cut, so they are up to four minutes early: what a model reads there changes by the
    hour.
    """

    weeks: Window
    recent: NDArray[np.float32]
    end: datetime
    minutes: Window | None = None
    """Minutes from which the latest hours were made, with the same rows."""
    context: DemandContext | None = None
    """Context that turns usage into demand; without it usage is not corrected."""
    zones: Mapping[WorkloadId, str] = field(default_factory=dict)
    """Time zones of workloads whose days follow a clock that changes; those in UTC are absent."""

    def rows(self, rows: Rows, count: int | None = None) -> NDArray[np.float32]:
        """[series, time] of some rows, by default of all columns; a copy but for a slice at the clock's own cut."""
        columns = self.weeks.values.shape[1] if count is None else count
        taken, recent = self.weeks.values[:, self.weeks.values.shape[1] - columns :][rows], self.recent[rows]
        if not recent.shape[1]:
            return taken
        out = taken.copy() if isinstance(rows, slice) else taken
        points = min(recent.shape[1], columns)
        tail, recent = out[:, columns - points :], recent[:, recent.shape[1] - points :]
        np.copyto(tail, recent, where=~np.isnan(recent))
        return out


def fresh(weeks: Window, minutes: Window, context: DemandContext | None = None) -> FreshHistory:
    """Cut the minutes anew. Where they end with the clock's own cut, the kept points are these already."""
    width = weeks.step // minutes.step
    if minutes.end <= weeks.end:
        return FreshHistory(weeks, np.empty((len(weeks.keys), 0), np.float32), weeks.end, minutes, context)
    points = min(minutes.values.shape[1] // width, weeks.values.shape[1])
    latest = minutes.values[:, minutes.values.shape[1] - points * width :].reshape(-1, points, width)
    return FreshHistory(weeks, _aligned(point_means(latest), minutes, weeks), minutes.end, minutes, context)


def point_means(bins: NDArray[np.float32]) -> NDArray[np.float32]:
    """[row, point] means of the known minutes of [row, point, minute]; NaN where too few are known."""
    known, sums = np.zeros(bins.shape[:2], np.int8), np.zeros(bins.shape[:2])
    for minute in range(bins.shape[2]):  # a reduction over a handful of neighbours takes three times as long
        there = ~np.isnan(bins[:, :, minute])
        known += there
        np.add(sums, bins[:, :, minute], out=sums, where=there)
    means = np.full(known.shape, np.nan, np.float32)
    np.divide(sums, known, out=means, where=known >= MIN_KNOWN, casting="same_kind")
    return means


def _aligned(recent: NDArray[np.float32], minutes: Window, weeks: Window) -> NDArray[np.float32]:
    """Rows in the order of `weeks`; NaN for workloads without minutes."""
    if minutes.keys == weeks.keys:
        return recent
    order = rows_among(weeks.keys, minutes.row)
    padded = np.vstack([recent, np.full((1, recent.shape[1]), np.nan, np.float32)])
    result: NDArray[np.float32] = padded[order]
    return result


def values_of(window: Window, ids: Sequence[WorkloadId], count: int | None = None) -> NDArray[np.float32]:
    """[workload, time] of the latest columns, by default of all; gaps for those that have no row; a copy."""
    columns = window.values.shape[1] if count is None else count
    at = rows_among(ids, window.row)
    values = np.full((len(ids), columns), np.nan, np.float32)
    values[at >= 0] = window.values[at[at >= 0], window.values.shape[1] - columns :]
    return values


@dataclass(frozen=True, slots=True)
class DemandContext:
    """Facts that turn usage into demand. `throttled` has the hours of the workloads that were throttled."""

    signal: Signal
    pods: FreshHistory
    workloads: Mapping[WorkloadId, Workload]
    throttled: Mapping[WorkloadId, Sequence[ThrottledTime]] = field(default_factory=dict)

    @property
    def of_pods(self) -> bool:
        """Whether pods limit this signal, or use some of it to start."""
        return self.signal.limited or self.signal.warm_up

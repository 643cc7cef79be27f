"""The latest measured demand of every workload and its age, and what the same time was a day ago."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.outlook import Measured, Unknown
from forecaster.domain.window import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId


@dataclass(frozen=True, slots=True, eq=False)
class Latest:
    """The latest value of each workload, [row] each.

    `silent` counts the columns since then; it is the length of the window where there is none. `known` counts the
    columns that have a value.
    """

    row: Mapping[WorkloadId, int]
    values: NDArray[np.float64]
    silent: NDArray[np.int64]
    known: NDArray[np.int64]
    end: datetime
    step: timedelta
    columns: int

    def measured(self, id_: WorkloadId, max_age: timedelta) -> Measured | Unknown:
        """The latest demand of one workload if it is fresh enough, else why not."""
        row = self.row.get(id_)
        if row is None or self.silent[row] >= self.columns:
            return Unknown("no sample")
        if not self.silent[row]:
            return Measured(float(self.values[row]), self.end)
        age = int(self.silent[row]) * self.step
        if age > max_age:
            return Unknown(f"the newest sample is {_minutes(age)} old, {_minutes(max_age)} is the limit", stale=True)
        return Measured(float(self.values[row]), self.end - age)

    def span(self, id_: WorkloadId) -> timedelta:
        """How much of the window is known of one workload."""
        row = self.row.get(id_)
        return int(self.known[row]) * self.step if row is not None else timedelta(0)

    def age(self) -> timedelta | None:
        """Age of the latest sample of any workload; None where there is none."""
        best = int(self.silent.min(initial=self.columns))
        return best * self.step if best < self.columns else None


def latest(window: Window) -> Latest:
    """Look up the last known column of each row."""
    known = ~np.isnan(window.values)
    columns = int(known.shape[1])
    silent = np.where(known.any(axis=1), known[:, ::-1].argmax(axis=1), columns) if columns else np.zeros(len(known))
    last = np.clip(columns - 1 - silent, 0, None).astype(np.intp)
    values = np.take_along_axis(window.values, last[:, None], axis=1)[:, 0] if columns else np.zeros(len(known))
    return Latest(
        row=window.row,
        values=values.astype(np.float64),
        silent=silent.astype(np.int64),
        known=np.count_nonzero(known, axis=1).astype(np.int64),
        end=window.end,
        step=window.step,
        columns=columns,
    )


def _minutes(age: timedelta) -> str:
    return f"{age.total_seconds() / 60:.0f} min"


@dataclass(frozen=True, slots=True)
class DayAgo:
    """Looks a day back in a window of some weeks."""

    weeks: Window

    def peak(self, id_: WorkloadId, begin: datetime, until: datetime) -> float | None:
        """The largest value between these instants of the day before; None where nothing is known of it."""
        first = -(-(begin - DAY - self.weeks.start) // self.weeks.step)
        last = -(-(until - DAY - self.weeks.start) // self.weeks.step)
        if id_ not in self.weeks.row or first < 0:
            return None
        values = self.weeks.values[self.weeks.row[id_], first : last + 1]
        return float(np.nanmax(values)) if values.size and not np.isnan(values).all() else None

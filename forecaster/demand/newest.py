"""The newest measured demand of every workload, and how old it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.outlook import Measured, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId


@dataclass(frozen=True, slots=True, eq=False)
class Newest:
    """Newest value per workload.

    `silent` counts the columns since then; it is the length of the window where there is none.
    """

    row: Mapping[WorkloadId, int]
    values: list[float]
    silent: list[int]
    end: datetime
    step: timedelta
    columns: int

    def measured(self, id_: WorkloadId, max_age: timedelta) -> Measured | Unknown:
        """The newest demand of one workload if it is fresh enough, else why not."""
        row = self.row.get(id_)
        if row is None or self.silent[row] >= self.columns:
            return Unknown("no sample")
        age = self.silent[row] * self.step
        if age > max_age:
            return Unknown(f"the newest sample is {_minutes(age)} old, {_minutes(max_age)} is the limit")
        return Measured(self.values[row], self.end - age)

    def age(self) -> timedelta | None:
        """Age of the newest sample of any workload; None where there is none."""
        best = min(self.silent, default=self.columns)
        return best * self.step if best < self.columns else None


def newest(window: Window) -> Newest:
    """Look up the last known column of each row."""
    known = ~np.isnan(window.values)
    columns = int(known.shape[1])
    silent = np.where(known.any(axis=1), known[:, ::-1].argmax(axis=1), columns) if columns else np.zeros(len(known))
    last = np.clip(columns - 1 - silent, 0, None).astype(np.intp)
    values = np.take_along_axis(window.values, last[:, None], axis=1)[:, 0] if columns else np.zeros(len(known))
    row = {id_: i for i, id_ in enumerate(window.keys)}
    return Newest(row, values.tolist(), silent.astype(int).tolist(), window.end, window.step, columns)


def _minutes(age: timedelta) -> str:
    return f"{age.total_seconds() / 60:.0f} min"

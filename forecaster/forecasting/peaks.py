"""Forecasts of the coming peak of one signal, as arrays over workloads."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.outlook import PeakForecast, Unknown
from models import Panel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.demand.fresh import FreshHistory
    from forecaster.domain.workload import WorkloadId
    from models import Peak


LOW, MEDIAN, HIGH = 0.1, 0.5, 0.95
LEVELS = (LOW, 0.25, MEDIAN, 0.65, 0.8, 0.85, 0.9, HIGH, 0.99)
"""Levels that every model is asked for; a policy's quantile between two of them is interpolated."""
_COLUMN = {level: column for column, level in enumerate(LEVELS)}
_LOW, _MEDIAN, _HIGH = (_COLUMN[level] for level in (LOW, MEDIAN, HIGH))


@dataclass(frozen=True, slots=True, eq=False)
class PeakForecasts:
    """Quantiles of the largest demand between `begin` and `until`: `values[row[id]]` has one value per level."""

    begin: datetime
    until: datetime
    row: Mapping[WorkloadId, int]
    values: NDArray[np.float64]
    models: tuple[str, ...]
    notes: tuple[str, ...]
    unknown: Mapping[WorkloadId, str]

    def ahead(self, id_: WorkloadId, quantile: float) -> PeakForecast | Unknown:
        """The forecast of one workload, or why there is none."""
        row = self.row.get(id_)
        if row is None:
            return Unknown(self.unknown.get(id_, "no history yet"))
        values = self.values[row].tolist()
        return PeakForecast(
            model=self.models[row],
            quantile=quantile,
            peak=_at(values, quantile),
            low=values[_LOW],
            median=values[_MEDIAN],
            high=values[_HIGH],
            begin=self.begin,
            until=self.until,
            note=self.notes[row],
            levels=LEVELS,
            peaks=tuple(values),
        )


def _at(values: list[float], quantile: float) -> float:
    """Linear between the two levels around the quantile, and flat beyond the outer ones: `np.interp` of one number."""
    column = _COLUMN.get(quantile)
    if column is not None:
        return values[column]
    right = bisect(LEVELS, quantile)
    if right in {0, len(LEVELS)}:
        return values[0] if right == 0 else values[-1]
    left = right - 1
    slope = (values[right] - values[left]) / (LEVELS[right] - LEVELS[left])
    return slope * (quantile - LEVELS[left]) + values[left]


def joined(
    parts: Iterable[tuple[Sequence[WorkloadId], Sequence[str], Peak | str]], begin: datetime, until: datetime
) -> PeakForecasts:
    """The answers of all shards as one: workloads, their keys and what was said, or why nothing was."""
    row: dict[WorkloadId, int] = {}
    unknown: dict[WorkloadId, str] = {}
    models: list[str] = []
    notes: list[str] = []
    values: list[NDArray[np.float64]] = [np.empty((0, len(LEVELS)))]
    for ids, keys, answer in parts:
        if isinstance(answer, str):
            unknown.update(dict.fromkeys(ids, answer))
            continue
        at = answer.provenance.rows(keys).tolist()
        row.update((id_, len(models) + i) for id_, i in zip(ids, at, strict=True) if i >= 0)
        unknown.update((id_, answer.unknown[key]) for id_, key, i in zip(ids, keys, at, strict=True) if i < 0)
        values.append(answer.values)
        models.extend(answer.provenance.models)
        notes.extend(answer.provenance.reasons)
    return PeakForecasts(begin, until, row, np.concatenate(values), tuple(models), tuple(notes), unknown)


def noted(peaks: PeakForecasts, remarks: Mapping[WorkloadId, str]) -> PeakForecasts:
    """With a remark on some workloads behind what is noted of their forecasts."""
    notes = list(peaks.notes)
    for id_, remark in remarks.items():
        row = peaks.row.get(id_)
        if row is not None:
            notes[row] = f"{notes[row]}; {remark}" if notes[row] else remark
    return replace(peaks, notes=tuple(notes)) if remarks else peaks


def panel_of(history: FreshHistory, values: NDArray[np.floating], keys: tuple[str, ...]) -> Panel:
    """Some rows of a history, or what was made of them.

    The window names instants at which a bin ends, the panel those where it begins. Its bins carry the names of the
    clock's cut also when they end up to four minutes later: models tell times by their differences, and a panel that
    changed its phase every minute would be another one to them.
    """
    weeks = history.weeks
    return Panel(values, weeks.start - weeks.step, weeks.step, keys)


def key_of(id_: WorkloadId) -> str:
    """The name of a workload's series inside `models`; neither part can contain a slash."""
    return "/".join(id_)

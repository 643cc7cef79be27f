"""The latest measured demand of every workload and its age, and the demand of the same time a day ago."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import CachedRows, rows_among
from forecaster.demand.completeness import COMPLETE, CompletenessVerdict, sentence
from forecaster.domain.clock import time_by_clock
from forecaster.domain.signal import Measured, Unknown
from forecaster.domain.window import DAY, Block, Window
from forecaster.domain.workload import WorkloadId

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]

Column = TypeVar("Column", np.float64, np.int64)
NEVER = -(2**62)
"""Epoch seconds of what never was."""
LATEST_COLUMNS = 10
"""Columns of a block that can hold a latest value; older ones are stale by any policy."""
SPARE_ROWS = 1024
"""Rows of workloads that are away, beyond as many as there are, before they are given back."""
AWAY_SECONDS = 3600
"""Time without a value after which they may be."""


class Parts(NamedTuple):
    """Incomplete values later than the latest complete value, [row] each."""

    values: Floats
    """A lower bound; NaN where the amount cannot be."""
    silent: Columns
    """Columns since then."""
    code: NDArray[np.int8]
    """Code of the reason (`demand.completeness`); `COMPLETE` where there is no incomplete value."""
    actual: Floats
    expected: Floats

    def why(self, row: int) -> str:
        """Say why a value is part of a sum only."""
        return sentence(int(self.code[row]), float(self.actual[row]), float(self.expected[row]))


@dataclass(frozen=True, slots=True, eq=False)
class Latest:
    """The latest value of each workload, [row] each.

    `silent` counts the columns since then; it is the length of the window where there is none. `known` counts the
    columns that have a value.
    """

    row: Mapping[WorkloadId, int]
    values: Floats
    silent: Columns
    known: Columns
    end: datetime
    step: timedelta
    columns: int
    parts: Parts | None = None

    def measured(self, id_: WorkloadId, max_age: timedelta) -> Measured | Unknown:
        """Return the latest demand of one workload if it is fresh enough, else why not.

        What is incomplete and later counts where it is more, or where nothing else is fresh.
        """
        row = self.row.get(id_)
        if row is None:
            return Unknown("no sample")
        whole, part = self._whole(row, max_age), self._part(row, max_age)
        if isinstance(part, Measured):
            return part if isinstance(whole, Unknown) or part.value > whole.value else whole
        if part and isinstance(whole, Unknown):
            return Unknown(f"{whole.note}; {part}", whole.stale)
        return whole

    def _whole(self, row: int, max_age: timedelta) -> Measured | Unknown:
        """Return the latest complete value."""
        if self.silent[row] >= self.columns:
            return Unknown("no sample")
        if not self.silent[row]:
            return Measured(float(self.values[row]), self.end)
        age = int(self.silent[row]) * self.step
        if age > max_age:
            return Unknown(f"the latest sample is {_minutes(age)} old, {_minutes(max_age)} is the limit", stale=True)
        return Measured(float(self.values[row]), self.end - age)

    def _part(self, row: int, max_age: timedelta) -> Measured | str:
        """Return the latest value if incomplete and fresh, else the reason; empty where nothing is incomplete."""
        parts = self.parts
        if parts is None or parts.code[row] == COMPLETE:
            return ""
        age = int(parts.silent[row]) * self.step
        if np.isnan(parts.values[row]) or age > max_age:
            return parts.why(row)
        return Measured(float(parts.values[row]), self.end - age, parts.why(row))

    def age(self) -> timedelta | None:
        """Age of the latest sample of any workload; None without samples."""
        best = int(self.silent.min(initial=self.columns))
        return best * self.step if best < self.columns else None


_FLOATS = [(name, "f8") for name in ("value", "part", "actual", "expected")]
_LatestValue = np.dtype([*_FLOATS, ("at", "i8"), ("part_at", "i8"), ("code", "i1")])
_NOTHING = np.array([(np.nan, np.nan, np.nan, np.nan, NEVER, NEVER, COMPLETE)], _LatestValue)


class LatestCache:
    """The latest values of one signal: the last complete one, and incomplete ones since.

    Values that are incomplete are no history; here they are known as the lower bounds that they are.
    """

    def __init__(self) -> None:
        self._row: dict[WorkloadId, int] = {}
        self._latest = np.empty(0, _LatestValue)
        self._written, self._in_history = CachedRows(), CachedRows()

    def write(self, block: Block, values: Floats, verdict: CompletenessVerdict) -> None:
        """Store the latest columns of `values` [row, column], the judged values of a block."""
        columns = range(max(values.shape[1] - LATEST_COLUMNS, 0), values.shape[1])
        answered = ~np.isnan(values[:, columns.start :]) | (verdict.code[:, columns.start :] != COMPLETE)
        block_rows = np.flatnonzero(answered.any(axis=1))
        ids = [block.ids[row] for row in block_rows.tolist()] if len(block_rows) < len(answered) else block.ids
        rows = self._rows(ids)
        for column in columns:
            at = int((block.start + column * block.step).timestamp())
            judged = CompletenessVerdict(*(each[block_rows, column] for each in verdict))
            self._write(rows, at, values[block_rows, column], judged)

    def ended(self, now: datetime) -> None:
        """Forget what lies after `now`, where the clock went back."""
        at, latest = int(now.timestamp()), self._latest
        latest["at"][latest["at"] > at], latest["code"][latest["part_at"] > at] = NEVER, COMPLETE
        latest["part_at"][latest["part_at"] > at] = NEVER

    def others(self, ids: Sequence[WorkloadId], since: datetime) -> list[WorkloadId]:
        """The workloads with a complete value since then that are not among these."""
        lately = self._latest["at"] >= int(since.timestamp())
        lately[[self._row[id_] for id_ in ids if id_ in self._row]] = False
        if not lately.any():
            return []
        return [id_ for id_, row in self._row.items() if lately[row]]

    def over(self, latest: Latest) -> Latest:
        """Return the latest values of history, replaced by those stored here, unless history alone is newer."""
        if not self._row:
            return latest
        ids = tuple(self._row)
        at = self._in_history.of(ids, latest.row)
        new, row = np.flatnonzero(at < 0), latest.row
        if len(new):
            row = {**row, **{ids[place]: len(row) + nth for nth, place in enumerate(new.tolist())}}
            at = rows_among(ids, row)
        merged = np.repeat(_NOTHING, len(row))
        merged[at] = self._latest
        before, silent = _longer(latest.silent, len(new), latest.columns), _silent(merged["at"], latest)
        part_silent = _silent(merged["part_at"], latest)
        newer = before < np.minimum(silent, part_silent)  # of a time of which only history has anything
        values = np.where(newer, _longer(latest.values, len(new), np.nan), merged["value"])
        silent = np.where(newer, before, silent)
        parts = Parts(merged["part"], part_silent, merged["code"], merged["actual"], merged["expected"])
        known = _longer(latest.known, len(new), 0)
        return Latest(row, values, silent, known, latest.end, latest.step, latest.columns, parts)

    def _write(self, rows: NDArray[np.intp], at: int, values: Floats, verdict: CompletenessVerdict) -> None:
        latest = self._latest
        whole = (verdict.code == COMPLETE) & ~np.isnan(values) & (latest["at"][rows] <= at)
        written = rows[whole]
        latest["value"][written], latest["at"][written] = values[whole], at
        latest["code"][written[latest["part_at"][written] <= at]] = COMPLETE
        part = (verdict.code != COMPLETE) & (latest["part_at"][rows] <= at) & (latest["at"][rows] < at)
        written = rows[part]
        latest["part"][written], latest["part_at"][written] = values[part], at
        latest["code"][written] = verdict.code[part]
        latest["actual"][written], latest["expected"][written] = verdict.actual[part], verdict.expected[part]

    def _rows(self, ids: Sequence[WorkloadId]) -> NDArray[np.intp]:
        """Return the rows of these workloads; new workloads get the next rows."""
        if len(self._row) > 2 * len(ids) + SPARE_ROWS:
            self._keep(ids)
        rows = self._written.of(ids, self._row)
        new = [ids[place] for place in np.flatnonzero(rows < 0).tolist()]
        if not new:
            return rows
        self._row.update(zip(new, range(len(self._row), len(self._row) + len(new)), strict=True))
        self._latest = np.concatenate([self._latest, np.repeat(_NOTHING, len(new))])
        return self._written.of(ids, self._row)

    def _keep(self, ids: Sequence[WorkloadId]) -> None:
        """Give back the rows of others that have been away for long: of an answer, a shard may be missing."""
        answered, present = np.maximum(self._latest["at"], self._latest["part_at"]), frozenset(ids)
        lately = answered >= answered.max() - AWAY_SECONDS
        stay = [(id_, row) for id_, row in self._row.items() if lately[row] or id_ in present]
        self._row = {id_: at for at, (id_, _) in enumerate(stay)}
        self._latest = self._latest[[row for _, row in stay]]


def latest(window: Window, cache: LatestCache | None = None) -> Latest:
    """The last known column of each row; with a cache, what that knows better."""
    known = ~np.isnan(window.values)
    columns = int(known.shape[1])
    silent = np.where(known.any(axis=1), known[:, ::-1].argmax(axis=1), columns) if columns else np.zeros(len(known))
    last = np.clip(columns - 1 - silent, 0, None).astype(np.intp)
    values = np.take_along_axis(window.values, last[:, None], axis=1)[:, 0] if columns else np.zeros(len(known))
    from_history = Latest(
        row=window.row,
        values=values.astype(np.float64),
        silent=silent.astype(np.int64),
        known=np.count_nonzero(known, axis=1).astype(np.int64),
        end=window.end,
        step=window.step,
        columns=columns,
    )
    return from_history if cache is None else cache.over(from_history)


def _longer(column: NDArray[Column], more: int, nothing: float) -> NDArray[Column]:
    """A copy with more rows at its end."""
    return np.concatenate([column, np.full(more, nothing, column.dtype)])


def _silent(at: Columns, latest: Latest) -> Columns:
    passed = (int(latest.end.timestamp()) - at) // int(latest.step.total_seconds())
    return np.clip(passed, 0, latest.columns)


def _minutes(age: timedelta) -> str:
    return f"{age.total_seconds() / 60:.0f} min"


@dataclass(frozen=True, slots=True)
class DayAgo:
    """Looks a day back in a window of some weeks."""

    weeks: Window
    zones: Mapping[WorkloadId, str] = field(default_factory=dict)
    """Time zones of workloads whose day before is that of a clock that changes."""

    def peak(self, id_: WorkloadId, begin: datetime, until: datetime) -> float | None:
        """Largest value between these instants of the day before; None where none is known."""
        before = begin - DAY if id_ not in self.zones else time_by_clock(begin, DAY, self.zones[id_])
        first = -(-(before - self.weeks.start) // self.weeks.step)
        last = -(-(before + (until - begin) - self.weeks.start) // self.weeks.step)
        if id_ not in self.weeks.row or first < 0:
            return None
        values = self.weeks.values[self.weeks.row[id_], first : last + 1]
        return float(np.nanmax(values)) if values.size and not np.isnan(values).all() else None

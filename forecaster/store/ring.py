"""Ring: the latest points of one signal at one resolution, all workloads in one array."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import CachedRows
from forecaster.domain.window import Block, Window
from forecaster.domain.workload import WorkloadId

ROWS_AT_A_TIME = 512
"""Rows handled at a time, so that temporaries stay at a few MiB however many workloads there are."""


class HistoryRing:
    """float32 [workloads, columns] on a regular grid of `step`, ending at `latest`.

    Every row of the buffer is longer than the window by some slack. Advancing moves the window along the slack, and
    only when the slack is used up are the kept columns moved back to the front; so the window is always one plain
    view, without wrapping and without a copy. Rows stay dense: a forgotten row is filled by the last one.

    A column is *answered* once a source has been asked for it, whatever came back; that is kept apart from the values,
    because a workload without a sample must not be asked for again and again.

    Instants are aware UTC at the border and column numbers (epoch / step) inside. Not safe for concurrent use.
    """

    def __init__(self, *, step: timedelta, columns: int, latest: datetime) -> None:
        self.step = step
        self.columns = columns
        self._seconds = int(step.total_seconds())
        self._last = self._column(latest)
        self._offset = 0
        self._width = columns + max(16, columns // 64)
        self._buffer = np.empty((0, self._width), np.float32)
        self._answered = np.zeros(columns, np.bool_)
        self._keys: list[WorkloadId] = []
        self._rows: dict[WorkloadId, int] = {}
        self._shown = False
        """Whether a window has the rows: they are copied before they change."""
        self._written = CachedRows()
        """An answer mostly names the workloads of the one before."""
        self._last_known = np.empty(0, np.int64)

    @property
    def latest(self) -> datetime:
        """Instant of the last column."""
        return self._instant(self._last)

    @property
    def oldest(self) -> datetime:
        """Instant of the first column."""
        return self._instant(self._first)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """[columns]: whether a source has been queried for this instant. A copy."""
        return self._answered.copy()

    def __len__(self) -> int:
        return len(self._keys)

    def window(self) -> Window:
        """Return the whole history as a read-only view."""
        values = self._values
        values.flags.writeable = False
        self._shown = True
        return Window(tuple(self._keys), self.oldest, self.step, values, self._rows)

    def missing(self, since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
        """First and last instant of every run of columns within [since, until] that have not been answered."""
        low = max(self._first, self._column_from(since)) - self._first
        high = min(self._last, self._column(until)) - self._first
        runs = spans(~self._answered[low : high + 1]) if low <= high else []
        return [(self._instant(self._first + low + a), self._instant(self._first + low + b - 1)) for a, b in runs]

    def advance(self, to: datetime) -> None:
        """Make the column at or before `to` the latest; new columns are unknown and unanswered.

        If the clock was set back, the columns after `to` are dropped: real ones among them are read again in time.
        """
        ahead = self._column(to) - self._last
        if ahead > 0:
            self._shift(min(ahead, self.columns))
        elif ahead < 0:
            self._shift_back(min(-ahead, self.columns))
        self._last += ahead
        np.minimum(self._last_known, self._last, out=self._last_known)

    def write(self, block: Block) -> None:
        """Merge a block: known values replace, NaN and infinity change nothing; columns beyond the window are left out.

        Raises:
            ValueError: the block is on another grid than the ring.
        """
        start = self._on_grid(block)
        low, high = max(start, self._first), min(start + block.values.shape[1], self._last + 1)
        if low >= high:
            return
        rows, values = self._written.of(block.ids, self._rows).copy(), block.values[:, low - start : high - start]
        self._reserve(len(self) + int(np.count_nonzero(rows < 0)))
        for part in (slice(i, i + ROWS_AT_A_TIME) for i in range(0, len(block.ids), ROWS_AT_A_TIME)):
            self._merge(block.ids[part], rows[part], values[part], low)
        self._answered[low - self._first : high - self._first] = True

    def forget(self, before: datetime) -> int:
        """Drop every workload with a latest known value older than `before`; how many that were."""
        dead = np.flatnonzero(self._last_known[: len(self)] < self._column_from(before))
        for row in dead[::-1].tolist():
            self._drop(row)
        return len(dead)

    def forget_surplus(self, present: Mapping[str, int], spare: int) -> int:
        """Drop the longest silent of a namespace with over `spare` rows and two for each workload it has; how many."""
        if len(self) <= 2 * sum(present.values()) + spare:
            return 0
        by_namespace: dict[str, list[int]] = defaultdict(list)
        for row in np.argsort(self._last_known[: len(self)], kind="stable").tolist():
            by_namespace[self._keys[row].namespace].append(row)
        surplus = [
            row
            for namespace, rows in by_namespace.items()
            for row in rows[: max(len(rows) - 2 * present.get(namespace, 0) - spare, 0)]
        ]
        for row in sorted(surplus, reverse=True):
            self._drop(row)
        return len(surplus)

    def ask_again(self, without: Iterable[WorkloadId]) -> None:
        """Mark every column as unanswered, and drop these workloads."""
        self._answered[:] = False
        for key in without:
            if key in self._rows:
                self._drop(self._rows[key])

    def restore(
        self, keys: Sequence[WorkloadId], answered: NDArray[np.bool_], parts: Iterable[NDArray[np.float32]]
    ) -> None:
        """Fill an empty ring with rows that end at its latest column: `parts` [some of the keys, len(answered)].

        Rows are in the order of the keys. Columns without any value are asked for again: they may be filled by now.
        """
        keep = min(self.columns, len(answered))
        self._add(keys)
        row, filled = 0, np.zeros(keep, np.bool_)
        for part in parts:
            rows = self._values[row : row + len(part), self.columns - keep :]
            rows[...] = part[:, len(answered) - keep :]
            known = np.isfinite(rows)
            filled |= known.any(axis=0)
            self._last_known[row : row + len(part)] = _last_known_columns(known, self._last - keep + 1)
            row += len(part)
        self._answered[self.columns - keep :] = answered[len(answered) - keep :] & filled

    def _merge(self, ids: Sequence[WorkloadId], rows: NDArray[np.intp], values: NDArray[np.float64], low: int) -> None:
        """Put in known values. `rows` is -1 for workloads without a row, and becomes the row of those that get one."""
        with np.errstate(over="ignore"):  # beyond float32 becomes infinite, which is not known below
            fresh = values.astype(np.float32)
        known = np.isfinite(fresh)
        alive = np.flatnonzero(known.any(axis=1))
        if not alive.size:
            return
        new = alive[rows[alive] < 0]
        rows[new] = np.arange(len(self), len(self) + len(new))
        self._add([ids[i] for i in new.tolist()])
        fresh, known, rows = fresh[alive], known[alive], rows[alive]
        at = self._offset + low - self._first
        merged = self._buffer[rows, at : at + fresh.shape[1]]
        np.copyto(merged, fresh, where=known)
        self._buffer[rows, at : at + fresh.shape[1]] = merged
        self._last_known[rows] = np.maximum(self._last_known[rows], _last_known_columns(known, low))

    def _add(self, new: Sequence[WorkloadId]) -> None:
        if not new:
            return
        self._own_rows()
        count = len(self)
        self._reserve(count + len(new))
        self._rows.update(zip(new, range(count, count + len(new)), strict=True))
        self._keys.extend(new)
        self._buffer[count : len(self), self._offset : self._offset + self.columns] = np.nan
        self._last_known[count : len(self)] = self._first - 1

    def _reserve(self, rows: int) -> None:
        """Room for `rows` and an eighth more, so that growth is rare. Pages that no row has touched cost no memory."""
        if rows <= len(self._buffer):
            return
        capacity = rows * 9 // 8 + 64
        buffer, last_known = np.empty((capacity, self._width), np.float32), np.empty(capacity, np.int64)
        buffer[: len(self), : self.columns] = self._values
        last_known[: len(self)] = self._last_known[: len(self)]
        self._buffer, self._last_known, self._offset = buffer, last_known, 0

    def _own_rows(self) -> None:
        """Leave the rows to the windows that have them."""
        if self._shown:
            self._rows, self._shown = dict(self._rows), False

    def _drop(self, row: int) -> None:
        self._own_rows()
        self._written = CachedRows()
        last = len(self) - 1
        del self._rows[self._keys[row]]
        if row != last:
            self._values[row] = self._values[last]
            self._last_known[row] = self._last_known[last]
            self._keys[row] = self._keys[last]
            self._rows[self._keys[row]] = row
        self._keys.pop()

    @property
    def _first(self) -> int:
        return self._last - self.columns + 1

    @property
    def _values(self) -> NDArray[np.float32]:
        return self._buffer[: len(self), self._offset : self._offset + self.columns]

    def _shift(self, ahead: int) -> None:
        keep = self.columns - ahead
        if self._offset + self.columns + ahead > self._width:
            self._move_to_front(keep)
            self._offset = 0
        else:
            self._offset += ahead
        self._values[:, keep:] = np.nan
        self._answered[:keep] = self._answered[ahead:]
        self._answered[keep:] = False

    def _shift_back(self, back: int) -> None:
        for i in range(0, len(self), ROWS_AT_A_TIME):
            rows = self._values[i : i + ROWS_AT_A_TIME]
            rows[:, back:] = rows[:, : self.columns - back].copy()
            rows[:, :back] = np.nan
        self._answered[back:] = self._answered[: self.columns - back].copy()
        self._answered[:back] = False

    def _move_to_front(self, keep: int) -> None:
        source = self._offset + self.columns - keep
        for i in range(0, len(self), ROWS_AT_A_TIME):
            rows = self._buffer[i : i + ROWS_AT_A_TIME]
            rows[:, :keep] = rows[:, source : source + keep]

    def _column(self, at: datetime) -> int:
        if at.tzinfo is None:
            raise ValueError(f"history: {at} has no time zone; instants are aware UTC")
        return int(at.timestamp() // self._seconds)

    def _column_from(self, at: datetime) -> int:
        """The first column at or after `at`."""
        return -int(-at.timestamp() // self._seconds)

    def _instant(self, column: int) -> datetime:
        return datetime.fromtimestamp(column * self._seconds, UTC)

    def _on_grid(self, block: Block) -> int:
        column = self._column(block.start)
        if block.step != self.step or self._instant(column) != block.start:
            raise ValueError(f"history: a block from {block.start} by {block.step} is not on the grid of {self.step}")
        return column


def _last_known_columns(known: NDArray[np.bool_], first: int) -> NDArray[np.int64]:
    """Column of the last true value of every row, counted from `first`; the one before `first` where there is none."""
    last = first + known.shape[1] - 1 - np.argmax(known[:, ::-1], axis=1)
    return np.where(known.any(axis=1), last, first - 1)


def spans(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """`[start, stop)` of every run of true values, in order.

    >>> spans(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))

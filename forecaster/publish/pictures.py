"""PictureFile: what the dashboard draws of every workload, in a file beside the table, written every five minutes.

It has the form of the table and the same order of rows, with series in the place of texts: half a day by five minutes
of demand, ready pods, what was decided and what was forecast. HPAs never wait for it: the table is written first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.alignment import rows_among
from forecaster.domain.signal import PODS, Signal, Signals, StepForecast
from forecaster.domain.window import FIVE_MINUTES, HOUR, Window, last_multiple
from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.horizontal.columns import rows_before
from forecaster.publish.offer import NO_COUNT
from forecaster.publish.publisher import OfferedCycle
from forecaster.publish.reader import PublishedTable
from forecaster.publish.table import PLACES, SIZES, TEXTS, TableMeta, WrittenColumn, write_table
from forecaster.publish.table_file import TableOrder, array_column, column_of

Floats32 = NDArray[np.float32]

PICTURE_POINTS = 144
"""Twelve hours by five minutes: 0.6 kB a series and workload."""
COPIED_AT_ONCE = 1000
"""Rows of a series that are copied together: a copy of all would be beside the pictures at the peak of memory."""
PAST, AHEAD = 36, 12
"""Columns of a sparkline: three hours of demand, and the hour that is forecast step by step."""
LOW, HIGH = 0.1, 0.9
"""Quantiles between which a sparkline has its band."""
FULL = 255
"""A sparkline has one byte per point: 1 for zero, this for its largest value, 0 for unknown."""
DECIDED_LINES = ("recommended", "reactive", "peak")
"""Series of decisions: both counts, and the forecast peak of the drawn signal."""


@dataclass(eq=False)
class PictureFile:
    """`OfferReceiver` into the file of pictures, at the first cycle of every five minutes.

    `window` returns the histories of all `signals` but those of single containers, `paths` those of the coming hour.
    """

    path: Path
    _: KW_ONLY
    interval: timedelta
    version: str
    signals: Signals
    window: Callable[[Signal, timedelta], Window]
    paths: Callable[[], Mapping[WorkloadId, Mapping[Signal, StepForecast]]] = dict

    def __post_init__(self) -> None:
        self._demand = tuple(signal for signal in self.signals.demand if not signal.of_container)
        self._measured = (*self._demand, PODS)
        self._order = TableOrder(())
        self._drawn: datetime | None = None

    def receive(self, cycle: OfferedCycle) -> None:
        """Replace the file as a whole, if it is time to. Raises StoreError."""
        end = last_multiple(cycle.at, FIVE_MINUTES)
        if end == self._drawn:
            return
        self._drawn = end
        shown = shown_signals(cycle, self._demand)
        if cycle.ids != self._order.ids:
            self._order = TableOrder(cycle.ids)
        meta = TableMeta(published_at=end, interval_seconds=self.interval.total_seconds(), version=self.version)
        names = (*map(str, self._measured), *DECIDED_LINES)
        write_table(self.path, meta, len(cycle.ids), names, dict(self._columns(cycle, end, shown)))

    def _columns(self, cycle: OfferedCycle, end: datetime, shown: ShownSignals) -> Iterator[tuple[str, WrittenColumn]]:
        rows = self._order.rows
        yield from self._order.identity.items()
        yield "shown", column_of(shown.signal[None], rows)
        yield "pod", column_of(shown.pod[None], rows)
        decided = decided_before(self.path, self._order.sorted, end)
        decided[:, :, -1] = decided_now(cycle, shown)[:, rows].T
        ago = decided[:, DECIDED_LINES.index("recommended"), -1 - HOUR // FIVE_MINUTES]
        yield "hour_ago", array_column("i", 1, np.where(np.isnan(ago), NO_COUNT, ago).astype(np.int32))
        yield from fixed_columns("decided", decided)
        series = np.full((len(rows), len(self._measured), PICTURE_POINTS), np.nan, np.float32)
        for place, signal in enumerate(self._measured):
            put_last_points(series[:, place], self.window(signal, FIVE_MINUTES), self._order.sorted, end)
        yield from fixed_columns("series", series)
        past = series[np.arange(len(rows)), shown.signal[rows], -PAST:]
        yield from fixed_columns("spark", sparklines(past, self._bands(end, shown.signal[rows])))

    def _bands(self, end: datetime, shown: NDArray[np.int8]) -> Floats32:
        """Return the coming hour [row, low or high, step] of the drawn signals, NaN where there is none."""
        bands, paths = np.full((len(shown), 2, AHEAD), np.nan, np.float32), self.paths()
        for row, (id_, place) in enumerate(zip(self._order.sorted, shown.tolist(), strict=True)):
            path = paths.get(id_, {}).get(self._demand[place])
            if path is not None:
                _put_band(bands[row], path, (path.begin - end) // path.step)
        return bands


class ShownSignals(NamedTuple):
    """Signal that is drawn first [row]: a position in the signals of demand."""

    signal: NDArray[np.int8]
    pod: NDArray[np.float64]
    """The demand of that signal that fills a pod to its target; NaN where it is not known."""
    peak: NDArray[np.float64]
    """Forecast peak of the signal."""


def shown_signals(cycle: OfferedCycle, signals: Sequence[Signal]) -> ShownSignals:
    """The first signal in the table of signals that decides a count; the first of all where none does."""
    decided = cycle.decided
    shown = np.zeros(len(cycle.ids), np.int8)
    pod, peak = np.full(len(shown), np.nan), np.full(len(shown), np.nan)
    for place in reversed(range(len(signals))):
        if str(signals[place]) in decided.signals:
            plane = decided.signals.index(str(signals[place]))
            rows = decided.decides[plane]
            shown[rows], pod[rows], peak[rows] = place, decided.pod[plane, rows], decided.peak[plane, rows]
    return ShownSignals(shown, pod, peak)


def decided_now(cycle: OfferedCycle, shown: ShownSignals) -> Floats32:
    """`DECIDED_LINES` of a cycle [series, row]."""
    decided = cycle.decided
    known = decided.recommended != NO_COUNT
    counts = (np.where(known, count, np.nan) for count in (decided.recommended, decided.reactive))
    return np.stack([*counts, shown.peak]).astype(np.float32)


def decided_before(path: Path, ids: Sequence[WorkloadId], end: datetime) -> Floats32:
    """Lines of decisions until `end` [row, series, point] from the file at `path`; NaN where it has none.

    They are kept nowhere else: memory does not grow with them, and they outlive the process.
    """
    lines = np.full((len(ids), len(DECIDED_LINES), PICTURE_POINTS), np.nan, np.float32)
    try:
        with path.open("rb") as file:
            before = PublishedTable(os.dup(file.fileno()))
    except (OSError, StoreError):
        return lines
    persisted = np.frombuffer(before.whole("decided" + TEXTS), np.float32)
    steps = (end - before.meta.published_at) // FIVE_MINUTES
    if persisted.size != before.rows * len(DECIDED_LINES) * PICTURE_POINTS or not 0 <= steps < PICTURE_POINTS:
        return lines
    identity = zip(*(before.texts(name) for name in WorkloadId._fields), strict=True)
    rows = rows_before([WorkloadId(*names) for names in identity], ids)
    there, points = rows >= 0, persisted.reshape(before.rows, len(DECIDED_LINES), PICTURE_POINTS)
    for line in range(len(DECIDED_LINES)):  # all at once would be copied as a whole
        lines[there, line, : PICTURE_POINTS - steps] = points[rows[there], line, steps:]
    return lines


def put_last_points(points: Floats32, window: Window, ids: Sequence[WorkloadId], end: datetime) -> None:
    """Put the last points of a window until `end` into `found` [row, point], in the order of `ids`, where known."""
    if not len(window.keys):
        return
    rows = rows_among(ids, window.row)
    there = np.flatnonzero(rows >= 0)
    stop = min((end - window.start) // window.step + 1, window.values.shape[1])
    late = (end - window.start) // window.step + 1 - stop
    width = max(min(PICTURE_POINTS - late, stop), 0)
    last = PICTURE_POINTS - late
    for part in np.array_split(there, 1 + len(there) // COPIED_AT_ONCE):
        points[part, last - width : last] = window.values[rows[part], stop - width : stop]


def sparklines(past: Floats32, band: Floats32) -> NDArray[np.uint8]:
    """Bytes [row, point]: demand, then the lower and the upper end of the band, all to the scale of their row."""
    values = np.concatenate([past, band[:, 0], band[:, 1]], axis=1)
    top = np.fmax.reduce(values, axis=1, initial=0.0)[:, None]
    with np.errstate(invalid="ignore"):
        scaled = 1.0 + (FULL - 1) * np.clip(values / np.where(top > 0.0, top, 1.0), 0.0, 1.0)
    return np.where(np.isnan(values), 0.0, np.rint(scaled)).astype(np.uint8)


def _put_band(row: Floats32, path: StepForecast, late: int) -> None:
    """Put the steps of a path that begins `late` steps after the last measured point into a row [low or high, step]."""
    if LOW not in path.levels or HIGH not in path.levels or not -AHEAD <= late <= AHEAD:
        return
    steps = path.values[max(-late, 0) : AHEAD - late]
    at = max(late, 0)
    for place, level in enumerate((LOW, HIGH)):
        column = path.levels.index(level)
        row[place, at : at + len(steps)] = [step[column] for step in steps]


def fixed_columns(name: str, values: NDArray[Any]) -> Iterator[tuple[str, WrittenColumn]]:
    """The three columns of a text of the same size for each row: the bytes of its values."""
    size = values[0].nbytes if len(values) else 0
    yield name + PLACES, array_column("Q", 1, np.arange(len(values), dtype=np.uint64) * np.uint64(size))
    yield name + SIZES, array_column("I", 1, np.full(len(values), size, np.uint32))
    yield name + TEXTS, array_column("B", 0, values)

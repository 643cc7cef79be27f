"""TableReader: the latest valid table, however often the file is replaced or damaged. No numpy."""

from __future__ import annotations

import asyncio
import os
import weakref
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from forecaster.domain.decision import Recommendation
from forecaster.domain.signal import StepForecast
from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.horizontal.row import REASONS
from forecaster.horizontal.sentences import recommendation
from forecaster.publish.decision_history import WorkloadHistory
from forecaster.publish.overlay import OverlayReader, overlay_path
from forecaster.publish.record import MODE_CODES, StoredSizes, decided_row, verdict_of, workload_offer
from forecaster.publish.table import NAMES, PLACES, SIZES, TEXTS, TableBytes, read_column, read_header
from forecaster.publish.values import CLOCK_SKEW, Moment, WorkloadOffer
from forecaster.publish.views import RecommendationView, recommendation_view

IN_MEMORY = frozenset(name + TEXTS for name in ("namespace", "name", "kind", "consumers")) | {NAMES + PLACES}
"""Texts without which no number can be found or said, and the places of names."""
_history = msgspec.json.Decoder(WorkloadHistory)
_paths = msgspec.json.Decoder(dict[str, StepForecast])
_sizes = msgspec.json.Decoder(StoredSizes)


class TableEntry(NamedTuple):
    """One row of a table: the workload, and what lists are filtered by."""

    row: int
    namespace: str
    name: str
    kind: str
    verdict: str
    reason: str

    @property
    def identity(self) -> tuple[str, str, str]:
        """Namespace, kind and name, as in the identity of the workload."""
        return (self.namespace, self.kind, self.name)

    @property
    def key(self) -> tuple[str, str, str]:
        """The order of the table."""
        return (self.namespace, self.name, self.kind)


class PublishedTable:
    """One published table: its numbers and names in memory, its texts in the file, which stays readable when replaced.

    The file is not mapped: one that is cut short in place would end the process, and not only lose a text.
    """

    def __init__(self, descriptor: int, overlay: OverlayReader | None = None) -> None:
        self._overlay = overlay
        weakref.finalize(self, os.close, descriptor)
        self._file = TableBytes(descriptor)
        self._header, self._begin = read_header(self._file)
        self.meta = self._header.meta
        self.signals = self._header.signals
        self.rows = self._header.rows
        self.columns: dict[str, list[memoryview]] = {name: self._column(name) for name in self._header.columns}
        """Columns by name: numbers as [plane][row], names as bytes."""

    @property
    def entries(self) -> TableEntries:
        """All rows. Not kept: a table that refers to itself is closed late, and its file keeps its place till then."""
        return TableEntries(self)

    def _column(self, name: str) -> list[memoryview]:
        place, rows = self._header.columns[name], self.rows
        keep = bool(place.planes) or name in IN_MEMORY
        code: Any = place.code
        whole = memoryview(read_column(self._file, self._header, self._begin, name, keep=keep)).cast(code)
        return [whole[plane * rows : (plane + 1) * rows] for plane in range(place.planes)] or [whole]

    def number(self, name: str, row: int) -> float:
        """Return one value of a column with one plane."""
        value: float = self.columns[name][0][row]
        return value

    def text(self, name: str, row: int) -> bytes:
        """The text of a row."""
        at, size = self.columns[name + PLACES][0][row], self.columns[name + SIZES][0][row]
        if name + TEXTS in IN_MEMORY:
            return bytes(self.columns[name + TEXTS][0][at : at + size])
        place = self._header.columns[name + TEXTS]
        return self._file.read(self._begin + place.at + at, size)

    def name(self, code: int) -> bytes:
        """Return the text to which columns of names refer by this position."""
        at, end = self.columns[NAMES + PLACES][0][code : code + 2]
        return self._file.read(self._begin + self._header.columns[NAMES + TEXTS].at + at, end - at)

    def entry(self, row: int) -> TableEntry:
        """One row."""
        namespace, name, kind = (self.text(column, row).decode() for column in ("namespace", "name", "kind"))
        recommended = int(self.number("recommended", row))
        verdict = verdict_of(int(self.number("current", row)), None if recommended < 0 else recommended)
        return TableEntry(row, namespace, name, kind, verdict, REASONS[int(self.number("reason", row))])

    def named(self, namespace: str, name: str) -> list[TableEntry]:
        """The workloads of that name: none, one, or one of each kind."""
        return [self.entry(row) for row in self._rows_named(namespace, name)]

    def row_of(self, namespace: str, name: str, kind: str) -> int | None:
        """The row of a workload; None where it has none."""
        rows = self._rows_named(namespace, name)
        return next((row for row in rows if self.text("kind", row).decode() == kind), None)

    def _rows_named(self, namespace: str, name: str) -> Iterator[int]:
        names = (namespace, name)
        row = bisect_left(range(self.rows), names, key=self._name)
        while row < self.rows and self._name(row) == names:
            yield row
            row += 1

    def _name(self, row: int) -> tuple[str, str]:
        return self.text("namespace", row).decode(), self.text("name", row).decode()

    def published(self, entry: TableEntry) -> WorkloadOffer | None:
        """Return the offer for autoscalers, with the present count; None where the policy publishes nothing."""
        offer = workload_offer(self.columns, self.signals, entry.row, self.text("consumers", entry.row))
        if offer is None or self._overlay is None:
            return offer
        return self._overlay.over(offer, entry, self.meta.live, self.meta.published_at)

    def recommendation(self, entry: TableEntry) -> Recommendation:
        """Return the decision about a workload from its numbers and texts; without the targets of its HPA."""
        row = decided_row(self, entry.row, self.meta.published_at)
        sizes = _sizes.decode(self.text("sizes", entry.row))
        return recommendation(WorkloadId(*entry.identity), row, sizes.now, sizes.decided)

    def view(self, entry: TableEntry) -> RecommendationView:
        """Return the public form of the decision about a workload."""
        return recommendation_view(self.recommendation(entry), MODE_CODES[self.columns["mode"][0][entry.row]])

    def whole(self, name: str) -> bytes:
        """Return the bytes of a column that has no rows or is not kept in memory; empty if it is absent."""
        place = self._header.columns.get(name)
        return self._file.read(self._begin + place.at, place.size) if place else b""

    def texts(self, name: str) -> list[str]:
        """The text of every row."""
        whole = self.whole(name + TEXTS)
        spans = zip(self.columns[name + PLACES][0].tolist(), self.columns[name + SIZES][0].tolist(), strict=True)
        return [whole[at : at + size].decode() for at, size in spans]

    def past(self, entry: TableEntry) -> WorkloadHistory:
        """Return the recent past of a workload."""
        return _history.decode(self.text("history", entry.row))

    def paths(self, entry: TableEntry) -> dict[str, StepForecast]:
        """Return the forecasts of a workload step by step, by signal."""
        return _paths.decode(self.text("steps", entry.row))


class TableEntries(Sequence[TableEntry]):
    """The rows of a table in their order, each made when it is looked at."""

    def __init__(self, table: PublishedTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return self._table.rows

    def __getitem__(self, index: int) -> TableEntry:  # type: ignore[override]  # nothing takes a slice
        return self._table.entry(range(len(self))[index])


def now() -> datetime:
    """The clock, aware UTC."""
    return datetime.now(UTC)


STALE_INTERVALS = 3
"""Intervals without a new table before its values are called stale: one may be late, two may be skipped."""


class TableAge(msgspec.Struct, frozen=True):
    """Age of the decisions, and whether it is too high."""

    published_at: datetime
    age_seconds: float
    stale: bool


class TableReader:
    """Watches one path. `table` is the latest valid table, None before the first."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = now, stale_after: timedelta | None = None) -> None:
        """A table is stale after `stale_after`; when that is None, after three of its own intervals."""
        self.path = path
        self.table: PublishedTable | None = None
        self.fault = f"no table has been published at {path} yet"
        """Why the latest file is not served; empty when it is."""
        self.failures = 0
        """Total number of files that could not be read."""
        self.clock, self.stale_after = clock, stale_after
        self._overlay = OverlayReader(overlay_path(path), clock)
        self._stamp: tuple[int, int, int] | None = None

    def age(self, table: PublishedTable) -> TableAge:
        """The age of a table: negative, and stale, for one from the future; a small skew of clocks is no age."""
        usual = timedelta(seconds=STALE_INTERVALS * table.meta.interval_seconds)
        age, limit = self.clock() - table.meta.published_at, usual if self.stale_after is None else self.stale_after
        if age < timedelta(0) and age >= -CLOCK_SKEW:
            age = timedelta(0)
        return TableAge(table.meta.published_at, age.total_seconds(), stale=not timedelta(0) <= age <= limit)

    def moment(self, table: PublishedTable) -> Moment:
        """Return the moment of reading a table now."""
        return Moment(self.clock(), table.meta.published_at, fresh=not self.age(table).stale)

    def refresh(self) -> None:
        """Load the file if it is another one than before; a bad one leaves the last good table in place."""
        try:
            status = self.path.stat()
        except OSError as error:
            if self.table is not None:
                self.fault = f"the table {self.path} is gone ({error.strerror}); serving the last one"
            elif not isinstance(error, FileNotFoundError):
                self.fault = f"the table {self.path} cannot be read: {error.strerror}"
            return
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            self._load()
            self._stamp = stamp

    def _load(self) -> None:
        try:
            self.table = self._opened()
            self.fault = ""
        except (OSError, StoreError) as error:
            self.failures += 1
            self.fault = f"the table {self.path} cannot be served: {error}"

    def _opened(self) -> PublishedTable:
        with self.path.open("rb") as file:
            table = PublishedTable(os.dup(file.fileno()), self._overlay)
        ahead = table.meta.published_at - self.clock()
        if ahead > CLOCK_SKEW:  # after a jump of the clock it would count as fresh until that instant
            raise StoreError(f"it is of {table.meta.published_at:%Y-%m-%d %H:%M:%S} UTC, which is still to come")
        return table


def last_table(path: Path) -> PublishedTable | None:
    """Return the table at `path`; None where there is no good one."""
    reader = TableReader(path)
    reader.refresh()
    return reader.table


TABLE_POLL_SECONDS = 0.25
"""Interval at which the file is checked: one stat. A new table is served within this time."""


@asynccontextmanager
async def watching(reader: TableReader) -> AsyncIterator[None]:
    """The latest table, loaded once before the block begins and kept up to date while it lasts."""
    await asyncio.to_thread(reader.refresh)
    watch = asyncio.create_task(_watch(reader))
    yield
    watch.cancel()
    with suppress(asyncio.CancelledError):
        await watch


async def _watch(reader: TableReader) -> None:
    """Loads new tables beside the requests: none of them waits for it."""
    while True:
        await asyncio.sleep(TABLE_POLL_SECONDS)
        try:
            await asyncio.to_thread(reader.refresh)
        except Exception as error:  # noqa: BLE001  no memory, no thread: the next look may have it, and there has to be one
            reader.fault = f"the table {reader.path} cannot be read: {type(error).__name__}: {error}"

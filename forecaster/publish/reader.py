"""TableReader: the newest good table, however often the file is replaced or damaged."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import defaultdict
from contextlib import asynccontextmanager, suppress
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import msgspec

from forecaster.errors import StoreError
from forecaster.publish.decision_history import WorkloadHistory
from forecaster.publish.table import TableEntry, TableHeader, read_header
from forecaster.publish.values import WorkloadOffer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


PIECE = 1 << 18
_past = msgspec.json.Decoder(WorkloadHistory)
_decoder: msgspec.json.Decoder[WorkloadOffer | None] = msgspec.json.Decoder(WorkloadOffer | None)


class PublishedTable:
    """One published table: index in memory, records in its file, which stays readable after it has been replaced."""

    def __init__(self, descriptor: int, records_at: int, header: TableHeader) -> None:
        self.meta = header.meta
        self.entries = entries = header.entries
        """Ordered by `Entry.key`."""
        self._gauges_at = records_at + header.gauges_at
        self._descriptor = descriptor
        self._records_at = records_at
        self._places: dict[str, dict[str, int]] = defaultdict(dict)
        """The first one of each name. Dictionaries of numbers, which the garbage collector does not look into."""
        for place, entry in enumerate(entries):
            self._places[entry.namespace].setdefault(entry.name, place)
        weakref.finalize(self, os.close, descriptor)

    def named(self, namespace: str, name: str) -> list[TableEntry]:
        """The workloads of that name: none, one, or one of each kind."""
        first = self._places.get(namespace, {}).get(name)
        if first is None:
            return []
        return list(takewhile(lambda entry: entry.key[:2] == (namespace, name), islice(self.entries, first, None)))

    def published(self, entry: TableEntry) -> WorkloadOffer | None:
        """What autoscalers read of a workload; None where its policy publishes nothing."""
        return _decoder.decode(entry.values)

    def record(self, entry: TableEntry) -> msgspec.Raw:
        """The record of a workload, as it goes over the wire."""
        return msgspec.Raw(os.pread(self._descriptor, entry.size, self._records_at + entry.offset))

    def past(self, entry: TableEntry) -> WorkloadHistory:
        """What became of a workload lately."""
        at = self._records_at + entry.offset + entry.size
        return _past.decode(os.pread(self._descriptor, entry.past_size, at))

    def paths(self, entry: TableEntry) -> bytes:
        """Its forecast step by step, as it was kept."""
        at = self._records_at + entry.offset + entry.size + entry.past_size
        return os.pread(self._descriptor, entry.paths_size, at)

    def gauges(self) -> Iterator[bytes]:
        """The gauges of all workloads, a piece at a time: together they are some megabytes."""
        at = self._gauges_at
        while piece := os.pread(self._descriptor, PIECE, at):
            yield piece
            at += len(piece)


class TableReader:
    """Watches one path. `table` is the newest good table, None before the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.table: PublishedTable | None = None
        self.fault = f"no table has been published at {path} yet"
        """Why the newest file is not served; empty when it is."""
        self.failures = 0
        """How many files could not be read, in total."""
        self._stamp: tuple[int, int, int] | None = None

    def refresh(self) -> None:
        """Load the file if it is another one than before; a bad one leaves the last good table in place."""
        try:
            status = self.path.stat()
        except OSError as error:
            if self.table is not None:
                self.fault = f"the table {self.path} is gone ({error.strerror}); serving the last one"
            return
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            self._load()
            self._stamp = stamp

    def _load(self) -> None:
        try:
            self.table = _open(self.path)
            self.fault = ""
        except (OSError, StoreError) as error:
            self.failures += 1
            self.fault = f"the table {self.path} cannot be served: {error}"


def _open(path: Path) -> PublishedTable:
    with path.open("rb") as file:
        header, records_at = read_header(file)
        return PublishedTable(os.dup(file.fileno()), records_at, header)


POLL_SECONDS = 0.25
"""How often the file is looked at: one stat. A new table is served within this time."""


@asynccontextmanager
async def watching(reader: TableReader) -> AsyncIterator[None]:
    """The newest table, loaded once before the block begins and kept up to date while it lasts."""
    await asyncio.to_thread(reader.refresh)
    watch = asyncio.create_task(_watch(reader))
    yield
    watch.cancel()
    with suppress(asyncio.CancelledError):
        await watch


async def _watch(reader: TableReader) -> None:
    """Loads new tables beside the requests: none of them waits for it."""
    while True:
        await asyncio.sleep(POLL_SECONDS)
        await asyncio.to_thread(reader.refresh)

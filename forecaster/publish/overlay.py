"""Overlay: what the API server says between two cycles, in a small file beside the table. No numpy.

It has the count, and the targets that read our metrics, of every workload at which one of them changed since the table
before the last one; all other workloads are as the table says. It is replaced as a whole within a moment of a change.
Its time of modification is the instant up to which the computing process knows of no other change, moved on every
second; from `LAPSED` on it says nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from forecaster.domain.workload import WorkloadId
from forecaster.publish.values import CLOCK_SKEW, MetricTarget, WorkloadOffer

if TYPE_CHECKING:
    from forecaster.publish.reader import TableEntry

LAPSED = timedelta(seconds=5)
"""Age at which an overlay is no knowledge."""
BEAT_SECONDS = 1.0
GATHER_SECONDS = 0.05
"""Changes within this time are written at once, as those of a list."""
OVERLAY_CHECK_SECONDS = 0.02
"""Time between two checks of the file: one stat and sixteen bytes."""
NUMBER_BYTES = 16
GONE = -1


class PresentWorkload(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The count and the readers of a workload as they are now."""

    replicas: int
    """`GONE` of a workload that is."""
    readers: tuple[MetricTarget, ...] = ()


class Overlay(msgspec.Struct, frozen=True):
    """The workloads that changed."""

    since: float
    """Seconds since 1970; the overlay has all changes from then on."""
    rows: tuple[tuple[WorkloadId, PresentWorkload], ...]


def overlay_path(table: Path) -> Path:
    """The overlay of a table."""
    return table.with_suffix(".live")


class OverlayWriter:
    """Writes the overlay. `changed` may be called by any thread; `run` belongs to one.

    `present` returns the present workload, `confirmed` the instant in seconds since 1970 up to which that is known.
    """

    def __init__(
        self,
        path: Path,
        present: Callable[[WorkloadId], PresentWorkload],
        confirmed: Callable[[], float],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path, self._present, self._confirmed, self._clock = path, present, confirmed, clock
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._news.set()  # a file that is there is that of another process: it is replaced before it is confirmed
        self._instants: dict[WorkloadId, float] = {}
        self._since = self._before = 0.0
        self._number = time.time_ns()
        self.fault = ""
        """Reason why it cannot be written; empty while it can."""

    def changed(self, id_: WorkloadId) -> None:
        """Write the present state of a workload that changed."""
        with self._lock:
            self._instants[id_] = self._clock()
        self._news.set()

    def published(self, at: datetime, since: float | None = None) -> None:
        """A table was written with the counts and targets of that instant or later.

        What changed before the table before it is in both: readers take a moment to see the new one. Where that is by
        another clock, `since` is an instant by ours, from which on changes are not in both.
        """
        with self._lock:
            self._since, self._before = self._before, at.timestamp()
            oldest = self._since if since is None else min(since, self._since)
            self._instants = {id_: instant for id_, instant in self._instants.items() if instant >= oldest}
        self._news.set()

    def run(self, stop: threading.Event, beat: Callable[[], None] = lambda: None) -> None:
        """Write changes, and confirm the rest, until stopped; `beat` is called each time."""
        while not stop.is_set():
            if self._news.wait(BEAT_SECONDS):
                stop.wait(GATHER_SECONDS)
            self.step()
            beat()

    def step(self) -> None:
        """Write the file where something changed, and confirm it. One that cannot be written lapses."""
        confirmed = self._confirmed()  # first: what is told after this instant need not be in the file
        news = self._news.is_set()
        self._news.clear()
        try:
            if news or self.fault or not self._path.exists():
                self._write(confirmed)
            else:
                os.utime(self._path, (confirmed, confirmed))
            self.fault = ""
        except OSError as error:
            self.fault = f"overlay {self._path}: {error.strerror}; make its directory writable and free some space"

    def close(self) -> None:
        """Leave nothing that could be believed."""
        self._path.unlink(missing_ok=True)

    def _write(self, confirmed: float) -> None:
        with self._lock:
            since, ids = self._since, list(self._instants)
        rows = tuple((id_, self._present(id_)) for id_ in ids)
        self._number += 1
        temporary = self._path.with_name(f".{self._path.name}.new")
        temporary.write_bytes(b"%0*x" % (NUMBER_BYTES, self._number) + msgspec.json.encode(Overlay(since, rows)))
        os.utime(temporary, (confirmed, confirmed))
        temporary.replace(self._path)


class OverlayState(NamedTuple):
    """An overlay, and the instant up to which it is confirmed."""

    confirmed: datetime
    since: datetime
    rows: Mapping[tuple[str, str, str], PresentWorkload]


_decoder = msgspec.json.Decoder(Overlay)


class OverlayReader:
    """Latest overlay of a table, read anew when it has changed."""

    def __init__(self, path: Path, clock: Callable[[], datetime]) -> None:
        self._path, self._clock = path, clock
        self._checked_at = 0.0
        self._number = b""
        self._state: OverlayState | None = None

    def over(
        self, offer: WorkloadOffer, row: TableEntry, kinds: Collection[str], published_at: datetime
    ) -> WorkloadOffer:
        """Return an offer of a table with the present count and readers of the workload.

        `kinds` have counts from the API server in the table. For these, an unconfirmed count is not
        current; for other kinds the table's count is used.
        """
        state = self._current()
        present = None if state is None else state.rows.get(row.identity)
        if present is None and row.kind not in kinds:
            return offer
        if state is None or (present.replicas == GONE if present else state.since > published_at):
            return msgspec.structs.replace(offer, live=True)
        if present is None:
            return msgspec.structs.replace(offer, live=True, confirmed=state.confirmed)
        return msgspec.structs.replace(
            offer, replicas_now=present.replicas, consumers=present.readers, live=True, confirmed=state.confirmed
        )

    def _current(self) -> OverlayState | None:
        """Return the confirmed overlay; None where there is none."""
        now = time.monotonic()
        if now - self._checked_at >= OVERLAY_CHECK_SECONDS:
            self._checked_at = now
            self._refresh()
        state = self._state
        if state is None or not -CLOCK_SKEW <= self._clock() - state.confirmed <= LAPSED:
            return None
        return state

    def _refresh(self) -> None:
        """Read the file; one that is gone, or is not understood, says nothing."""
        try:
            with self._path.open("rb") as file:
                confirmed = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
                number = file.read(NUMBER_BYTES)
                if self._state is not None and number == self._number:
                    self._state = self._state._replace(confirmed=confirmed)
                    return
                overlay = _decoder.decode(file.read())
                since = datetime.fromtimestamp(overlay.since, UTC)
        except (OSError, ValueError, OverflowError, msgspec.DecodeError):
            self._state = None
            return
        self._number, self._state = number, OverlayState(confirmed, since, dict(overlay.rows))

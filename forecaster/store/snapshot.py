"""The rings on disk, so that a restart reads only what it missed.

    magic, 8 bytes | size of the header, 4 | header, JSON | kept columns of all rings, float32 | checksum, 4

Plain numbers and JSON: reading one runs no code. Both directions hold a few MiB at a time, however large the rings are.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.store.history import HistoryStore, Rings
from forecaster.store.ring import ROWS_AT_A_TIME, HistoryRing

if TYPE_CHECKING:
    from io import BufferedReader

SNAPSHOT_MAGIC = b"fcRings1"
SNAPSHOT_PREFIX = struct.Struct("<8sI")
CHECKSUM = struct.Struct("<I")
FLOAT = np.dtype("<f4")


class RingHeader(msgspec.Struct, frozen=True, kw_only=True):
    """One ring without its values."""

    signal: str
    step_seconds: int
    newest: datetime
    columns: int
    answered: bytes
    """One bit for each column."""
    keys: list[tuple[str, str, str]]


class Snapshots:
    """Saves the history to one file and reads it back."""

    def __init__(self, path: Path, history: HistoryStore) -> None:
        self.path = path
        self._history = history

    def save(self) -> None:
        """Replace the snapshot by the present history; call it between cycles.

        Raises:
            StoreError: it cannot be written; the previous one is still there.
        """
        temporary = self.path.with_name(f".{self.path.name}.new")
        try:
            with temporary.open("wb") as file:
                _write(file, self._history)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except OSError as error:
            with suppress(OSError):  # of a file system that has become read-only nothing can be removed either
                temporary.unlink(missing_ok=True)
            raise StoreError(
                f"snapshot {self.path}: cannot be saved ({error.strerror}); the previous one is kept and a restart asks"
                " for more. Make its directory writable and free some space."
            ) from error

    def load(self) -> bool:
        """Put the snapshot into the history; whether there was one.

        Raises:
            StoreError: it is damaged, of another version, from the future or unreadable; the history is as before.
        """
        try:
            with self.path.open("rb") as file:
                self._history.rings.update(_read(file, self._history))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreError(f"snapshot {self.path}: cannot be read ({error.strerror}); starting without it") from error
        except StoreError as error:
            raise StoreError(f"snapshot {self.path}: {error}; starting without it") from error
        return True


def _write(file: BinaryIO, history: HistoryStore) -> None:
    checksum = 0
    for part in _content(history):
        checksum = zlib.crc32(part, checksum)
        file.write(part)
    file.write(CHECKSUM.pack(checksum))


def _content(history: HistoryStore) -> Iterator[bytes | memoryview]:
    rings = [(signal, ring) for signal, pair in history.rings.items() for ring in (pair.minutes, pair.weeks)]
    header = msgspec.json.encode([_header(signal, ring) for signal, ring in rings])
    yield SNAPSHOT_PREFIX.pack(SNAPSHOT_MAGIC, len(header))
    yield header
    for _, ring in rings:
        yield from _parts(ring)


def _header(signal: str, ring: HistoryRing) -> RingHeader:
    return RingHeader(
        signal=str(signal),
        step_seconds=int(ring.step.total_seconds()),
        newest=ring.latest,
        columns=ring.columns,
        answered=np.packbits(ring.answered).tobytes(),
        keys=list(ring.window().keys),
    )


def _parts(ring: HistoryRing) -> Iterator[memoryview]:
    values = ring.window().values
    for row in range(0, len(values), ROWS_AT_A_TIME):
        yield np.ascontiguousarray(values[row : row + ROWS_AT_A_TIME], FLOAT).data


def _read(file: BufferedReader, history: HistoryStore) -> dict[str, Rings]:
    content = _Content(file)
    headers = _headers(content)
    try:
        stored = {(header.signal, header.step_seconds): _ring(header, content, history) for header in headers}
    except (ArithmeticError, TypeError, ValueError) as error:  # the checksum stands behind what it is about
        raise StoreError(f"it is damaged: {error}") from error
    content.check()
    return {
        signal: Rings(
            minutes=stored.get((signal, int(pair.minutes.step.total_seconds()))) or pair.minutes,
            weeks=stored.get((signal, int(pair.weeks.step.total_seconds()))) or pair.weeks,
        )
        for signal, pair in history.rings.items()
    }


class _Content:
    """The bytes of a snapshot in order, with their checksum."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._left = os.fstat(file.fileno()).st_size
        self._checksum = 0

    def read(self, size: int) -> bytearray:
        """Return the next bytes; refused before memory is allocated for missing ones."""
        if size > self._left:
            raise StoreError("it is cut off")
        self._left -= size
        part = bytearray(size)
        self._file.readinto(part)
        self._checksum = zlib.crc32(part, self._checksum)
        return part

    def check(self) -> None:
        """Refuse content that differs from the written one."""
        expected = self._checksum
        if CHECKSUM.unpack(self.read(CHECKSUM.size)) != (expected,):
            raise StoreError("it is damaged: the checksum differs")


def _headers(content: _Content) -> list[RingHeader]:
    magic, size = SNAPSHOT_PREFIX.unpack(content.read(SNAPSHOT_PREFIX.size))
    if magic != SNAPSHOT_MAGIC:
        raise StoreError("it is not a snapshot of this version")
    try:
        return msgspec.json.decode(content.read(size), type=list[RingHeader])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"it is damaged: {error}") from error


def _ring(header: RingHeader, content: _Content, history: HistoryStore) -> HistoryRing:
    """The ring of a header, as long as the settings say now."""
    ring = HistoryRing(
        step=timedelta(seconds=header.step_seconds), columns=_columns(header, history), latest=header.newest
    )
    answered = np.unpackbits(np.frombuffer(header.answered, np.uint8), count=header.columns).astype(np.bool_)
    ring.restore([WorkloadId(*key) for key in header.keys], answered, _values(header, content))
    return ring


def _columns(header: RingHeader, history: HistoryStore) -> int:
    """Return the number of columns stored at that resolution.

    Raises:
        StoreError: the stored ring ends after the present.
    """
    for signal, pair in history.rings.items():
        for ring in (pair.minutes, pair.weeks):
            if (signal, ring.step.total_seconds()) == (header.signal, header.step_seconds):
                if header.newest > ring.latest:
                    ends, now = (f"{at:%Y-%m-%dT%H:%MZ}" for at in (header.newest, ring.latest))
                    raise StoreError(f"it ends at {ends}, but now is {now}: a clock was wrong")
                return ring.columns
    return 1  # of no use now, but its bytes lie between those that are


def _values(header: RingHeader, content: _Content) -> Iterator[NDArray[np.float32]]:
    for row in range(0, len(header.keys), ROWS_AT_A_TIME):
        rows = min(ROWS_AT_A_TIME, len(header.keys) - row)
        part = content.read(rows * header.columns * FLOAT.itemsize)
        yield np.frombuffer(part, FLOAT).reshape(rows, header.columns)

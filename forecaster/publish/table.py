"""The published table as a file: a checked header, then columns of fixed width and texts. No numpy.

magic, 8 bytes / checksum of the header, 4 / size of the header, 4 / size of the file, 8 / header / columns

A column has one value per row, or one per signal and row. A text column is three: position and size of the text of each
row, and the texts. Rows are ordered by namespace, name and kind. The reader casts a column and leaves the texts in the
file: nothing is parsed when a table is replaced, and memory does not grow with the texts.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from forecaster.domain.workload import Prices
from forecaster.errors import StoreError

TABLE_MAGIC = b"fcTable4"
TABLE_PREFIX = struct.Struct("<8sIIQ")
ALIGNMENT = 8
COPY_BYTES = 1 << 20
CODES = frozenset("?bdiqBIQ")
"""Kinds of values, as `struct` and `memoryview.cast` name them."""
PLACES, SIZES, TEXTS = ".at", ".size", ".text"
"""Ends of the names of the three columns that a text column consists of."""
NAMES = "names"
"""Texts to which columns of names refer by position: their places and the end of the last one, and the texts."""


class TableMeta(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the whole table."""

    published_at: datetime
    """Evaluation time of its decisions."""
    interval_seconds: float
    """A new table is due after this time."""
    version: str
    metrics: str = ""
    """Metrics of the computing process, in the text format of Prometheus."""
    gauges: str = "none"
    """Gauges of workloads in /metrics: none, counts or all."""
    survives_zero: tuple[str, ...] = ("requests",)
    """Signals that are measured without pods: no other signal wakes a workload at zero."""
    measured: tuple[str, ...] = ()
    """Signals with demand; any other name is misspelt. Empty: not known."""
    live: tuple[str, ...] = ()
    """Kinds whose counts and targets come from the API server: the overlay says whether they still do."""
    note: str = ""
    """Note on every page of the dashboard, e.g. that the load is recorded."""
    prices: Prices | None = None
    """None: no money is shown."""


class ColumnPlace(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Position of a column, counted from the end of the header."""

    code: str
    """One of `CODES`."""
    planes: int
    """1, or the number of signals; of texts 0."""
    at: int
    size: int
    """Bytes."""
    checksum: int


class TableHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Header of a table: all but its columns."""

    meta: TableMeta
    rows: int
    signals: tuple[str, ...]
    columns: dict[str, ColumnPlace]


class WrittenColumn(NamedTuple):
    """One column to be written."""

    code: str
    planes: int
    data: bytes | memoryview
    """The planes, one after the other."""
    checksum: int

    @classmethod
    def of(cls, code: str, planes: int, data: bytes | memoryview) -> WrittenColumn:
        """A column with its checksum."""
        return cls(code, planes, data, zlib.crc32(data))


def pictures_path(table: Path) -> Path:
    """The file with the pictures of a table, beside it."""
    return table.with_name(f"{table.name}.pictures")


def write_table(
    path: Path, meta: TableMeta, rows: int, signals: tuple[str, ...], columns: Mapping[str, WrittenColumn]
) -> None:
    """Replace the table as a whole: readers see the old one or the new one, never half of either.

    It is not forced to the disk: the next cycle writes it again, and a torn one is recognised.

    Raises StoreError: the directory is missing, read-only or full; the old table is still there.
    """
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb") as file:
            file.writelines(_parts(meta, rows, signals, columns))
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):  # of a file system that has become read-only nothing can be removed either
            temporary.unlink()
        raise StoreError(
            f"table {path}: cannot be published ({error.strerror}); the old one is still served. "
            "Make its directory writable and free some space."
        ) from error


def _parts(
    meta: TableMeta, rows: int, signals: tuple[str, ...], columns: Mapping[str, WrittenColumn]
) -> list[bytes | memoryview]:
    at = 0
    places: dict[str, ColumnPlace] = {}
    body: list[bytes | memoryview] = []
    for name, column in columns.items():
        size = len(column.data)
        places[name] = ColumnPlace(column.code, column.planes, at, size, column.checksum)
        body += column.data, bytes(-size % ALIGNMENT)
        at += size + -size % ALIGNMENT
    header = msgspec.json.encode(TableHeader(meta=meta, rows=rows, signals=signals, columns=places))
    header += b" " * (-(TABLE_PREFIX.size + len(header)) % ALIGNMENT)
    whole = TABLE_PREFIX.size + len(header) + at
    return [TABLE_PREFIX.pack(TABLE_MAGIC, zlib.crc32(header), len(header), whole), header, *body]


class TableBytes:
    """A file that is read in pieces; a piece beyond its end is short."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def read(self, at: int, size: int) -> bytes:
        """Read `size` bytes from a position on."""
        return os.pread(self._descriptor, size, at)


_header = msgspec.json.Decoder(TableHeader)  # made here: two readers that each make it at once end the process


def read_header(file: TableBytes) -> tuple[TableHeader, int]:
    """The header of a table and the place of its columns.

    Raises StoreError: the file is torn, damaged, of another version or of another kind.
    """
    prefix = file.read(0, TABLE_PREFIX.size)
    if len(prefix) < TABLE_PREFIX.size or not prefix.startswith(TABLE_MAGIC):
        raise StoreError("it is not a table of this version")
    _, checksum, size, whole = TABLE_PREFIX.unpack(prefix)
    if file.size != whole:
        raise StoreError(f"it is torn: {file.size} bytes of {whole}")
    raw = file.read(TABLE_PREFIX.size, size)
    if zlib.crc32(raw) != checksum:
        raise StoreError("it is damaged: the checksum of the header differs")
    try:
        return _header.decode(raw), TABLE_PREFIX.size + size
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"its header is not understood: {error}") from error


def read_column(file: TableBytes, header: TableHeader, begin: int, name: str, *, keep: bool) -> bytes:
    """Return the bytes of a column after checking them; empty where they need not be kept.

    Raises StoreError: they are not what was written, or not as many as there are rows.
    """
    place, checksum, pieces = header.columns[name], 0, []
    if place.code not in CODES:
        raise StoreError(f"its column {name} is of an unknown kind {place.code!r}")
    rows = struct.calcsize(place.code) * place.planes * header.rows
    if place.at < 0 or begin + place.at + place.size > file.size or (place.planes and place.size != rows):
        raise StoreError(f"its column {name} lies outside of the file or has other rows")
    for at in range(0, place.size, COPY_BYTES):
        piece = file.read(begin + place.at + at, min(COPY_BYTES, place.size - at))
        checksum = zlib.crc32(piece, checksum)
        pieces += [piece] if keep else []
    if checksum != place.checksum:
        raise StoreError(f"it is damaged: the checksum of its column {name} differs")
    return b"".join(pieces)

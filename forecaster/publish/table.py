"""The published table as a file: a checked header with an index, then the records of each workload, then their gauges.

    magic, 8 bytes | checksum of all that follows, 4 | size of the header, 4 | header | records | gauges

A workload has three records: what was recommended, what became of it, and its forecast step by step. The header says
where they lie, so that a reader keeps the index in memory and leaves the rest in the file: memory grows with the number
of workloads, not with what is said about them. Records and gauges are the bytes that the API sends.
"""

from __future__ import annotations

import struct
import zlib
from datetime import datetime  # noqa: TC003  msgspec resolves the annotations when it decodes
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from forecaster.errors import StoreError
from forecaster.publish.decision_history import WorkloadHistory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from forecaster.publish.values import WorkloadOffer
    from forecaster.publish.views import RecommendationView

MAGIC = b"fcTable2"
PREFIX = struct.Struct("<8sII")
CHUNK = 1 << 20


class CycleSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The last finished cycle in short."""

    at: datetime
    seconds: float
    failures: tuple[str, ...] = ()


class TableMeta(msgspec.Struct, frozen=True, kw_only=True):
    """What is true for the whole table."""

    published_at: datetime
    """The evaluation time of the decisions in it."""
    interval_seconds: float
    """A new table is due after this time."""
    version: str
    metrics: str = ""
    """Metrics of the computing process, in the text format of Prometheus."""
    cycle: CycleSummary | None = None


class TableEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the record of one workload lies, and what lists are filtered by."""

    namespace: str
    name: str
    kind: str
    verdict: str
    reason: str
    offset: int
    size: int
    values: msgspec.Raw = msgspec.Raw(b"null")
    """A `Published` or null, decoded when it is asked for: most are not, between two tables."""
    past_size: int = 0
    """Of the record of the past, which follows the other."""
    paths_size: int = 0
    """Of the forecast step by step, which comes last; 0 where there is none."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The order of the table."""
        return (self.namespace, self.name, self.kind)


class TableRow(NamedTuple):
    """One workload of a table: its record, and what autoscalers read of it; None where its policy publishes nothing."""

    view: RecommendationView
    published: WorkloadOffer | None
    past: WorkloadHistory = WorkloadHistory()
    paths: bytes = b""
    past_record: bytes = b""
    """`past` as it lies in the table, from who has it already."""


class TableHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Everything but the records."""

    meta: TableMeta
    entries: tuple[TableEntry, ...]
    gauges_at: int = 0
    """Where the gauges begin, counted from the first record; they go on to the end."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(TableHeader)


def write_table(path: Path, meta: TableMeta, rows: Sequence[TableRow], gauges: bytes = b"") -> None:
    """Replace the table as a whole: readers see the old one or the new one, never half of either.

    It is not forced to the disk: the next cycle writes it again, and a torn one is recognised.

    Raises:
        StoreError: the directory is missing, read-only or full; the old table is still there.
    """
    parts = _encode(meta, rows, gauges)
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb") as file:
            file.writelines(parts)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(
            f"table {path}: cannot be published ({error.strerror}); the old one is still served. "
            "Make its directory writable and free some space."
        ) from error


def read_header(file: BinaryIO) -> tuple[TableHeader, int]:
    """The header of a table and the offset of its records.

    Raises:
        StoreError: the file is torn, damaged or of another kind.
    """
    checksum, size = _prefix(file)
    raw = file.read(size)
    if _checksum_on(file, zlib.crc32(raw)) != checksum:
        raise StoreError("it is torn or damaged: the checksum differs")
    try:
        return _decoder.decode(raw), PREFIX.size + size
    except msgspec.DecodeError as error:
        raise StoreError(f"its header is not understood: {error}") from error


def _encode(meta: TableMeta, rows: Sequence[TableRow], gauges: bytes) -> list[bytes]:
    rows = sorted(rows, key=lambda row: (row.view.namespace, row.view.name, row.view.kind))
    entries: list[TableEntry] = []
    records: list[bytes] = []
    offset = 0
    for row in rows:
        record, past = _encoder.encode(row.view), row.past_record or _encoder.encode(row.past)
        entries.append(_entry(row, offset, len(record), len(past)))
        records += record, past, row.paths
        offset += len(record) + len(past) + len(row.paths)
    header = _encoder.encode(TableHeader(meta=meta, entries=tuple(entries), gauges_at=offset))
    body = b"".join([*records, gauges])
    checksum = zlib.crc32(body, zlib.crc32(header))
    return [PREFIX.pack(MAGIC, checksum, len(header)), header, body]


def _entry(row: TableRow, offset: int, size: int, past_size: int) -> TableEntry:
    view, values = row.view, msgspec.Raw(_encoder.encode(row.published))
    verdict, reason = view.replicas.verdict, view.replicas.reason
    sizes = past_size, len(row.paths)
    return TableEntry(view.namespace, view.name, view.kind, verdict, reason, offset, size, values, *sizes)


def _prefix(file: BinaryIO) -> tuple[int, int]:
    prefix = file.read(PREFIX.size)
    if len(prefix) < PREFIX.size or not prefix.startswith(MAGIC):
        raise StoreError("it is not a table of this version")
    _, checksum, size = PREFIX.unpack(prefix)
    return checksum, size


def _checksum_on(file: BinaryIO, checksum: int) -> int:
    while chunk := file.read(CHUNK):
        checksum = zlib.crc32(chunk, checksum)
    return checksum

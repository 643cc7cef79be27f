"""A tape of a running service: everything that its source answered, and what it decided, to be played again.

    magic, 8 bytes | frames: size of the head, 4 | size of the body, 8 | head, JSON | body, zlib

Plain numbers and JSON: playing one runs no code. What comes back from a tape is the same to the last digit.
"""

from __future__ import annotations

import struct
import zlib
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from forecaster.domain.window import Block, Inventory
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.errors import SourceError, SourceRefused, SourceUnavailable, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import BufferedReader
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import ForecastScore
    from forecaster.domain.signal import Signal
    from forecaster.ports import Changes, Ledger, Source

MAGIC = b"fcTape01"
SIZES = struct.Struct("<IQ")
FLOAT = np.dtype("<f8")


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a frame is: a question with its answer, the decisions of a cycle, or what the tape begins with."""

    kind: str
    """`begin`, `inventory`, `latest`, `history`, `more` (one block of a history), `decided`."""
    at: datetime | None = None
    signal: str = ""
    start: datetime | None = None
    end: datetime | None = None
    step_seconds: float = 0.0
    failure: str = ""
    """Class and text of the error that came in place of an answer."""
    columns: int = 0
    ids: list[tuple[str, str, str]] = []
    warnings: list[str] = []
    blocks: int = 0


class Inventoried(msgspec.Struct, frozen=True):
    """An inventory, in types that can be read back."""

    at: datetime
    workloads: tuple[Workload, ...]
    faults: tuple[str, ...]


class Tape:
    """A tape that is being recorded. When it cannot be continued it ends there, says so, and nothing else stops."""

    def __init__(self, path: Path, beginning: bytes) -> None:
        """Begin one; `beginning` is what the service knew already: its settings and its history.

        Raises:
            StoreError: the file cannot be written.
        """
        self._path = path
        self.failure = ""
        try:
            self._file = path.open("wb")
            self._file.write(MAGIC)
        except OSError as error:
            raise StoreError(f"tape {path}: {error.strerror}; name a file that this user may write") from error
        self.write(Head(kind="begin"), beginning)

    def write(self, head: Head, body: bytes = b"") -> None:
        """One more frame, unless the tape has ended."""
        if self.failure:
            return
        encoded, packed = msgspec.json.encode(head), zlib.compress(body, 1)
        try:
            self._file.write(SIZES.pack(len(encoded), len(packed)) + encoded + packed)
            self._file.flush()
        except (OSError, ValueError) as error:
            self.failure = f"tape {self._path}: ended ({error}); free some space and start again"

    def close(self) -> None:
        """The end."""
        self._file.close()


class TapedSource:
    """A source with answers that go on tape."""

    def __init__(self, source: Source, tape: Tape) -> None:
        self._source, self._tape = source, tape

    def inventory(self, at: datetime) -> Inventory:
        """As the source says."""
        head = Head(kind="inventory", at=at)
        with self._told(head):
            found = self._source.inventory(at)
        self._tape.write(head, msgspec.json.encode(Inventoried(found.at, found.workloads, found.faults)))
        return found

    def latest(self, signal: Signal, at: datetime) -> Block:
        """As the source says."""
        head = Head(kind="latest", signal=str(signal), at=at)
        with self._told(head):
            found = self._source.latest(signal, at)
        self._tape.write(head)
        self._tape.write(*_block_frame(found))
        return found

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        """As the source says; blocks that came before a failure are on the tape, and so is the failure."""
        head = Head(kind="history", signal=str(signal), start=start, end=end, step_seconds=step.total_seconds())
        self._tape.write(head)
        with self._told(Head(kind="stop")):
            for block in self._source.history(signal, start, end, step):
                self._tape.write(*_block_frame(block))
                yield block
        self._tape.write(Head(kind="stop"))

    @contextmanager
    def _told(self, head: Head) -> Iterator[None]:
        try:
            yield
        except SourceError as error:
            self._tape.write(msgspec.structs.replace(head, failure=f"{type(error).__name__}: {error}"))
            raise


class TapedLedger:
    """A ledger beside which all decisions of a cycle go on tape, not only those that changed."""

    def __init__(self, ledger: Ledger, tape: Tape) -> None:
        self._ledger, self._tape = ledger, tape

    def record(self, at: datetime, recommendations: Sequence[Recommendation], changes: Changes | None = None) -> None:
        """Both.

        Raises:
            StoreError: nothing of this cycle was kept in the ledger, or the tape has ended.
        """
        self._tape.write(Head(kind="decided", at=at), encoded(recommendations))
        self._ledger.record(at, recommendations, changes)
        if self._tape.failure:
            raise StoreError(self._tape.failure)

    def score(self, scores: Sequence[ForecastScore]) -> None:
        """The ledger alone: scores follow from what is on the tape."""
        self._ledger.score(scores)


def encoded(recommendations: Sequence[Recommendation]) -> bytes:
    """Decisions to the last digit."""
    return msgspec.json.encode(list(recommendations))


class TapeReader:
    """A tape that is played: the source of a service that sees again what was seen."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            SourceRefused: it is not there, or no tape of this version.
        """
        self._path = path
        self._frames = _frames(path)
        self._waiting: tuple[Head, bytes] | None = None
        head, self.beginning = self._next()
        if head.kind != "begin":
            raise SourceRefused(f"tape {path}: begins with {head.kind!r}; it is damaged")

    def cycle(self) -> datetime | None:
        """The evaluation time of the next cycle; None at the end."""
        while self._peek() is not None:
            head, _ = self._peeked()
            if head.kind == "inventory":
                return head.at
            self._next()
        return None

    def decided(self) -> bytes | None:
        """What the service decided in the cycle that was just played; None where that is not on the tape."""
        while self._peek() is not None:
            head, body = self._peeked()
            if head.kind == "inventory":
                return None
            self._next()
            if head.kind == "decided":
                return body
        return None

    def inventory(self, at: datetime) -> Inventory:
        """As it was said."""
        _head, body = self._answer(Head(kind="inventory", at=at))
        found = msgspec.json.decode(body, type=Inventoried)
        return Inventory(found.at, found.workloads, found.faults)

    def latest(self, signal: Signal, at: datetime) -> Block:
        """As it was said."""
        self._answer(Head(kind="latest", signal=str(signal), at=at))
        return _block(*self._next())

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        """As it was said."""
        self._answer(Head(kind="history", signal=str(signal), start=start, end=end, step_seconds=step.total_seconds()))
        while True:
            head, body = self._next()
            if head.kind == "stop":
                _raise_again(head)
                return
            yield _block(head, body)

    def _answer(self, question: Head) -> tuple[Head, bytes]:
        head, body = self._next()
        if msgspec.structs.replace(head, failure="") != question:
            raise SourceRefused(
                f"tape {self._path}: the service asked for {question.kind} {question.signal} where the tape has "
                f"{head.kind} {head.signal}; play it with the settings and the version that recorded it"
            )
        _raise_again(head)
        return head, body

    def _next(self) -> tuple[Head, bytes]:
        found, self._waiting = self._peek(), None
        if found is None:
            raise SourceRefused(f"tape {self._path}: ends in the middle of a cycle")
        return found

    def _peek(self) -> tuple[Head, bytes] | None:
        if self._waiting is None:
            self._waiting = next(self._frames, None)
        return self._waiting

    def _peeked(self) -> tuple[Head, bytes]:
        if self._waiting is None:
            raise SourceRefused(f"tape {self._path}: ends here")
        return self._waiting


def _frames(path: Path) -> Iterator[tuple[Head, bytes]]:
    """Every whole frame; one that was cut off by a crash is the end."""
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise SourceRefused(f"tape {path}: not a tape of this version")
            while (frame := _frame(file, path)) is not None:
                yield frame
    except OSError as error:
        raise SourceRefused(f"tape {path}: {error.strerror}") from error


def _frame(file: BufferedReader, path: Path) -> tuple[Head, bytes] | None:
    sizes = file.read(SIZES.size)
    if len(sizes) < SIZES.size:
        return None
    head_size, body_size = SIZES.unpack(sizes)
    head, body = file.read(head_size), file.read(body_size)
    if len(head) < head_size or len(body) < body_size:
        return None
    try:
        return msgspec.json.decode(head, type=Head), zlib.decompress(body)
    except (msgspec.DecodeError, zlib.error) as error:
        raise SourceRefused(f"tape {path}: damaged ({error})") from error


def _block_frame(block: Block) -> tuple[Head, bytes]:
    head = Head(
        kind="more",
        signal=str(block.signal),
        start=block.start,
        step_seconds=block.step.total_seconds(),
        columns=int(block.values.shape[1]),
        ids=[(id_.namespace, id_.kind, id_.name) for id_ in block.ids],
        warnings=list(block.warnings),
    )
    return head, np.ascontiguousarray(block.values, FLOAT).tobytes()


def _block(head: Head, body: bytes) -> Block:
    if head.kind != "more" or head.start is None:
        raise SourceRefused(f"a tape has {head.kind!r} where a block of samples should be; it is damaged")
    values = np.frombuffer(body, FLOAT).reshape(len(head.ids), head.columns)
    ids = tuple(WorkloadId(*id_) for id_ in head.ids)
    step = timedelta(seconds=head.step_seconds)
    return Block(head.signal, ids, head.start, step, values, tuple(head.warnings))


def _raise_again(head: Head) -> None:
    name, _, message = head.failure.partition(": ")
    if name:
        raise FAILURES.get(name, SourceRefused)(message)


FAILURES: dict[str, Any] = {one.__name__: one for one in (SourceError, SourceRefused, SourceUnavailable)}

"""A tape of a running service: everything that its source answered, and what it decided, to be played again.

    magic, 8 bytes | frames: size, 8 bytes | `Frame` as MessagePack, compressed by zlib

Plain values only: playing a tape runs no code, and what comes back is equal to the last digit.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta  # noqa: TC003  msgspec resolves the annotations
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from forecaster.domain.layers import ClusterPolicies, Layer
from forecaster.domain.policy import PolicySelector
from forecaster.domain.window import Block, Inventory, PodSamples, StartedPod
from forecaster.domain.workload import ContainerBlock, ContainerFacts, ContainerId, Resources, Workload, WorkloadId
from forecaster.errors import SourceError, SourceRefused, SourceTimeout, SourceUnavailable, StoreError
from forecaster.ports import Changes, ContainerSource, Ledger, Source

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import ForecastScore
    from forecaster.domain.signal import Signal

    T = TypeVar("T")
    B = TypeVar("B", Block, ContainerBlock)

MAGIC = b"fcTape04"
FRAME_SIZE = struct.Struct("<Q")
FLOAT = np.dtype("<f8")
OF_CONTAINERS = frozenset({"containers", "container_usage"})
"""Kinds of answers that a service asks for when it has time."""
SOURCE_ERRORS: Mapping[str, type[SourceError]] = {
    error.__name__: error for error in (SourceError, SourceRefused, SourceTimeout, SourceUnavailable)
}


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the source was asked, or what else a frame is."""

    kind: str
    """`begin`, `inventory`, `latest`, `history`, `containers`, `container_usage`, `more`, `stop` or `decided`."""
    signal: str = ""
    at: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    step: timedelta | None = None


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question with its answer, the decisions of a cycle, or what the tape begins with."""

    question: Question
    answer: msgspec.Raw = msgspec.Raw(b"")
    failure: tuple[str, str] | None = None
    """Class and text of the error that came in place of an answer."""
    tells_containers: bool = False
    """Whether the source distinguishes containers; part of the beginning."""


# Answers, in types that msgspec can read back: the fields of the values in `domain`, whose modules load without numpy.


class _Policies(msgspec.Struct):
    defaults: tuple[tuple[PolicySelector, Layer], ...]
    own: dict[WorkloadId, tuple[Layer, ...]]
    labels: dict[WorkloadId, dict[str, str]]
    faults: tuple[str, ...]


class _Inventory(msgspec.Struct):
    at: datetime
    workloads: tuple[Workload, ...]
    faults: tuple[str, ...]
    partly: dict[WorkloadId, str]
    whole: frozenset[str]
    policies: _Policies | None
    started: dict[WorkloadId, tuple[StartedPod, ...]]
    images: dict[WorkloadId, str]
    partial: str


class _Block(msgspec.Struct):
    signal: str
    ids: tuple[WorkloadId, ...]
    start: datetime
    step: timedelta
    values: np.ndarray[Any, Any]
    warnings: tuple[str, ...]
    made_of: dict[str, np.ndarray[Any, Any]] | None
    partial: str
    rated: bool
    moved: dict[WorkloadId, str]


class _Containers(msgspec.Struct):
    images: dict[ContainerId, str]
    init: frozenset[ContainerId]
    resources: dict[ContainerId, Resources]
    oom_limits: dict[ContainerId, float]
    held_back: dict[ContainerId, float]
    carried: dict[tuple[WorkloadId, str], float]
    unread: tuple[str, ...]


class _ContainerBlock(msgspec.Struct):
    ids: tuple[ContainerId, ...]
    start: datetime
    step: timedelta
    values: np.ndarray[Any, Any]


def _encoded(value: Any) -> Any:
    """Encode what msgspec does not know: arrays as shape and bytes."""
    if isinstance(value, np.ndarray):
        return value.shape, np.ascontiguousarray(value, FLOAT).tobytes()
    if isinstance(value, PolicySelector):
        return value.model_dump()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):  # a Signal
        return str(value)
    raise NotImplementedError(f"a tape has no form for {type(value).__name__}")


def _decoded(kind: type, value: Any) -> Any:
    if kind is PolicySelector:
        return PolicySelector.model_validate(value)
    shape, content = value
    return np.frombuffer(content, FLOAT).reshape(shape)


def _fields(answer: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(answer, name) for name in answer.__struct_fields__}


def encoded(recommendations: Sequence[Recommendation]) -> bytes:
    """Encode decisions to the last digit."""
    return msgspec.json.encode(list(recommendations))


class Tape:
    """A tape that is being recorded. When it cannot be continued it ends there, says so, and nothing else stops."""

    def __init__(self, path: Path, beginning: bytes, source: Source | None = None) -> None:
        """Begin a tape of this source; `beginning` is what the service knew already: its settings and its history.

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
        begin, known = Question("begin"), msgspec.Raw(msgspec.msgpack.encode(beginning))
        self._add(Frame(begin, known, tells_containers=isinstance(source, ContainerSource)))

    def write(self, question: Question, answer: object = None, failure: SourceError | None = None) -> None:
        """Add a frame, unless the tape has ended."""
        failed = (type(failure).__name__, str(failure)) if failure else None
        self._add(Frame(question, msgspec.Raw(msgspec.msgpack.encode(answer, enc_hook=_encoded)), failed))

    def _add(self, frame: Frame) -> None:
        if self.failure:
            return
        packed = zlib.compress(msgspec.msgpack.encode(frame), 1)
        try:
            self._file.write(FRAME_SIZE.pack(len(packed)) + packed)
            self._file.flush()
        except (OSError, ValueError) as error:
            self.failure = f"tape {self._path}: ended ({error}); free some space and start again"

    def close(self) -> None:
        """End the tape."""
        self._file.close()


class TapedSource:
    """A source with answers that go on tape."""

    def __init__(self, source: Source, tape: Tape) -> None:
        self._source, self._tape = source, tape

    def inventory(self, at: datetime) -> Inventory:
        """Return and record the source's answer."""
        return self._told(Question("inventory", at=at), lambda: self._source.inventory(at))

    def latest(self, signal: Signal, at: datetime) -> Block:
        """Return and record the source's answer."""
        return self._told(Question("latest", str(signal), at), lambda: self._source.latest(signal, at))

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        """Return and record the source's answer; blocks before a failure are recorded, and so is the failure."""
        question = Question("history", str(signal), start=start, end=end, step=step)
        return self._pieces(question, self._source.history(signal, start, end, step))

    def _told(self, question: Question, ask: Callable[[], T]) -> T:
        try:
            answer = ask()
        except SourceError as error:
            self._tape.write(question, failure=error)
            raise
        self._tape.write(question, answer)
        return answer

    def _pieces(self, question: Question, blocks: Iterable[B]) -> Iterator[B]:
        self._tape.write(question)
        try:
            for block in blocks:
                self._tape.write(Question("more"), block)
                yield block
        except SourceError as error:
            self._tape.write(Question("stop"), failure=error)
            raise
        self._tape.write(Question("stop"))


class TapedContainerSource(TapedSource):
    """A source that tells containers apart, with answers that go on tape."""

    def __init__(self, source: ContainerSource, tape: Tape) -> None:
        super().__init__(source, tape)  # type: ignore[arg-type]
        self._containers = source

    def containers(self, at: datetime) -> ContainerFacts:
        """Return and record the source's answer."""
        return self._told(Question("containers", at=at), lambda: self._containers.containers(at))

    def container_usage(
        self, signal: Signal, start: datetime, end: datetime, step: timedelta
    ) -> Iterator[ContainerBlock]:
        """Return and record the source's answer, like `history`."""
        question = Question("container_usage", str(signal), start=start, end=end, step=step)
        return self._pieces(question, self._containers.container_usage(signal, start, end, step))


def taped(source: Source, tape: Tape) -> TapedSource:
    """Put a tape beside a source; it tells containers apart where the source does."""
    return TapedContainerSource(source, tape) if isinstance(source, ContainerSource) else TapedSource(source, tape)


class TapedLedger:
    """A ledger beside which all decisions of a cycle go on tape, not only those that changed."""

    def __init__(self, ledger: Ledger, tape: Tape) -> None:
        self._ledger, self._tape = ledger, tape

    def record(self, at: datetime, recommendations: Sequence[Recommendation], changes: Changes | None = None) -> None:
        """Record in the ledger and on the tape.

        Raises:
            StoreError: nothing of this cycle was kept in the ledger, or the tape has ended.
        """
        self._tape.write(Question("decided", at=at), encoded(recommendations))
        self._ledger.record(at, recommendations, changes)
        if self._tape.failure:
            raise StoreError(self._tape.failure)

    def score(self, scores: Sequence[ForecastScore]) -> None:
        """Score in the ledger alone: scores follow from what is on the tape."""
        self._ledger.score(scores)


class TapeReader:
    """A tape that is played: the source of a service that sees again what was seen."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            SourceRefused: it is not there, or no tape of this version.
        """
        self._path = path
        self._frames = _frames(path)
        self._waiting: Frame | None = None
        self._decided: bytes | None = None
        begin = self._next()
        if begin.question.kind != "begin":
            raise SourceRefused(f"tape {path}: begins with {begin.question.kind!r}; it is damaged")
        self.beginning = self._read(begin, bytes)
        self.tells_containers = begin.tells_containers

    def cycle(self) -> datetime | None:
        """Return the evaluation time of the next cycle; None at the end."""
        while (frame := self._peek()) is not None:
            if frame.question.kind == "inventory":
                return frame.question.at
            self._next()
        return None

    def decided(self) -> bytes | None:
        """Return what the service decided in the cycle that was just played; None where that is not on the tape."""
        while self._decided is None and (frame := self._peek()) is not None and frame.question.kind != "inventory":
            self._keep(self._next())
        decided, self._decided = self._decided, None
        return decided

    def inventory(self, at: datetime) -> Inventory:
        """Return the recorded answer."""
        answer = self._read(self._answer(Question("inventory", at=at)), _Inventory)
        policies = ClusterPolicies(**_fields(answer.policies)) if answer.policies else None
        return Inventory(**_fields(answer) | {"policies": policies})

    def latest(self, signal: Signal, at: datetime) -> Block:
        """Return the recorded answer."""
        return self._block(self._answer(Question("latest", str(signal), at)))

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        """Return the recorded answer."""
        self._answer(Question("history", str(signal), start=start, end=end, step=step))
        yield from map(self._block, self._pieces())

    def _block(self, frame: Frame) -> Block:
        answer = self._read(frame, _Block)
        made_of = PodSamples(**answer.made_of) if answer.made_of is not None else None
        return Block(**_fields(answer) | {"made_of": made_of})

    def _read(self, frame: Frame, kind: type[T]) -> T:
        try:
            return msgspec.msgpack.decode(frame.answer, type=kind, dec_hook=_decoded)
        except (msgspec.MsgspecError, ValueError) as error:
            raise SourceRefused(f"tape {self._path}: {frame.question.kind} is damaged ({error})") from error

    def _pieces(self) -> Iterator[Frame]:
        while (frame := self._next()).question.kind == "more":
            yield frame
        if frame.question.kind != "stop":
            raise SourceRefused(f"tape {self._path}: {frame.question.kind!r} where samples should be; it is damaged")
        _raise_again(frame)

    def _keep(self, frame: Frame) -> None:
        if frame.question.kind == "decided":
            self._decided = self._read(frame, bytes)

    def _answer(self, question: Question) -> Frame:
        """Find the answer; decisions, and answers about containers that are not asked for, are passed by."""
        frame = self._next()
        while frame.question.kind == "decided" or (
            frame.question.kind in OF_CONTAINERS and question.kind not in OF_CONTAINERS
        ):
            self._keep(frame)
            if frame.question.kind == "container_usage":
                deque(self._pieces(), maxlen=0)
            frame = self._next()
        if frame.question != question:
            self._waiting = frame  # the next question may be the one that it answers
            raise SourceRefused(
                f"tape {self._path}: the service asked for {question.kind} {question.signal} where the tape has "
                f"{frame.question.kind} {frame.question.signal}; play it with the settings and the version that "
                "recorded it"
            )
        _raise_again(frame)
        return frame

    def _asked_then(self, kind: str) -> None:
        """Refuse a question that the service did not ask, or had no time for."""
        while (frame := self._peek()) is not None and frame.question.kind == "decided":
            self._keep(self._next())
        if frame is None or frame.question.kind != kind:
            raise SourceUnavailable(f"the recorded service did not ask for {kind} in this cycle")

    def _next(self) -> Frame:
        frame, self._waiting = self._peek(), None
        if frame is None:
            raise SourceRefused(f"tape {self._path}: ends in the middle of a cycle")
        return frame

    def _peek(self) -> Frame | None:
        if self._waiting is None:
            self._waiting = next(self._frames, None)
        return self._waiting


class ContainerTapeReader(TapeReader):
    """A tape of a service that read containers, too."""

    def containers(self, at: datetime) -> ContainerFacts:
        """Return the recorded answer."""
        self._asked_then("containers")
        return ContainerFacts(**_fields(self._read(self._answer(Question("containers", at=at)), _Containers)))

    def container_usage(
        self, signal: Signal, start: datetime, end: datetime, step: timedelta
    ) -> Iterator[ContainerBlock]:
        """Return the recorded answer."""
        self._answer(Question("container_usage", str(signal), start=start, end=end, step=step))
        for frame in self._pieces():
            yield ContainerBlock(**_fields(self._read(frame, _ContainerBlock)))


def open_tape(path: Path) -> TapeReader:
    """Open a tape to be played; it tells containers apart where the recorded source did.

    Raises:
        SourceRefused: it is not there, or no tape of this version.
    """
    reader = TapeReader(path)
    return ContainerTapeReader(path) if reader.tells_containers else reader


def _frames(path: Path) -> Iterator[Frame]:
    """Yield every whole frame; a frame that a crash cut off is the end."""
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise SourceRefused(f"tape {path}: not a tape of this version")
            while (frame := _frame(file, path)) is not None:
                yield frame
    except OSError as error:
        raise SourceRefused(f"tape {path}: {error.strerror}") from error


def _frame(file: BufferedReader, path: Path) -> Frame | None:
    size = file.read(FRAME_SIZE.size)
    if len(size) < FRAME_SIZE.size:
        return None
    (length,) = FRAME_SIZE.unpack(size)
    packed = file.read(length)
    if len(packed) < length:
        return None
    try:
        return msgspec.msgpack.decode(zlib.decompress(packed), type=Frame)
    except (msgspec.MsgspecError, zlib.error) as error:
        raise SourceRefused(f"tape {path}: damaged ({error})") from error


def _raise_again(frame: Frame) -> None:
    if frame.failure is not None:
        name, message = frame.failure
        raise SOURCE_ERRORS.get(name, SourceRefused)(message)

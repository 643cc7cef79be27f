"""A tape that is played: the source of a service that reads again what was read."""

from __future__ import annotations

import zlib
from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from forecaster.domain.window import Block, Inventory, PodSamples, StartedPod
from forecaster.domain.workload import ContainerBlock, ContainerFacts, ContainerId, WorkloadId
from forecaster.errors import SourceError, SourceRefused, SourceTimeout, SourceUnavailable
from forecaster.sources.tape import (
    FRAME_SIZES,
    TAPE_FLOAT,
    TAPE_MAGIC,
    Head,
    Inventoried,
    ToldContainers,
    span_head,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from pathlib import Path

    from numpy.typing import NDArray

    from forecaster.domain.signal import Signal

OF_CONTAINERS = frozenset({"containers", "container_usage"})
"""Kinds of answers that a service asks for when it has time."""


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
        self._decided: bytes | None = None
        head, self.beginning = self._next()
        if head.kind != "begin":
            raise SourceRefused(f"tape {path}: begins with {head.kind!r}; it is damaged")
        self.tells_containers = head.tells_containers

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
        while self._decided is None and (waiting := self._peek()) is not None and waiting[0].kind != "inventory":
            self._keep(*self._next())
        found, self._decided = self._decided, None
        return found

    def inventory(self, at: datetime) -> Inventory:
        """Return the recorded answer."""
        _head, body = self._answer(Head(kind="inventory", at=at))
        found = msgspec.json.decode(body, type=Inventoried)
        partly = {WorkloadId(*id_): why for id_, why in found.partly}
        policies = found.policies.policies() if found.policies else None
        pools = dict(found.started_on)
        started = {
            WorkloadId(*id_): tuple(
                StartedPod(timedelta(seconds=one), pool)
                for one, pool in zip(took, pools.get(id_) or [""] * len(took), strict=True)
            )
            for id_, took in found.started
        }
        images = {WorkloadId(*id_): image for id_, image in found.images}
        whole = frozenset(found.whole)
        facts = (found.at, found.workloads, found.faults, partly, whole)
        return Inventory(*facts, policies, started, images, found.partial)

    def latest(self, signal: Signal, at: datetime) -> Block:
        """Return the recorded answer."""
        self._answer(Head(kind="latest", signal=str(signal), at=at))
        return _block(*self._next())

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        """Return the recorded answer."""
        self._answer(span_head("history", signal, start, end, step))
        for head, body in self._blocks():
            yield _block(head, body)

    def _blocks(self) -> Iterator[tuple[Head, bytes]]:
        while True:
            head, body = self._next()
            if head.kind == "stop":
                _raise_again(head)
                return
            if head.kind != "more" or head.start is None:
                raise SourceRefused(f"tape {self._path}: {head.kind!r} where samples should be; it is damaged")
            yield head, body

    def _keep(self, head: Head, body: bytes) -> None:
        if head.kind == "decided":
            self._decided = body

    def _answer(self, question: Head) -> tuple[Head, bytes]:
        """The answer to a question; decisions, and answers about containers that are not asked for, are passed by."""
        head, body = self._next()
        while head.kind == "decided" or (head.kind in OF_CONTAINERS and question.kind not in OF_CONTAINERS):
            self._keep(head, body)
            if head.kind == "container_usage":
                deque(self._blocks(), maxlen=0)
            head, body = self._next()
        if msgspec.structs.replace(head, failure="") != question:
            raise SourceRefused(
                f"tape {self._path}: the service asked for {question.kind} {question.signal} where the tape has "
                f"{head.kind} {head.signal}; play it with the settings and the version that recorded it"
            )
        _raise_again(head)
        return head, body

    def _asked_then(self, kind: str) -> None:
        """Refuse a question that the service did not ask, or had no time for."""
        while (waiting := self._peek()) is not None and waiting[0].kind == "decided":
            self._keep(*self._next())
        if waiting is None or waiting[0].kind != kind:
            raise SourceUnavailable(f"the recorded service did not ask for {kind} in this cycle")

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


class ContainerTapeReader(TapeReader):
    """A tape of a service that read containers, too."""

    def containers(self, at: datetime) -> ContainerFacts:
        """Return the recorded answer."""
        self._asked_then("containers")
        _head, body = self._answer(Head(kind="containers", at=at))
        return _containers_of(msgspec.json.decode(body, type=ToldContainers))

    def container_usage(
        self, signal: Signal, start: datetime, end: datetime, step: timedelta
    ) -> Iterator[ContainerBlock]:
        """Return the recorded answer."""
        self._answer(span_head("container_usage", signal, start, end, step))
        for head, body in self._blocks():
            yield _container_block(head, body)


def open_tape(path: Path) -> TapeReader:
    """A tape to be played; it tells containers apart where the recorded source did.

    Raises:
        SourceRefused: it is not there, or no tape of this version.
    """
    reader = TapeReader(path)
    return ContainerTapeReader(path) if reader.tells_containers else reader


def _frames(path: Path) -> Iterator[tuple[Head, bytes]]:
    """Every whole frame; one that was cut off by a crash is the end."""
    try:
        with path.open("rb") as file:
            if file.read(len(TAPE_MAGIC)) != TAPE_MAGIC:
                raise SourceRefused(f"tape {path}: not a tape of this version")
            while (frame := _frame(file, path)) is not None:
                yield frame
    except OSError as error:
        raise SourceRefused(f"tape {path}: {error.strerror}") from error


def _frame(file: BufferedReader, path: Path) -> tuple[Head, bytes] | None:
    sizes = file.read(FRAME_SIZES.size)
    if len(sizes) < FRAME_SIZES.size:
        return None
    head_size, body_size = FRAME_SIZES.unpack(sizes)
    head, body = file.read(head_size), file.read(body_size)
    if len(head) < head_size or len(body) < body_size:
        return None
    try:
        return msgspec.json.decode(head, type=Head), zlib.decompress(body)
    except (msgspec.DecodeError, UnicodeDecodeError, zlib.error) as error:
        raise SourceRefused(f"tape {path}: damaged ({error})") from error


def _block(head: Head, body: bytes) -> Block:
    assert head.start is not None  # noqa: S101  checked where blocks are read
    ids = tuple(WorkloadId(*id_) for id_ in head.ids)
    step = timedelta(seconds=head.step_seconds)
    values, *of_pods = _layers(head, body)
    return Block(
        head.signal,
        ids,
        head.start,
        step,
        values,
        tuple(head.warnings),
        PodSamples(*of_pods) if of_pods else None,
        head.partial,
        head.rated,
        {WorkloadId(*id_): why for id_, why in head.moved},
    )


def _container_block(head: Head, body: bytes) -> ContainerBlock:
    assert head.start is not None  # noqa: S101  checked where blocks are read
    ids = tuple(map(_container, head.ids))
    return ContainerBlock(ids, head.start, timedelta(seconds=head.step_seconds), _layers(head, body)[0])


def _layers(head: Head, body: bytes) -> NDArray[np.float64]:
    """The arrays of a frame, [layer, row, column]."""
    return np.frombuffer(body, TAPE_FLOAT).reshape(head.layers, len(head.ids), head.columns)


def _container(flat: tuple[str, ...]) -> ContainerId:
    *workload, name = flat
    return ContainerId(WorkloadId(*workload), name)


def _containers_of(told: ToldContainers) -> ContainerFacts:
    return ContainerFacts(
        images={_container(flat): one for flat, one in told.images},
        init=frozenset(map(_container, told.init)),
        resources={_container(flat): one for flat, one in told.resources},
        oom_limits={_container(flat): one for flat, one in told.oom_limits},
        held_back={_container(flat): one for flat, one in told.held_back},
        unread=told.unread,
    )


def _raise_again(head: Head) -> None:
    name, _, message = head.failure.partition(": ")
    if name:
        raise SOURCE_ERRORS.get(name, SourceRefused)(message)


SOURCE_ERRORS: dict[str, Any] = {
    one.__name__: one for one in (SourceError, SourceRefused, SourceTimeout, SourceUnavailable)
}

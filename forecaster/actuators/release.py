"""`release`: owners' values back, from the marks that lie beside them, without a forecast, a Lease or a service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from math import inf
from typing import NamedTuple, Protocol, TypeVar, cast

from forecaster.actuators.queue import WriteBatch, WriteQueue, error_text
from forecaster.actuators.settings import ActingSettings
from forecaster.actuators.writes import ClusterWrite, WrittenCluster, WrittenObject
from forecaster.kube.client import ApiError

ATTEMPTS = 3
"""Attempts to write an object that its controller writes meanwhile."""
MAX_SILENT = 50
"""Writes without an answer in a row after which the API server is given up: namespaces of one owner may fail together,
and each run begins anew."""
W = TypeVar("W", bound=ClusterWrite)


class MarkedObject(WrittenObject, Protocol):
    """An object that may have marks of ours."""

    @property
    def fault(self) -> str:
        """Reason why the owner's value is not known."""

    @property
    def field_value(self) -> str:
        """The field and its present value."""


S = TypeVar("S", bound=MarkedObject)


class ReleaseLine(NamedTuple):
    """One object of a release."""

    line: str
    done: bool = True
    """False: its owner's value is not back."""


@dataclass
class CommandFence:
    """Fence and log of a person's command: no Lease is needed, and each line is printed."""

    fault: str = ""
    paused: bool = False
    resumed_at: datetime | None = None

    def valid(self) -> bool:
        """Whether writes are allowed."""
        return True

    leading = valid

    def info(self, event: str, **facts: object) -> None:
        """Write no line: each object has one on the command's output."""

    warning = info


def release(
    cluster: WrittenCluster[W], marked: Iterable[S], undo: Callable[[S], W | str | None], now: datetime
) -> Iterator[ReleaseLine]:
    """Give owners their values back, one object after the other; `undo` is None, or says why, where that is not to be.

    An object that cannot be written is one line, and the others go on: its namespace's webhook may be what fails.
    """
    queue = WriteQueue(
        "release", CommandFence(), ActingSettings(), CommandFence(), budget_seconds=inf, max_trouble=MAX_SILENT
    )
    waiting = list(marked)
    for attempt in range(1, ATTEMPTS + 1):
        undone = [_undone(subject, undo) for subject in waiting]
        yield from (line for line in undone if isinstance(line, ReleaseLine))
        writes = [write for write in undone if write is not None and not isinstance(write, ReleaseLine)]
        batch, changed = WriteBatch(now), []
        for write, error in queue.carried_out(cluster, writes, batch):
            if _status(error) == HTTPStatus.CONFLICT and attempt < ATTEMPTS:
                changed.append(write.subject)
            elif _status(error) != HTTPStatus.NOT_FOUND:
                yield _released(write, error)
        yield from (ReleaseLine(f"{line}; run it again", done=False) for line in batch.failures)
        again = [_again(cluster, subject) for subject in changed]
        yield from (line for line in again if isinstance(line, ReleaseLine))
        waiting = [subject for subject in again if subject is not None and not isinstance(subject, ReleaseLine)]


def _undone(subject: S, undo: Callable[[S], W | str | None]) -> W | ReleaseLine | None:
    """Return what gives an owner the value back, or a line where that is not known."""
    if subject.fault:
        return _left(subject, subject.fault)
    try:
        outcome = undo(subject)
    except Exception as error:  # noqa: BLE001  a boundary by object
        outcome = error_text(error)
    return _left(subject, outcome) if isinstance(outcome, str) else outcome


def _again(cluster: WrittenCluster[W], subject: S) -> S | ReleaseLine | None:
    """Read an object that was written meanwhile; None where it is gone."""
    try:
        return cast("S", cluster.again(subject))
    except ApiError as error:
        return None if error.status == HTTPStatus.NOT_FOUND else _left(subject, error_text(error))


def _released(write: ClusterWrite, error: Exception | None) -> ReleaseLine:
    subject: MarkedObject = write.subject
    if error is not None:
        return _left(subject, error_text(error))
    return ReleaseLine(f"{write}, was {subject.field_value.split(' ', 1)[1]}: {write.reason}")


def _left(subject: MarkedObject, why: str) -> ReleaseLine:
    return ReleaseLine(f"{subject}: left at {subject.field_value}: {why}", done=False)


def _status(error: Exception | None) -> int:
    return error.status if isinstance(error, ApiError) else 0

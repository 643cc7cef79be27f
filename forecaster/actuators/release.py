"""`release`: owners' values back, from the marks that lie beside them, without a forecast, a Lease or a service."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, cast

from forecaster.actuators.queue import Round, WriteQueue, error_text
from forecaster.actuators.settings import ActingSettings
from forecaster.actuators.writes import ClusterWrite, WrittenCluster, WrittenObject
from forecaster.kube.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime


ATTEMPTS = 3
"""Attempts to write an object that its controller writes meanwhile."""
MAX_SILENT = 50
"""Writes without an answer in a row after which the API server is given up: namespaces of one owner may fail together,
and each run begins anew."""
W = TypeVar("W", bound=ClusterWrite)


class Marked(WrittenObject, Protocol):
    """An object that may have marks of ours."""

    @property
    def fault(self) -> str:
        """Why the owner's value is not known."""

    @property
    def stands(self) -> str:
        """The field and its present value."""


S = TypeVar("S", bound=Marked)


class Released(NamedTuple):
    """One object of a release."""

    line: str
    done: bool = True
    """False: its owner's value is not back."""


@dataclass
class ByCommand:
    """Fence and log of a person's command: no Lease is asked, and each line is printed."""

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
) -> Iterator[Released]:
    """Give owners their values back, one object after the other; `undo` is None, or says why, where that is not to be.

    An object that cannot be written is one line, and the others go on: its namespace's webhook may be what fails.
    """
    queue = WriteQueue(
        "release", ByCommand(), ActingSettings(), ByCommand(), budget_seconds=inf, max_trouble=MAX_SILENT
    )
    waiting = list(marked)
    for attempt in range(1, ATTEMPTS + 1):
        undone = [_undone(one, undo) for one in waiting]
        yield from (line for line in undone if isinstance(line, Released))
        writes = [write for write in undone if write is not None and not isinstance(write, Released)]
        found, changed = Round(now), []
        for write, error in queue.carried_out(cluster, writes, found):
            if _status(error) == HTTPStatus.CONFLICT and attempt < ATTEMPTS:
                changed.append(write.subject)
            elif _status(error) != HTTPStatus.NOT_FOUND:
                yield _released(write, error)
        yield from (Released(f"{line}; run it again", done=False) for line in found.failures)
        again = [_again(cluster, one) for one in changed]
        yield from (line for line in again if isinstance(line, Released))
        waiting = [one for one in again if one is not None and not isinstance(one, Released)]


def _undone(one: S, undo: Callable[[S], W | str | None]) -> W | Released | None:
    """Return what gives an owner the value back, or a line where that is not known."""
    if one.fault:
        return _left(one, one.fault)
    try:
        found = undo(one)
    except Exception as error:  # noqa: BLE001  a boundary by object
        found = error_text(error)
    return _left(one, found) if isinstance(found, str) else found


def _again(cluster: WrittenCluster[W], one: S) -> S | Released | None:
    """Read an object that was written meanwhile; None where it is gone."""
    try:
        return cast("S", cluster.again(one))
    except ApiError as error:
        return None if error.status == HTTPStatus.NOT_FOUND else _left(one, error_text(error))


def _released(write: ClusterWrite, error: Exception | None) -> Released:
    one: Marked = write.subject
    if error is not None:
        return _left(one, error_text(error))
    return Released(f"{write}, was {one.stands.split(' ', 1)[1]}: {write.reason}")


def _left(one: Marked, why: str) -> Released:
    return Released(f"{one}: left at {one.stands}: {why}", done=False)


def _status(error: Exception | None) -> int:
    return error.status if isinstance(error, ApiError) else 0

"""`release`: owners' values back, from the marks that lie beside them, without a forecast, a Lease or a service."""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from forecaster.actuators.writes import ClusterWrite, WrittenObject
from forecaster.errors import unexpected
from forecaster.kube.client import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from forecaster.actuators.writes import WrittenCluster

ATTEMPTS = 3
"""Attempts to write an object that its controller writes meanwhile."""
MAX_SILENT = 5
"""Objects in a row without an answer after which the API server is given up."""
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


def release(
    cluster: WrittenCluster[W], marked: Iterable[S], undo: Callable[[S], W | None], now: datetime
) -> Iterator[Released]:
    """Give owners their values back, one object after the other; `undo` is None where that is not to be.

    An object that cannot be written is one line, and the others go on: its namespace's webhook may be what fails.

    Raises:
        ApiError: the API server has not answered several times in a row.
    """
    silent = 0
    for one in marked:
        try:
            found = _released(cluster, one, undo, now, attempts=ATTEMPTS)
        except UnreachableError as error:
            silent += 1
            if silent == MAX_SILENT:
                raise
            found = Released(f"{one}: left at {one.stands}: {error}", done=False)
        except Exception as error:  # noqa: BLE001  a boundary by object
            found = Released(f"{one}: left at {one.stands}: {unexpected(error)}", done=False)
        else:
            silent = 0
        if found is not None:
            yield found


def _released(
    cluster: WrittenCluster[W], one: S, undo: Callable[[S], W | None], now: datetime, *, attempts: int
) -> Released | None:
    """What became of one; None where there is nothing to do, or it is gone."""
    if one.fault:
        return Released(f"{one}: left at {one.stands}: {one.fault}", done=False)
    write = undo(one)
    if write is None:
        return None
    try:
        try:
            cluster.write(write)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT or attempts == 1:
                raise
            return _released(cluster, cluster.again(one), undo, now, attempts=attempts - 1)
    except UnreachableError:
        raise
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        return Released(f"{one}: left at {one.stands}: {error}", done=False)
    with suppress(ApiError):  # the value is back; its Event is told by this line, too
        cluster.record(write, now)
    return Released(f"{write}, was {one.stands.split(' ', 1)[1]}: {write.reason}")

"""/replica: files of the leader that other replicas copy, for accounts with the right to that path.

Each file has a tag. It is replaced as a whole, so a tag means one content. It is read in pieces, each of which names
the tag: a file replaced meanwhile is read again from its beginning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from pathlib import Path

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forecaster.publish.new_pods import new_pods_path
from forecaster.publish.table import pictures_path
from forecaster.serving.rest import ProblemError

PIECE_BYTES = 4 << 20
"""Bytes of one answer: some milliseconds of the serving process."""
TABLE = "table"


def replicated_files(table: Path) -> dict[str, Path]:
    """Return the files by name, in the order of copying: the state behind a table comes before the table.

    The history comes last. It is large and seldom written, and missing parts are read from the source.
    """
    beside = table.parent
    return {
        "request-origins": beside / "request-origins.json",
        "observed": beside / "observed.json",
        "new-pods": new_pods_path(table),
        TABLE: table,
        "pictures": pictures_path(table),
        "history": beside / "history.snapshot",
    }


class ReplicatedFiles(msgspec.Struct, frozen=True):
    """List of the files to copy."""

    now: float
    """Clock of the answering replica, in seconds since 1970."""
    tags: dict[str, str]
    """Tags of the existing files, by name."""


def tags(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the tags of the existing files."""
    existing = {}
    for name, path in files.items():
        with suppress(OSError):
            existing[name] = _tag(path.stat())
    return existing


def size_of(tag: str) -> int:
    """Bytes of the whole file. Raises ValueError where it is no tag."""
    return int(tag.rpartition("-")[2])


def read_piece(path: Path, tag: str, at: int) -> bytes | None:
    """A part of a file from a place on; None where the file has another tag by now. Raises OSError."""
    with path.open("rb") as file:
        if _tag(os.fstat(file.fileno())) != tag:
            return None
        return os.pread(file.fileno(), PIECE_BYTES, at)


def _tag(status: os.stat_result) -> str:
    """Return the tag of a file's content: a file renamed into its place has another one, even if equal."""
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_size}"


FILES = "/replica/v1/files"
POSITION_DIGITS = 15
"""Digits of a position in a file."""


class ReplicaFiles:
    """Files beside the served table."""

    def __init__(self, table: Path, clock: Callable[[], datetime]) -> None:
        self._files, self._clock = replicated_files(table), clock

    def routes(self) -> list[Route]:
        """The list, and the pieces."""
        return [Route(FILES, self.listed), Route(f"{FILES}/{{name}}", self.piece)]

    async def listed(self, _request: Request) -> Response:
        """List the files."""
        files = ReplicatedFiles(self._clock().timestamp(), tags(self._files))
        return Response(msgspec.json.encode(files), media_type="application/json")

    async def piece(self, request: Request) -> Response:
        """Return a part of a file from `at` on, while it has the requested tag."""
        path = self._files.get(request.path_params["name"])
        tag, at = request.query_params.get("tag", ""), request.query_params.get("at", "0")
        if path is None or not (at.isascii() and at.isdigit() and len(at) <= POSITION_DIGITS):
            raise ProblemError(
                HTTPStatus.NOT_FOUND, f"there is no {request.url.path} at {at[:POSITION_DIGITS]}", f"Ask {FILES}"
            )
        try:
            piece = await run_in_threadpool(read_piece, path, tag, int(at))
        except OSError as error:
            raise ProblemError(HTTPStatus.NOT_FOUND, f"{request.url.path}: {error.strerror}", f"Ask {FILES}") from error
        if piece is None:
            raise ProblemError(HTTPStatus.PRECONDITION_FAILED, f"{request.url.path} was replaced", f"Ask {FILES}")
        return Response(piece, media_type="application/octet-stream")

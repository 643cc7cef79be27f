"""/replica: the files that other replicas copy, for accounts with the right to that path."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from forecaster.publish.replicated import ReplicatedFiles, read_piece, replicated_files, tags
from forecaster.serving.rest import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from starlette.requests import Request

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

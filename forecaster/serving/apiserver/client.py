"""ApiServer: objects of the cluster, read and reviewed."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

import msgspec

from forecaster.serving.apiserver.connections import Connections, UnreachableError

if TYPE_CHECKING:
    from forecaster.serving.apiserver.config import Access

T = TypeVar("T")
THREADS = 4
TIMEOUT_SECONDS = 10.0


class ApiServerError(Exception):
    """The API server did not answer, or with a refusal. `status` is 0 where it did not."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ApiServer:
    """The few questions that serving has."""

    def __init__(self, access: Access, threads: int = THREADS, timeout: float = TIMEOUT_SECONDS) -> None:
        self._connections = Connections(access, threads, timeout)

    async def get(self, path: str, kind: type[T]) -> T:
        """An object.

        Raises:
            ApiServerError: there is none, or no answer.
        """
        return await self._ask("GET", path, None, kind)

    async def create(self, path: str, body: msgspec.Struct, kind: type[T]) -> T:
        """The answer to a review. It changes nothing there, so it may be asked twice.

        Raises:
            ApiServerError: it was refused, or there is no answer.
        """
        return await self._ask("POST", path, msgspec.json.encode(body), kind)

    def close(self) -> None:
        """Wait for nobody."""
        self._connections.close()

    async def _ask(self, method: str, path: str, body: bytes | None, kind: type[T]) -> T:
        try:
            answer = await self._connections.exchange(method, path, body)
        except UnreachableError as error:
            raise ApiServerError(f"{method} {path}: {error}") from error
        if answer.status not in {HTTPStatus.OK, HTTPStatus.CREATED}:
            raise ApiServerError(f"{method} {path}: {answer.status}", answer.status)
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.DecodeError as error:
            raise ApiServerError(f"{method} {path}: the answer is not understood ({error})") from error

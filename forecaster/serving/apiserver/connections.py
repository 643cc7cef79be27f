"""Connections: requests to one server over kept connections, one in each of a few threads."""

from __future__ import annotations

import asyncio
import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from forecaster.serving.apiserver.config import Access

BODY_MAX = 8 * 2**20
RENEW_AFTER = 100
"""Requests on one connection: a rotated CA or client certificate is taken up with the next one."""


class UnreachableError(Exception):
    """The server did not answer, or not in time."""


class Answer(NamedTuple):
    """What it answered."""

    status: int
    body: bytes
    content_type: str


class Connections:
    """Asks in threads of its own, so that no caller waits for another one's question."""

    def __init__(self, access: Access, threads: int, timeout: float) -> None:
        self._access = access
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=access.host)
        self._kept = threading.local()
        self._open: set[http.client.HTTPSConnection] = set()

    async def exchange(self, method: str, target: str, body: bytes | None = None) -> Answer:
        """One request that may be repeated, and its answer whatever its status.

        Raises:
            UnreachableError: there was none.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._exchange, method, target, body)

    def close(self) -> None:
        """Wait for nobody."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for connection in list(self._open):
            connection.close()

    def _exchange(self, method: str, target: str, body: bytes | None) -> Answer:
        """Once more on a new connection if the kept one has gone meanwhile."""
        kept = getattr(self._kept, "connection", None) is not None
        try:
            return self._once(method, target, body)
        except (http.client.HTTPException, OSError) as error:
            self._drop()
            if not kept or isinstance(error, TimeoutError):
                raise UnreachableError(f"{type(error).__name__} {error}") from error
        try:
            return self._once(method, target, body)
        except (http.client.HTTPException, OSError) as error:
            self._drop()
            raise UnreachableError(f"{type(error).__name__} {error}") from error

    def _once(self, method: str, target: str, body: bytes | None) -> Answer:
        connection = self._connection()
        headers = {"Accept": "application/json", "Content-Type": "application/json", **self._access.headers()}
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        text = response.read(BODY_MAX)
        if not response.isclosed():
            self._drop()
        return Answer(response.status, text, response.headers.get("Content-Type", ""))

    def _connection(self) -> http.client.HTTPSConnection:
        used = getattr(self._kept, "used", 0)
        if used >= RENEW_AFTER:
            self._drop()
        found: http.client.HTTPSConnection | None = getattr(self._kept, "connection", None)
        if found is None:
            access = self._access
            found = http.client.HTTPSConnection(
                access.host, access.port, timeout=self._timeout, context=access.context()
            )
            self._kept.connection, used = found, 0
            self._open.add(found)
        self._kept.used = used + 1
        return found

    def _drop(self) -> None:
        connection: http.client.HTTPSConnection | None = getattr(self._kept, "connection", None)
        self._kept.connection, self._kept.used = None, 0
        if connection is not None:
            self._open.discard(connection)
            connection.close()

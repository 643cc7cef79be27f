"""uvicorn's server with doors of our own in place of its sockets, and a sweep over slow clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import uvicorn

from forecaster.serving.connection import Connection
from forecaster.serving.listener import Listener

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp

GRACE_SECONDS = 5
"""Requests that are being answered get this long when the process is asked to stop."""
KEEP_ALIVE_SECONDS = 120
"""Longer than the 90 s after which the aggregator drops an idle connection: it must be the one to close."""


class HttpServer(uvicorn.Server):
    """Serves one application on a plain socket, and on one with TLS where there is a context."""

    def __init__(
        self,
        app: ASGIApp,
        plain: socket.socket,
        secure: socket.socket | None = None,
        context: Callable[[], ssl.SSLContext] | None = None,
        refused: Callable[[str, str], None] = lambda _why, _peer: None,
        ready: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(_config(app))
        self._plain = plain
        self._secure = secure
        self._context = context
        self._refused = refused
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002  it has its own
        """Open the doors."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            self.should_exit = True
            return
        doors = [self._door(self._plain, None)]
        if self._secure:
            doors.append(self._door(self._secure, self._context))
        self.servers: Any = doors
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: once in a second, close what is overdue."""
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in self.open_connections():
                if connection.overdue(now):
                    connection.give_up()
        return await super().on_tick(counter)

    def open_connections(self) -> list[Connection]:
        """All of them; a list of its own, since closing changes the set."""
        return [one for one in self.server_state.connections if isinstance(one, Connection)]

    def drop_peers(self) -> None:
        """Let every connection with TLS end after its present answer: its handshake knew another CA, or none.

        A connection from before any CA was known has shown no certificate; a proxy on it would stay anonymous.
        """
        for connection in self.open_connections():
            if connection.secure:
                connection.shutdown()

    def _door(self, listener: socket.socket, context: Callable[[], ssl.SSLContext] | None) -> Listener:
        def make() -> Connection:
            state, app_state = self.server_state, self.lifespan.state
            return Connection(self.config, state, app_state, secure=context is not None, refused=self._refused)

        connections: Any = self.server_state.connections
        return Listener(listener, make, lambda: connections, context, self._refused, self._ready if context else None)


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Connection,
        loop="uvloop",
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # what a client says of its own address is not what the audit should show
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )

"""uvicorn's server with listeners of our own in place of its sockets, and a sweep over slow clients.

A listener decides which connections come in, in which order, and at which pace.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from forecaster.serving.connection import Connection
from forecaster.serving.review_cache import FairTurns

GRACE_SECONDS = 5
"""Time for requests in progress when the process is stopped."""
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
        logging.getLogger("uvicorn.error").addFilter(_is_fault)
        self._plain = plain
        self._secure = secure
        self._context = context
        self._refused = refused
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002  it has its own
        """Start listening."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            self.should_exit = True
            return
        doors = [self._listen(self._plain, None)]
        if self._secure:
            doors.append(self._listen(self._secure, self._context))
        self.servers: Any = doors
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second: once a second, close overdue connections."""
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in self.open_connections():
                if connection.overdue(now):
                    connection.give_up()
        return await super().on_tick(counter)

    def open_connections(self) -> list[Connection]:
        """Return all connections as a new list, since closing changes the set."""
        return [connection for connection in self.server_state.connections if isinstance(connection, Connection)]

    def drop_peers(self) -> None:
        """Let every connection with TLS end after its present answer: its handshake knew another CA, or none.

        A connection from before any CA was known has shown no certificate; a proxy on it would stay anonymous.
        """
        for connection in self.open_connections():
            if connection.secure:
                connection.shutdown()

    def _listen(self, listener: socket.socket, context: Callable[[], ssl.SSLContext] | None) -> Listener:
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


def _is_fault(record: logging.LogRecord) -> bool:
    """Whether a record is a fault, not an answer that was cancelled when the process was stopped."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


LISTENER_SILENCE_SECONDS = 5.0
"""Time for which a connection may stay silent."""
SILENT_MAX = 4096
"""Largest number of silent connections; one more closes the one that has been silent longest."""


class SilentConnections:
    """Waits for the first byte of each connection and passes on those that send one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, speaks: Callable[[socket.socket], None]) -> None:
        self._loop = loop
        self._speaks = speaks
        self._waiting: dict[socket.socket, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def enter(self, connection: socket.socket) -> None:
        """Keep a connection until its first byte."""
        if len(self._waiting) >= SILENT_MAX:
            self._send_away(next(iter(self._waiting)))
        self._waiting[connection] = self._loop.call_later(LISTENER_SILENCE_SECONDS, self._send_away, connection)
        self._loop.add_reader(connection, self._spoke, connection)

    def close(self) -> None:
        """Close all waiting connections."""
        for connection in list(self._waiting):
            self._send_away(connection)

    def _spoke(self, connection: socket.socket) -> None:
        self._forget(connection)
        if _says_something(connection):
            self._speaks(connection)
        else:
            connection.close()

    def _send_away(self, connection: socket.socket) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: socket.socket) -> None:
        self._waiting.pop(connection).cancel()
        self._loop.remove_reader(connection)


def _says_something(connection: socket.socket) -> bool:
    """Whether there is a byte to read, and not the end."""
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


HANDSHAKE_SECONDS = 5.0
MAX_HANDSHAKES = 256
"""Handshakes under way at a time."""
PACE_SECONDS = 0.002
"""Pause after each new connection, for the established ones: a handshake takes up to 3 ms of CPU, and many that are
under way at the same moment are one long stall."""
MAX_CONNECTIONS = 1024
OUT_OF_DESCRIPTORS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Listener:
    """Accepts from one socket; with a context, speaks TLS. Has the interface of an asyncio server for uvicorn."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], Connection],
        connections: Callable[[], set[Connection]],
        context: Callable[[], ssl.SSLContext] | None = None,
        refused: Callable[[str, str], None] = lambda _why, _peer: None,
        ready: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        listener.setblocking(False)  # noqa: FBT003  the socket's own signature
        self._listener = listener
        self._make = make
        self._connections = connections
        self._context = context
        self._refused = refused
        self._ready = ready
        self._loop = asyncio.get_running_loop()
        self._speaking: FairTurns[socket.socket] = FairTurns()
        self._spoke = asyncio.Event()
        self._silent = SilentConnections(self._loop, self._queue)
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._tasks = [self._loop.create_task(self._accept()), self._loop.create_task(self._serve_queue())]

    def close(self) -> None:
        """Accept no more connections."""
        for task in (*self._tasks, *self._handshakes):
            task.cancel()
        self._silent.close()

    async def wait_closed(self) -> None:
        """Wait until the listener is closed."""
        await asyncio.gather(*self._tasks, *self._handshakes, return_exceptions=True)

    async def _accept(self) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._listener)
            except OSError as error:
                # Whoever waits in the queue of the socket goes on waiting; there is no point in asking at once.
                await asyncio.sleep(0.1 if error.errno in OUT_OF_DESCRIPTORS else 0)
                continue
            connection.setblocking(False)  # noqa: FBT003  the socket's own signature
            self._silent.enter(connection)

    def _queue(self, connection: socket.socket) -> None:
        """Queue a connection for its handshake, in turns by address; above the limit the busiest address loses one."""
        if len(self._speaking) >= SILENT_MAX:
            self._speaking.drop().close()
        self._speaking.add(_address(connection), connection)
        self._spoke.set()

    async def _serve_queue(self) -> None:
        if self._ready:
            await self._ready()
        while True:
            if not self._speaking:
                self._spoke.clear()
                await self._spoke.wait()
            connection = self._speaking.take()
            self._drop_excess()
            task = self._loop.create_task(self._handshake(connection))
            self._handshakes[task] = None
            task.add_done_callback(self._handshakes.pop)
            if self._context:
                await asyncio.sleep(PACE_SECONDS)

    def _drop_excess(self) -> None:
        """Above the limits, end the longest handshake and one connection without a certificate, rather an idle one."""
        if len(self._handshakes) >= MAX_HANDSHAKES:
            next(iter(self._handshakes)).cancel()
        inside = self._connections()
        if len(inside) >= MAX_CONNECTIONS:
            strangers = [connection for connection in inside if connection.peer is None]
            stranger = next((connection for connection in strangers if connection.idle), next(iter(strangers), None))
            if stranger:
                stranger.transport.abort()

    async def _handshake(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = _address(connection)
        try:
            await self._connect(connection)
        except (OSError, ssl.SSLError) as error:  # TLS errors are operating system errors, timeouts too
            self._refused(f"handshake: {getattr(error, 'verify_message', '') or _name(error)}", peer)
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise

    async def _connect(self, connection: socket.socket) -> None:
        if self._context is None:
            await self._loop.connect_accepted_socket(self._make, connection)
            return
        context = self._context()
        protocol = self._make()  # uvloop returns its own protocol of TLS in place of this one
        await self._loop.connect_accepted_socket(
            lambda: protocol, connection, ssl=context, ssl_handshake_timeout=HANDSHAKE_SECONDS
        )
        if not same_trust(context, self._context()):
            protocol.transport.abort()  # a request that came with the end of the handshake gets no answer either


def same_trust(before: ssl.SSLContext, now: ssl.SSLContext) -> bool:
    """Whether a handshake's verification would succeed now: the authority may change meanwhile."""
    return before is now or before.get_ca_certs(binary_form=True) == now.get_ca_certs(binary_form=True)


def _address(connection: socket.socket) -> str:
    try:
        return str(connection.getpeername()[0])
    except OSError:
        return ""


def _name(error: Exception) -> str:
    return str(getattr(error, "reason", None) or type(error).__name__)

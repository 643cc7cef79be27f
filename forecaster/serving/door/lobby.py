"""Connections that have not said a word. Each costs a descriptor and a timer: no TLS, no buffers, no task."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

SILENCE_SECONDS = 5.0
"""How long a connection may stay silent."""
ROOM = 4096
"""How many may wait at a time; one more sends away the one that has waited longest."""


class Lobby:
    """Waits for the first byte of each connection and passes on those that speak."""

    def __init__(self, loop: asyncio.AbstractEventLoop, speaks: Callable[[socket.socket], None]) -> None:
        self._loop = loop
        self._speaks = speaks
        self._waiting: dict[socket.socket, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def enter(self, connection: socket.socket) -> None:
        """Let it wait."""
        if len(self._waiting) >= ROOM:
            self._send_away(next(iter(self._waiting)))
        self._waiting[connection] = self._loop.call_later(SILENCE_SECONDS, self._send_away, connection)
        self._loop.add_reader(connection, self._spoke, connection)

    def close(self) -> None:
        """Send all away."""
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

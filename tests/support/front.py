"""Pass connections on to the first program behind it that is ready, as a Service does."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

PIECE = 65_536
CONNECT_SECONDS = 2.0


class Front:
    """Listens on loopback; `ready` says the ports behind it, best first, at each connection."""

    def __init__(self, ready: Callable[[], list[int]]) -> None:
        self._ready = ready
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(caller,), daemon=True).start()

    def _pass_on(self, caller: socket.socket) -> None:
        with caller:
            behind = self._connected()
            if behind is None:
                return
            with behind:
                back = threading.Thread(target=_pump, args=(behind, caller), daemon=True)
                back.start()
                _pump(caller, behind)
                back.join()

    def _connected(self) -> socket.socket | None:
        for port in self._ready():
            with suppress(OSError):
                connection = socket.create_connection(("127.0.0.1", port), CONNECT_SECONDS)
                connection.settimeout(None)
                return connection
        return None


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until one side ends; then both do."""
    with suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)

"""ServingProcess: how the computing process starts the serving one, keeps it alive and stops it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.errors import StoreError
from forecaster.serving.address import Address, listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from datetime import timedelta
    from pathlib import Path

BACKOFF_SECONDS = (0.2, 1.0, 5.0, 30.0)
"""Waits before the first, second, ... restart; the last one repeats."""
HEALTHY_SECONDS = 60.0
"""After this long alive, the next death counts as the first again."""


@dataclass(frozen=True, slots=True)
class Death:
    """The serving process ended without being asked to."""

    code: int
    restart_in_seconds: float


class ServingProcess:
    """One child that answers on one socket.

    The socket is opened here and inherited by every child: while a dead one is replaced, clients wait in the queue of
    the socket instead of being refused, and an address that is taken is known before anything starts. The child ends
    with this process, however this process ends: it reads a pipe of which we hold the other end.
    """

    def __init__(
        self,
        table: Path,
        address: Address,
        *,
        stale_after: timedelta | None = None,
        on_death: Callable[[Death], None] = lambda _death: None,
    ) -> None:
        self._table = table
        self.address = address
        """Where it answers; once started, with the port that the system chose."""
        self._stale_after = stale_after
        self._on_death = on_death
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._socket: socket.socket | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._keeper: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """The present child."""
        return None if self._child is None else self._child.pid

    def start(self) -> None:
        """Listen and start the first child.

        Raises:
            StoreError: nothing can listen on that address.
        """
        try:
            listener = listen(self.address)
        except OSError as error:
            raise StoreError(f"serving: {error.strerror}") from error
        self.address = Address(*listener.getsockname()[:2])
        self._socket, self._child = listener, self._spawn(listener)
        self._keeper = threading.Thread(target=self._keep, args=[listener, self._child], name="serving", daemon=True)
        self._keeper.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Let the child finish its requests; after `timeout` seconds kill it."""
        with self._lock:
            self._stopping.set()
            child = self._child
        if child is None or self._keeper is None or self._socket is None:
            return
        child.terminate()
        self._keeper.join(timeout)
        child.kill()  # does nothing to one that has ended
        self._keeper.join()
        self._socket.close()

    def _keep(self, listener: socket.socket, first: subprocess.Popen[bytes]) -> None:
        """Runs in a thread: waits for the end of each child and starts the next."""
        child: subprocess.Popen[bytes] | None = first
        deaths = 0
        while child is not None:
            code, lived = _outlive(child)
            if self._stopping.is_set():
                return
            deaths = 1 if lived > HEALTHY_SECONDS else deaths + 1
            wait = BACKOFF_SECONDS[min(deaths, len(BACKOFF_SECONDS)) - 1]
            self._on_death(Death(code, wait))
            self._stopping.wait(wait)
            child = self._replace(listener)

    def _replace(self, listener: socket.socket) -> subprocess.Popen[bytes] | None:
        with self._lock:
            self._child = None if self._stopping.is_set() else self._spawn(listener)
            return self._child

    def _spawn(self, listener: socket.socket) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C reaches only us, and we stop the child in order.
        return subprocess.Popen(  # noqa: S603  our own interpreter and module
            _command(self._table, listener.fileno(), self._stale_after),
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )


def _command(table: Path, descriptor: int, stale_after: timedelta | None) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "forecaster.serving",
        "--with-parent",
        "--table",
        str(table),
        "--fd",
        str(descriptor),
    ]
    return command if stale_after is None else [*command, "--stale-after", str(stale_after.total_seconds())]


def _outlive(child: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Wait for the end of a child: its exit code and how long that took."""
    begin = time.monotonic()
    with child:  # closes our end of the pipe as well
        code = child.wait()
    return code, time.monotonic() - begin

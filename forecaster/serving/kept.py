"""KeptChild: one child process that is started again whenever it dies, until it is stopped."""

from __future__ import annotations

import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BACKOFF_SECONDS = (0.2, 1.0, 5.0, 30.0)
"""Waits before the first, second, ... restart; the last one repeats."""
HEALTHY_SECONDS = 60.0
"""After this long alive, the next death counts as the first again."""


@dataclass(frozen=True, slots=True)
class Death:
    """The child ended without being asked to."""

    code: int
    restart_in_seconds: float


class KeptChild:
    """Runs `command` with the descriptors it inherits.

    The child ends with this process, however this process ends: it reads a pipe of which we hold the other end.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        descriptors: Sequence[int] = (),
        on_death: Callable[[Death], None] = lambda _death: None,
    ) -> None:
        self._name = name
        self._command = list(command)
        self._descriptors = tuple(descriptors)
        self._on_death = on_death
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._keeper: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """The present child."""
        return None if self._child is None else self._child.pid

    def start(self) -> None:
        """Start the first child."""
        self._child = self._spawn()
        self._keeper = threading.Thread(target=self._keep, args=[self._child], name=self._name, daemon=True)
        self._keeper.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Let the child finish its requests; after `timeout` seconds kill it."""
        with self._lock:
            self._stopping.set()
            child = self._child
        if child is None or self._keeper is None:
            return
        child.terminate()
        self._keeper.join(timeout)
        child.kill()  # does nothing to one that has ended
        self._keeper.join()

    def _keep(self, first: subprocess.Popen[bytes]) -> None:
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
            child = self._replace()

    def _replace(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            self._child = None if self._stopping.is_set() else self._spawn()
            return self._child

    def _spawn(self) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C reaches only us, and we stop the child in order.
        return subprocess.Popen(  # noqa: S603  our own interpreter and module
            self._command,
            stdin=subprocess.PIPE,
            pass_fds=self._descriptors,
            start_new_session=True,
        )


def _outlive(child: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Wait for the end of a child: its exit code and how long that took."""
    begin = time.monotonic()
    with child:  # closes our end of the pipe as well
        code = child.wait()
    return code, time.monotonic() - begin

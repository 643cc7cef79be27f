"""`forecaster run` by a clock that goes faster: `python -m tests.support.replica_process BEGAN SPEED SETTINGS`.

With `serving` after SPEED it is the serving process of that clock, with the options that it is always started with. A
folder in FAULTS may hold a file `clock`, with the seconds that this clock is wrong by, and a file `dns`, while which is
there no name of a host is found.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forecaster.app import outlets, service
from forecaster.app.child import ServingProcess
from forecaster.app.serve import serve
from forecaster.config.settings import load
from forecaster.domain.window import last_multiple
from forecaster.serving.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Callable


FAULTS = Path(os.environ.get("FAULTS", "/nowhere"))


class FastClock:
    """Clock that runs `speed` times as fast as real time since `began`, in seconds since 1970."""

    def __init__(self, began: float, speed: float) -> None:
        self.began, self.speed = began, speed

    def __call__(self) -> datetime:
        """Now."""
        return datetime.fromtimestamp(self.began + (time.time() - self.began) * self.speed + self._wrong_by(), UTC)

    @staticmethod
    def _wrong_by() -> float:
        try:
            return float((FAULTS / "clock").read_text(encoding="ascii"))
        except FileNotFoundError:
            return 0.0


class FastSchedule:
    """`Schedule` by a clock of its own."""

    clock: FastClock

    def __init__(self, job: Callable[[], None], *, interval: timedelta, delay: timedelta, **_watched: object) -> None:
        self._job, self._interval, self._delay = job, interval, delay
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: timedelta) -> bool:
        self._stopped.set()
        self._thread.join(timeout.total_seconds())
        return not self._thread.is_alive()

    def pop_late_starts(self) -> int:
        return 0

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._job()
            due = last_multiple(self.clock() - self._delay, self._interval) + self._interval + self._delay
            self._stopped.wait(max(0.0, (due - self.clock()).total_seconds() / self.clock.speed))


def resolving(resolve: Callable[..., object]) -> Callable[..., object]:
    """Resolve names as the system does, except while the name server is away."""

    def resolved(host: str | bytes | None, *rest: object, **more: object) -> object:
        if (FAULTS / "dns").exists() and host == "localhost":
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return resolve(host, *rest, **more)

    return resolved


def begin(began: str, speed: str, *rest: str) -> int:
    """The program."""
    clock = FastClock(float(began), float(speed))
    if rest[0] == "serving":
        return main(rest[1:], clock=clock)
    FastSchedule.clock = clock
    socket.getaddrinfo = resolving(socket.getaddrinfo)  # type: ignore[assignment]
    service.Schedule = FastSchedule  # type: ignore[misc, assignment]
    program = (sys.executable, "-m", "tests.support.replica_process", began, speed, "serving")
    outlets.ServingProcess = partial(ServingProcess, program=program)  # type: ignore[misc, assignment]
    return serve(load(Path(rest[0])), clock)


if __name__ == "__main__":
    sys.exit(begin(*sys.argv[1:]))

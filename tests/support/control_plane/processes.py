"""Programs that run beside a test and end with it, whatever happens to it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.control_plane.binaries import find
from tests.support.waiting import end

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PR_SET_PDEATHSIG = 1
STOP_SECONDS = 5.0
RARELY_COLLECTED = {"GOGC": "400"}
"""Programs in Go may take more memory and collect it less often: a fifth less CPU of an API server."""
_libc = ctypes.CDLL(None)


class Programs:
    """Started in order, stopped in the opposite order. Each writes its own log into `folder`/logs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._given: dict[str, tuple[tuple[str, ...], Mapping[str, str] | None]] = {}
        (folder / "logs").mkdir()

    def start(self, name: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """Start a program of the control plane, or another one that was built beside it."""
        program = find(name)
        assert program, f"{name} is absent; ask binaries.why_not before starting"
        self._given[name] = arguments, environment
        with self.log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                [program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={**RARELY_COLLECTED, **os.environ, **(environment or {})},
                start_new_session=True,  # Ctrl-C is for pytest, which stops us in order
                preexec_fn=_end_with_parent,  # noqa: PLW1509  one system call, looked up beforehand
            )

    def log(self, name: str) -> Path:
        """Log of the program."""
        return self._folder / "logs" / f"{name}.log"

    def pid(self, name: str) -> int:
        """The process of a running program."""
        return self._running[name].pid

    def check(self) -> None:
        """Fail with the last words of a program that has ended by itself."""
        for name, process in self._running.items():
            code = process.poll()
            assert code is None, f"{name} ended with {code}:\n{self._last_words(name)}"

    def stop(self, name: str) -> None:
        """Stop one; one that does not listen is killed."""
        process = self._running.pop(name)
        end(process, STOP_SECONDS)

    def start_again(self, name: str) -> None:
        """One that was stopped, with the options that it had."""
        arguments, environment = self._given[name]
        self.start(name, *arguments, environment=environment)

    @contextmanager
    def away(self, name: str) -> Iterator[None]:
        """Stop a program within this block, and start it again with its old arguments."""
        self.stop(name)
        try:
            yield
        finally:
            self.start_again(name)

    @contextmanager
    def hanging(self, name: str) -> Iterator[None]:
        """A program does nothing: its connections stay, and the kernel answers for it."""
        os.kill(self.pid(name), signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid(name), signal.SIGCONT)

    def stop_all(self) -> None:
        """Stop all programs at once, but the first that was started, which keeps the data, last."""
        for process in reversed(list(self._running.values())[1:]):
            process.terminate()
        for name in reversed(list(self._running)):
            self.stop(name)

    def _last_words(self, name: str) -> str:
        return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-8:])


def _end_with_parent() -> None:
    """The kernel kills this process when the thread that started it ends, even by SIGKILL."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

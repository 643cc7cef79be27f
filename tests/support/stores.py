"""Servers beside Prometheus that speak its API: where their programs are, and one process of them on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Self

import requests

from tests.support.waiting import end, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType


def find_store(name: str, variable: str) -> str | None:
    """Find a program in the folder of the variable, where `.ci/stores` puts it, or on PATH."""
    cache = Path(os.environ.get("FORECASTER_CACHE") or Path.home() / ".cache" / "forecaster") / "bin"
    for folder in (os.environ.get(variable), str(cache), None):
        if path := shutil.which(name, path=folder):
            return path
    return None


class StoreProcess:
    """Runs while its block lasts; it can be stopped and started again at the same addresses."""

    def __init__(self, command: Sequence[str], url: str, ready: str, log: Path) -> None:
        self.url = url
        self._command, self._ready, self._log = command, ready, log

    def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        wait_until(self._answers, goal=f"{Path(self._command[0]).name}, whose log is {self._log},")

    def stop(self) -> None:
        """End it."""
        end(self._process)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _answers(self) -> bool:
        assert self._process.poll() is None, self._log.read_text(encoding="utf-8")[-2000:]
        try:
            return requests.get(f"{self.url}{self._ready}", timeout=10).ok
        except requests.RequestException:
            return False

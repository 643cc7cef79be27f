"""One replica of the installed product as a process, with the duties of a kubelet."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from forecaster.app.serve import table_path
from forecaster.domain.window import DAY
from forecaster.publish.reader import TableReader
from tests.support.exporters import NAMESPACE as SHOP
from tests.support.waiting import PATIENCE, end

if TYPE_CHECKING:
    from collections.abc import Iterator

RESTART_SECONDS = 0.5


class SeenTable(NamedTuple):
    """A table that lay there."""

    at: float
    """When it was seen first, by the monotonic clock."""
    decided: bool
    """Whether there was a count for every workload."""


class Footprint(NamedTuple):
    """Memory and descriptors of a process at an instant."""

    at: float
    part: str
    pid: int
    resident_bytes: int
    descriptors: int


@dataclass
class Replica:
    """`command` runs it with its settings, in `folder`, which holds `state` and `faults`."""

    name: str
    folder: Path
    plain: int
    secure: int
    command: list[str]
    ready: bool = False
    tables: dict[datetime, SeenTable] = field(default_factory=dict)
    footprints: list[Footprint] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    """Codes of processes that ended without being killed by a fault."""
    expected: bool = False
    """Whether a fault may end it."""
    process: subprocess.Popen[bytes] | None = None
    _serving: int | None = None
    _ended: float = 0.0
    _closed: bool = False

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def faults(self) -> Path:
        return self.folder / "faults"

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    @property
    def serving_pid(self) -> int | None:
        """Id of the process that answers."""
        with suppress(OSError):
            for child in _children(self.pid):
                if b"serving" in (_proc(child) / "cmdline").read_bytes():
                    return child
        return None

    def start(self) -> None:
        """Its output goes through a pipe, as in a container: no fault of its disk loses a line."""
        environment = {**os.environ, "FAULTS": str(self.faults)}
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        threading.Thread(target=_copy, args=(self.process.stdout, self.folder / "log"), daemon=True).start()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Kill the replica, as a lost node or a drain does."""
        self.expected = True
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def log(self) -> Iterator[dict[str, Any]]:
        """Events that the replica logged since its first start."""
        for line in (self.folder / "log").read_text(errors="replace").splitlines():
            if line.startswith("{"):
                with suppress(ValueError):
                    yield json.loads(line)

    def look(self, workloads: int) -> None:
        """Start it again where it has ended; note readiness, table and footprint."""
        self._restart()
        self._serving = self.serving_pid or self._serving
        self.ready = self._is_ready()
        self._look_at_table(workloads)

    def measure(self) -> None:
        """Memory and descriptors of both processes."""
        for part, pid in (("computing", self.pid), ("serving", self.serving_pid)):
            with suppress(OSError, IndexError, ValueError):
                if pid:
                    pages = int((_proc(pid) / "statm").read_text().split()[1])
                    open_files = len(list((_proc(pid) / "fd").iterdir()))
                    size = pages * resource.getpagesize()
                    self.footprints.append(Footprint(time.monotonic(), part, pid, size, open_files))

    def close(self) -> None:
        """Ask it to end."""
        self._closed = True
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            end(self.process, PATIENCE / 4)

    def _restart(self) -> None:
        if self._closed or self.process is None or self.process.poll() is None:
            return
        if not self._ended:
            self._ended = time.monotonic()
            _end_with_container(self._serving)
            if not self.expected:
                self.exits.append(self.process.returncode)
        elif time.monotonic() - self._ended > RESTART_SECONDS:
            self._ended, self.expected = 0.0, False
            self.start()

    def _is_ready(self) -> bool:
        try:
            answer = httpx.get(f"http://127.0.0.1:{self.plain}/readyz", timeout=1.0)
        except httpx.TransportError:
            return False
        return answer.status_code == HTTPStatus.OK

    def _look_at_table(self, workloads: int) -> None:
        reader = TableReader(table_path(self.state), lambda: datetime.now(UTC) + DAY)
        with suppress(Exception):  # a table that is damaged is a fault; what is served of it is looked at elsewhere
            reader.refresh()
            table = reader.table
            if table and table.meta.published_at not in self.tables:
                in_shop = [entry for entry in table.entries if entry.namespace == SHOP]
                counts = [table.view(entry).replicas.recommended for entry in in_shop]
                decided = len(counts) >= workloads and None not in counts
                self.tables[table.meta.published_at] = SeenTable(time.monotonic(), decided)


def _end_with_container(pid: int | None) -> None:
    """End all processes of a container whose first process has ended, as the kernel does."""
    with suppress(ProcessLookupError):
        if pid:
            os.kill(pid, signal.SIGKILL)


def _copy(source: Any, file: Path) -> None:
    with source, file.open("ab") as target:
        for line in source:
            target.write(line)
            target.flush()


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for task in (_proc(pid) / "task").iterdir():
        children += map(int, (task / "children").read_text().split())
    return children


def _proc(pid: int) -> Path:
    return Path("/proc") / str(pid)


def limited(pid: int, limit: int, amount: int) -> None:
    """Give a running process less of something; -1 takes the limit away."""
    resource.prlimit(pid, limit, (amount, resource.RLIM_INFINITY))

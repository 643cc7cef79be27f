"""Real sidecars and queriers of Thanos, over Prometheus servers of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Self

import requests

from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE, end, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType


def find_thanos() -> str | None:
    """From the folder THANOS_BIN, from where `.ci/stores` puts it, or from PATH."""
    cache = Path(os.environ.get("FORECASTER_CACHE") or Path.home() / ".cache" / "forecaster") / "bin"
    for folder in (os.environ.get("THANOS_BIN"), str(cache), None):
        if found := shutil.which("thanos", path=folder):
            return found
    return None


class _Component:
    """One process of Thanos on loopback, which can be stopped and started again at the same addresses."""

    def __init__(self, binary: str, name: str, folder: Path, options: Iterable[str]) -> None:
        http, grpc = free_ports(2)
        self.url, self.address = f"http://127.0.0.1:{http}", f"127.0.0.1:{grpc}"
        self._log = folder / f"{name}-{http}.log"
        served = [f"--http-address=127.0.0.1:{http}", f"--grpc-address={self.address}"]
        at_once = ["--http-grace-period=1s", "--grpc-grace-period=1s"]
        self._command = [binary, name, *served, *at_once, *options]

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        wait_until(self._ready, what=f"a component of Thanos, whose log is {self._log},")

    def stop(self) -> None:
        end(self._process)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _ready(self) -> bool:
        assert self._process.poll() is None, self._log.read_text(encoding="utf-8")[-2000:]
        try:
            return requests.get(f"{self.url}/-/ready", timeout=10).ok
        except requests.RequestException:
            return False


class Sidecar(_Component):
    """The store of one Prometheus."""

    def __init__(self, binary: str, prometheus: str, folder: Path) -> None:
        super().__init__(binary, "sidecar", folder, [f"--prometheus.url={prometheus}", f"--tsdb.path={folder}"])


class Querier(_Component):
    """Prometheus' API over several stores; `strict` ones are asked however long they have been silent."""

    def __init__(
        self, binary: str, stores: Iterable[Sidecar], folder: Path, *options: str, strict: bool = False
    ) -> None:
        flag = "--endpoint-strict" if strict else "--endpoint"
        named = [f"{flag}={one.address}" for one in stores]
        super().__init__(binary, "query", folder, [*named, *options])

    def stores(self) -> int:
        """How many answered when they were asked last."""
        told = requests.get(f"{self.url}/api/v1/stores", timeout=PATIENCE).json()["data"]
        return sum(one["lastError"] is None for kind in told.values() for one in kind)

    def until(self, stores: int) -> None:
        """Wait until so many answer."""
        wait_until(lambda: self.stores() == stores, what=f"{stores} stores at {self.url}")

"""A real VictoriaMetrics of one node, filled by its import of the exposition format."""

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

    from tests.support.prometheus import Span


def find_victoria_metrics() -> str | None:
    """From the folder VICTORIA_METRICS_BIN, from where `.ci/stores` puts it, or from PATH."""
    cache = Path(os.environ.get("FORECASTER_CACHE") or Path.home() / ".cache" / "forecaster") / "bin"
    for folder in (os.environ.get("VICTORIA_METRICS_BIN"), str(cache), None):
        if found := shutil.which("victoria-metrics", path=folder):
            return found
    return None


class VictoriaMetrics:
    """Runs while its block lasts, on loopback."""

    def __init__(self, binary: str, data: Path) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self._log = data.parent / f"{data.name}.log"
        self._command = [
            binary,
            f"-httpListenAddr=127.0.0.1:{port}",
            f"-storageDataPath={data}",
            "-retentionPeriod=100y",
            "-memory.allowedBytes=256MB",
        ]

    def take(self, spans: Iterable[Span]) -> None:
        """Import samples and make them visible."""
        lines = (
            f"{span.head} {value:.12g} {1000 * at:.0f}\n"
            for span in spans
            for value, at in zip(span.values.tolist(), span.times.tolist(), strict=True)
        )
        text = "".join(lines).encode()
        requests.post(f"{self.url}/api/v1/import/prometheus", data=text, timeout=PATIENCE).raise_for_status()
        requests.get(f"{self.url}/internal/force_flush", timeout=PATIENCE).raise_for_status()

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        wait_until(self._answers, what=f"VictoriaMetrics, whose log is {self._log},")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self._process)

    def _answers(self) -> bool:
        assert self._process.poll() is None, self._log.read_text(encoding="utf-8")[-2000:]
        try:
            return requests.get(f"{self.url}/health", timeout=10).ok
        except requests.RequestException:
            return False

"""A real VictoriaMetrics of one node, filled by its import of the exposition format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import requests

from tests.support.ports import free_ports
from tests.support.stores import StoreProcess
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.support.prometheus import Span


class VictoriaMetrics(StoreProcess):
    """Runs while its block lasts, on loopback."""

    def __init__(self, binary: str, data: Path) -> None:
        (port,) = free_ports(1)
        command = [
            binary,
            f"-httpListenAddr=127.0.0.1:{port}",
            f"-storageDataPath={data}",
            "-retentionPeriod=100y",
            "-memory.allowedBytes=256MB",
        ]
        super().__init__(command, f"http://127.0.0.1:{port}", "/health", data.parent / f"{data.name}.log")

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

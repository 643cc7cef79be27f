"""A scheduler and workers as real processes on loopback with mutual TLS, which a story may stop and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import trustme
import yaml
from distributed import Client

from forecaster.app.sharding.dask import security_of
from forecaster.config.sharding import ShardingSettings
from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ("-m", "forecaster")
ANOTHER_VERSION = (
    "-c",
    "import forecaster; forecaster.__version__ = '0.0.1'; from forecaster.__main__ import main; main()",
)
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}


@dataclass
class ShardProcesses:
    """One scheduler, which may be started again at the same address, and its workers."""

    sharding: dict[str, Any]
    """The section of the settings."""
    config: Path
    log: Path
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_scheduler(self) -> None:
        self.scheduler = self._started("scheduler", *PROGRAM)

    def start_workers(self, count: int, *program: str) -> None:
        self.workers += [self._started("worker", *program or PROGRAM) for _ in range(count)]

    def wait_for_workers(self, count: int) -> None:
        """Wait until the scheduler knows `count` workers."""
        settings = ShardingSettings.model_validate(self.sharding)
        security = security_of(settings)
        with Client(settings.scheduler, timeout=PATIENCE, security=security, set_as_default=False) as client:
            wait_until(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == count, goal=f"{count} workers")

    def kill_scheduler(self) -> None:
        assert self.scheduler is not None
        _ended(self.scheduler)

    def kill_worker(self) -> None:
        _ended(self.workers.pop(0))

    def end(self) -> None:
        for process in (*self.workers, *([self.scheduler] if self.scheduler else [])):
            _ended(process)
        self.workers.clear()

    def _started(self, role: str, *program: str) -> subprocess.Popen[bytes]:
        (port,) = free_ports(1)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = ("shards", role, "--config", str(self.config), "--health", f"127.0.0.1:{port}")
        with self.log.open("ab") as log:
            started = subprocess.Popen([sys.executable, *program, *command], env=environment, stderr=log, **QUIET)
        self.healths[started.pid] = f"http://127.0.0.1:{port}/health"
        return started

    healths: dict[int, str] = field(default_factory=dict)
    """Address at which each process reports its health."""

    def healthy(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether a probe would find the process healthy."""
        try:
            return httpx.get(self.healths[process.pid], timeout=PATIENCE).is_success
        except httpx.TransportError:
            return False


@contextmanager
def shard_processes(directory: Path, workers: int) -> Iterator[ShardProcesses]:
    """Start `workers` workers that are all known to the scheduler."""
    (port,) = free_ports(1)
    sharding = {"enabled": True, "scheduler": f"tls://127.0.0.1:{port}", **certificate_files(directory)}
    config = directory / "settings.yaml"
    config.write_text(yaml.safe_dump({"sharding": sharding}), encoding="utf-8")
    cluster = ShardProcesses(sharding, config, directory / "log")
    try:
        cluster.start_scheduler()
        cluster.start_workers(workers)
        cluster.wait_for_workers(workers)
        yield cluster
    finally:
        cluster.end()


def certificate_files(directory: Path) -> dict[str, str]:
    """Certificate files of a new authority."""
    directory.mkdir(exist_ok=True)
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    files = {name: directory / f"{name}.pem" for name in ("ca_file", "certificate_file", "key_file")}
    authority.cert_pem.write_to_path(files["ca_file"])
    certificate.cert_chain_pems[0].write_to_path(files["certificate_file"])
    certificate.private_key_pem.write_to_path(files["key_file"])
    return {name: str(file) for name, file in files.items()}


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait()

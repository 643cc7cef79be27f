"""The real Prometheus for integration tests: where its binaries are, how its blocks are filled, how it runs."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE, end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType

    from numpy.typing import NDArray

BLOCK = timedelta(hours=2)
"""Blocks are cut at even hours; promtool reads its whole input once for each of them, so one file per block."""


@dataclass(frozen=True)
class Binaries:
    prometheus: Path
    promtool: Path

    @property
    def version(self) -> str:
        shown = subprocess.run([self.prometheus, "--version"], capture_output=True, text=True, check=True)
        return (shown.stdout or shown.stderr).split()[2]


def find_binaries() -> Binaries | None:
    """Find the programs in the folder PROMETHEUS_BIN, where `.ci/prometheus` puts them, or on PATH."""
    cache = Path(os.environ.get("FORECASTER_CACHE") or Path.home() / ".cache" / "forecaster") / "bin"
    stated = os.environ.get("PROMETHEUS_BIN")
    for folder in (stated, cache, None):
        path = str(folder) if folder else None
        programs = shutil.which("prometheus", path=path), shutil.which("promtool", path=path)
        if programs[0] and programs[1]:
            return Binaries(Path(programs[0]), Path(programs[1]))
    return None


@dataclass(frozen=True, eq=False)
class Span:
    """Samples of one series at consecutive scrapes, the first at `times[0]`. `head` is the name with its labels."""

    head: str
    times: NDArray[np.float64]
    values: NDArray[np.float64]


def head(name: str, labels: Mapping[str, str]) -> str:
    """A series' name and labels in the exposition format."""
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    inner = ",".join(f'{label}="{value.translate(escapes)}"' for label, value in labels.items())
    return f"{name}{{{inner}}}"


def fill(data: Path, spans: Iterable[Span], binaries: Binaries) -> None:
    """Write blocks that hold these samples into the data folder of a Prometheus that is not running."""
    data.mkdir(parents=True, exist_ok=True)
    inputs = data.parent / f"{data.name}-openmetrics"
    inputs.mkdir()
    files = _write_inputs(inputs, spans)
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(lambda file: _create_block(binaries, file, data), files))
    shutil.rmtree(inputs)


def _write_inputs(folder: Path, spans: Iterable[Span]) -> list[Path]:
    texts: dict[int, list[str]] = {}
    for span in spans:
        for block, first, last in _blocks(span.times):
            lines = zip(span.values[first:last].tolist(), span.times[first:last].tolist(), strict=True)
            texts.setdefault(block, []).append("".join(f"{span.head} {value:.12g} {at:.3f}\n" for value, at in lines))
    for block, parts in texts.items():
        (folder / f"{block}.txt").write_text("".join(parts) + "# EOF\n", encoding="utf-8")
    return sorted(folder.glob("*.txt"))


def _blocks(times: NDArray[np.float64]) -> Iterator[tuple[int, int, int]]:
    """Number of each block and the part of `times` that lies in it."""
    numbers = (times // BLOCK.total_seconds()).astype(int)
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(times)]
    for first, last in pairwise(edges):
        if last > first:
            yield int(numbers[first]), first, last


def _create_block(binaries: Binaries, file: Path, data: Path) -> None:
    command = [binaries.promtool, "tsdb", "create-blocks-from", "openmetrics", file, data]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"promtool refused {file.name}: {done.stderr[-2000:]}")


class RealPrometheus:
    """A Prometheus on loopback that can be stopped and started again; it scrapes what `config` says."""

    def __init__(
        self, binaries: Binaries, data: Path, *, options: Iterable[str] = (), config: str = "global: {}\n"
    ) -> None:
        self._binaries = binaries
        self._data = data
        self._config = config
        self._options = tuple(options)
        (self._port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        assert self._process, "it does not run"
        return self._process.pid

    def start(self) -> None:
        """Start it at the same address as before and wait until it answers."""
        config = self._data.parent / f"{self._data.name}.yaml"
        config.write_text(self._config, encoding="utf-8")
        log = (self._data.parent / f"{self._data.name}.log").open("ab")
        with log:
            self._process = subprocess.Popen(self._command(config), stdout=log, stderr=log)
        self._wait_until_ready(Path(log.name))

    def stop(self) -> None:
        if self._process:
            end(self._process)
            self._process = None

    def _command(self, config: Path) -> list[str | Path]:
        return [
            self._binaries.prometheus,
            f"--config.file={config}",
            f"--storage.tsdb.path={self._data}",
            f"--web.listen-address=127.0.0.1:{self._port}",
            "--storage.tsdb.retention.time=3650d",
            # As long as each other: nothing is compacted while tests run.
            "--storage.tsdb.min-block-duration=2h",
            "--storage.tsdb.max-block-duration=2h",
            "--log.level=warn",
            *self._options,
        ]

    def _wait_until_ready(self, log: Path) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            if self._answers():
                return
            time.sleep(0.05)
        raise AssertionError(f"Prometheus is not ready: {log.read_text(encoding='utf-8')[-2000:]}")

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request("GET", "/-/ready")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

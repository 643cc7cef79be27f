"""Read the past of a fleet from a real Prometheus, as the first cycle does, and what each query costs the server.

    nice python -m benchmarks.backfill --dir DIRECTORY --workloads 10000 --days 7

Peak samples count against `--query.max-samples` (50 million by default); they are from the query log of the server.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.fill import binaries_or_exit, filled
from benchmarks.fleet import NOON, Fleet
from benchmarks.procfs import cpu_seconds, peak_mib
from forecaster.domain.signal import CPU, MEMORY, REQUESTS, Signal
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.prometheus import RealPrometheus

FIVE_MINUTES = timedelta(minutes=5)


class Read(NamedTuple):
    """One signal's past: what came, and seconds of CPU here, at the server, and of wall."""

    signal: Signal
    samples: int
    slices: int
    cpu: float
    server_cpu: float
    wall: float


def read(source: PrometheusSource, signal: Signal, days: int, server: int) -> Read:
    """All five-minute points of the days before NOON."""
    cpu, server_cpu, began = time.process_time(), cpu_seconds(server), time.perf_counter()
    sizes = [block.values.size for block in source.history(signal, NOON - timedelta(days=days), NOON, FIVE_MINUTES)]
    wall = time.perf_counter() - began
    return Read(signal, sum(sizes), len(sizes), time.process_time() - cpu, cpu_seconds(server) - server_cpu, wall)


def peaks(log: Path) -> list[int]:
    """Peak samples of every query in the server's log."""
    entries = (json.loads(line) for line in log.read_text(encoding="utf-8").splitlines())
    return [entry["stats"]["samples"]["peakSamples"] for entry in entries]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True, help="where the blocks are kept")
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=7)
    given = parser.parse_args()
    binaries = binaries_or_exit()
    data = filled(given.dir, Fleet(given.workloads), binaries)
    log = given.dir / "queries.log"
    log.unlink(missing_ok=True)
    server = RealPrometheus(binaries, data, config=f"global: {{query_log_file: {log}}}\n")
    with server, closing(PrometheusSource(PrometheusSettings(url=server.url), Queries(preset="recorded"))) as source:
        for signal in (CPU, MEMORY, REQUESTS):
            result = read(source, signal, given.days, server.pid)
            print(
                f"{result.signal}: {result.samples / 1e6:.1f} million samples in {result.slices} slices, "
                f"cpu {result.cpu:.1f} server cpu {result.server_cpu:.1f} wall {result.wall:.1f}",
                flush=True,
            )
        print(f"peak MiB here {peak_mib():.0f}, server {peak_mib(server.pid):.0f}")
    costs = peaks(log)
    print(f"{len(costs)} queries, most peak samples of one: {max(costs) / 1e6:.2f} million")


if __name__ == "__main__":
    main()

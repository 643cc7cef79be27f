"""The first history of containers from a real Prometheus: 10,000 workloads x 2 containers, eight days by five minutes.

    nice python -m benchmarks.containers --dir DIRECTORY --workloads 10000

Blocks are kept in the directory; the same fleet is filled once. Series are one a container, as a recording rule would
leave them: Prometheus then does the least work possible, and the rest of the ratio is ours. The same requests are
then sent once more, and their answers thrown away. Limits: 1.5 times Prometheus' own time, 600 MiB above the points.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.cycle import Overheard
from benchmarks.fill import Family, binaries_or_exit, fill_blocks
from benchmarks.fleet import NOON, Fleet
from benchmarks.procfs import peak_mib, rss_mib
from forecaster.config.settings import Settings, parse
from forecaster.cycle.containers import CONTAINER_HISTORY, Containers
from forecaster.domain.signal import CPU, MEMORY, Signal
from forecaster.sources.prometheus import PrometheusSource
from tests.support.prometheus import Binaries, RealPrometheus, head

Floats = np.ndarray

FIVE_MINUTES = 300.0
SHARE = {"app": 0.8, "proxy": 0.2}
USAGE = {CPU: "bench:container_cpu_cores", MEMORY: "bench:container_memory_bytes"}


def filled(directory: Path, fleet: Fleet, binaries: Binaries) -> Path:
    """The data folder of a Prometheus that holds the containers; filled now unless it is there."""
    data = directory / f"containers-{fleet.size}"
    done = directory / f"containers-{fleet.size}.filled"
    if not done.exists():
        families = [_usage(fleet, signal, container) for signal in USAGE for container in SHARE]
        fill_blocks(data, families, (NOON - CONTAINER_HISTORY, NOON), binaries)
        done.touch()
    return data


def _usage(fleet: Fleet, signal: Signal, container: str) -> Family:
    pods = np.array([workload.ready_replicas for workload in fleet.workloads], float)[:, None]

    def values(seconds: Floats) -> Floats:
        usage = SHARE[container] * fleet.demand(signal, seconds) / pods
        return np.rint(usage) if signal == MEMORY else usage

    heads = [
        head(
            USAGE[signal],
            {"namespace": id_.namespace, "workload_kind": id_.kind, "workload": id_.name, "container": container},
        )
        for id_ in fleet.ids
    ]
    return Family(heads, values, NOON - CONTAINER_HISTORY, NOON, FIVE_MINUTES)


def settings_of(url: str) -> Settings:
    """The defaults, with usage from series of one container each."""
    queries = {f"container_{signal}": f'{name}{{namespace=~"$namespaces"}}' for signal, name in USAGE.items()}
    return parse({"prometheus": {"url": url}, "queries": queries}, "benchmark")


def _clocks(overheard: Overheard) -> tuple[float, float, float]:
    """Wall, own CPU, Prometheus' CPU in seconds."""
    return time.perf_counter(), time.process_time(), overheard.cpu()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True, help="where the blocks are kept")
    parser.add_argument("--workloads", type=int, default=10_000)
    given = parser.parse_args()
    binaries = binaries_or_exit()
    with RealPrometheus(binaries, filled(given.dir, Fleet(given.workloads), binaries)) as server:
        measure(server.url, binaries.version)


def measure(url: str, version: str) -> None:
    settings, containers = settings_of(url), Containers()
    source = PrometheusSource(settings.prometheus, settings.queries)
    overheard = Overheard(source.client)
    before, clocks = rss_mib(), [_clocks(overheard)]
    failures = containers.catch_up(source, NOON)
    clocks.append(_clocks(overheard))
    if failures:
        raise SystemExit(failures[0])
    peak, rings = peak_mib(), sum(values.nbytes for values in containers.values.values()) / 2**20
    requests = len(overheard.questions)
    overheard.repeat()
    clocks.append(_clocks(overheard))
    (wall, cpu, server), (alone, _, alone_cpu) = (
        tuple(after - before for before, after in zip(*pair, strict=True)) for pair in pairwise(clocks)
    )
    print(f"Prometheus {version}: {len(containers.rows)} containers in {requests} requests")
    print(f"wall {wall:.1f} s, own CPU {cpu:.1f} s, its CPU {server:.1f} s")
    print(f"Prometheus alone: wall {alone:.1f} s, CPU {alone_cpu:.1f} s; {wall / alone:.2f} x the wall")
    print(f"{(cpu + server) / alone_cpu:.2f} x the CPU of both together")
    print(f"kept points {rings:.0f} MiB, before {before:.0f} MiB, peak {peak:.0f} MiB: {peak - rings:.0f} above them")


if __name__ == "__main__":
    main()

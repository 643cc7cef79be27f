"""Fill a real Prometheus with a week of the fleet, as the rules of deploy/rules would have recorded it.

    nice python -m benchmarks.fill --dir DIRECTORY --workloads 10000

Blocks are kept in the directory; the same fleet is filled once. `promtool` comes from the folder PROMETHEUS_BIN or from
PATH. A week by five minutes, the last hours by minutes, an hour more for the cycles to come: 10,000 workloads are 100
million samples.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from benchmarks.fleet import NOON, Fleet
from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS, Signal
from tests.support.prometheus import BLOCK, Binaries, find_binaries, head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from forecaster.domain.workload import Workload

    Floats = NDArray[np.float64]

FIVE_MINUTES, MINUTE = 300.0, 60.0
HISTORY, FRESH, STATE = timedelta(days=7), timedelta(hours=3, minutes=15), timedelta(minutes=15)
"""Lengths before NOON: of five-minute points, of one-minute points, and of the inventory's samples."""
AHEAD = timedelta(hours=1)
_STATE_METRICS = {"job": "kube-state-metrics", "instance": "10.0.0.7:8080"}


@dataclass(frozen=True)
class Family:
    """All series of one metric: their heads, and their values [series, instant] at instants."""

    heads: list[str]
    values: Callable[[Floats], Floats]
    since: datetime
    until: datetime
    step: float

    def instants(self, begin: float, end: float) -> Floats:
        """Its own instants within [begin, end)."""
        seconds = np.arange(begin, end, self.step)
        return seconds[(seconds >= self.since.timestamp()) & (seconds < self.until.timestamp())]


def filled(directory: Path, fleet: Fleet, binaries: Binaries) -> Path:
    """The data folder of a Prometheus that holds the fleet; filled now unless it is there."""
    data = directory / f"fleet-{fleet.size}"
    done = directory / f"fleet-{fleet.size}.filled"
    if not done.exists():
        fill_blocks(data, list(families(fleet)), (NOON - HISTORY, NOON + AHEAD), binaries)
        done.touch()
    return data


def families(fleet: Fleet) -> Iterator[Family]:
    """Series of the recording rules and of kube-state-metrics about the fleet."""
    week, fresh, end = NOON - HISTORY, NOON - FRESH, NOON + AHEAD
    for signal, name in ((CPU, "workload_cpu_cores"), (REQUESTS, "workload_requests")):
        yield _demand(fleet, signal, f"{name}:rate5m", week, end, FIVE_MINUTES)
        yield _demand(fleet, signal, f"{name}:rate2m", fresh, end, MINUTE)
    for signal, name in ((MEMORY, "workload_memory_bytes:sum"), (PODS, "workload_replicas:ready")):
        yield _demand(fleet, signal, name, week, fresh, FIVE_MINUTES)
        yield _demand(fleet, signal, name, fresh, end, MINUTE)
    yield from _state(fleet)


def _demand(fleet: Fleet, signal: Signal, name: str, since: datetime, until: datetime, step: float) -> Family:
    def values(seconds: Floats) -> Floats:
        demand = fleet.demand(signal, seconds)
        return np.rint(demand) if signal == MEMORY else demand

    return Family(
        [head(f"forecaster:{name}", _names(workload)) for workload in fleet.workloads], values, since, until, step
    )


def _state(fleet: Fleet) -> Iterator[Family]:
    scaled = [(workload, workload.autoscaler) for workload in fleet.workloads if workload.autoscaler]
    hpas = [
        _STATE_METRICS | {"namespace": workload.id.namespace, "horizontalpodautoscaler": h.name}
        for workload, h in scaled
    ]
    refs = [
        {"scaletargetref_kind": workload.id.kind, "scaletargetref_name": workload.id.name} for workload, _ in scaled
    ]
    prefix = "kube_horizontalpodautoscaler"
    yield _constant(
        "forecaster:workload_replicas:spec", [(_names(workload), workload.replicas) for workload in fleet.workloads]
    )
    for bound in ("request", "limit"):
        for resource in ("cpu", "memory"):
            yield _constant(
                f"forecaster:workload_pod_{bound}s:avg",
                [
                    (_names(workload) | {"resource": resource}, getattr(workload.resources, f"{resource}_{bound}"))
                    for workload in fleet.workloads
                ],
            )
    yield _constant(f"{prefix}_info", [(labels | ref, 1) for labels, ref in zip(hpas, refs, strict=True)])
    yield _constant(
        f"{prefix}_spec_min_replicas", [(s, h.min_replicas) for s, (_, h) in zip(hpas, scaled, strict=True)]
    )
    yield _constant(
        f"{prefix}_spec_max_replicas", [(s, h.max_replicas) for s, (_, h) in zip(hpas, scaled, strict=True)]
    )
    for metric, percent in (("cpu", 70), ("memory", 80)):
        target = {"metric_name": metric, "metric_target_type": "utilization"}
        yield _constant(f"{prefix}_spec_target_metric", [(labels | target, percent) for labels in hpas])


def _constant(name: str, series: list[tuple[dict[str, str], float]]) -> Family:
    amounts = np.array([amount for _, amount in series], np.float64)[:, None]
    return Family(
        [head(name, labels) for labels, _ in series],
        lambda seconds: np.broadcast_to(amounts, (len(amounts), len(seconds))),
        NOON - STATE,
        NOON + AHEAD,
        MINUTE,
    )


def _names(workload: Workload) -> dict[str, str]:
    return {"namespace": workload.id.namespace, "workload_kind": workload.id.kind, "workload": workload.id.name}


def fill_blocks(data: Path, every: list[Family], span: tuple[datetime, datetime], binaries: Binaries) -> None:
    """One input file for each block: promtool reads its whole input once for each block that it makes."""
    data.mkdir(parents=True)
    first, last = (edge.timestamp() for edge in span)
    length = BLOCK.total_seconds()
    making: Future[None] | None = None
    with ThreadPoolExecutor(max_workers=1) as promtool:
        for begin in np.arange(first // length * length, last, length).tolist():
            file = data.parent / f"{data.name}-{begin:.0f}.txt"
            with file.open("w", encoding="utf-8") as text:
                _write(text, every, begin, min(begin + length, last))
            if making:
                making.result()
            making = promtool.submit(_create_block, binaries, file, data)
        if making:
            making.result()


def _write(text: TextIO, every: list[Family], begin: float, end: float) -> None:
    for family in every:
        seconds = family.instants(begin, end)
        if not len(seconds):
            continue
        endings = [f" {second:.0f}\n" for second in seconds.tolist()]
        for name, row in zip(family.heads, family.values(seconds).tolist(), strict=True):
            start = name + " "
            text.write("".join([start + repr(value) + ending for value, ending in zip(row, endings, strict=True)]))
    text.write("# EOF\n")


def _create_block(binaries: Binaries, file: Path, data: Path) -> None:
    command = [binaries.promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", file, data]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"promtool refused {file}: {done.stderr[-2000:]}")
    file.unlink()


def binaries_or_exit() -> Binaries:
    binaries = find_binaries()
    if binaries is None:
        raise SystemExit("prometheus and promtool are not found; name their folder in PROMETHEUS_BIN")
    return binaries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--workloads", type=int, default=10_000)
    given = parser.parse_args()
    began = time.perf_counter()
    data = filled(given.dir, Fleet(given.workloads), binaries_or_exit())
    print(f"{data}: {sum(f.stat().st_size for f in data.rglob('*') if f.is_file()) / 2**20:.0f} MiB", end=" ")
    print(f"in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

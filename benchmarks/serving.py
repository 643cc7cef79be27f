"""The serving process at full size: `python -m benchmarks.serving [--workloads N] [--seconds S]`.

Start time (until the first answer), memory while the table is replaced every second and read all the while, and how
long publishing takes the computing process. Prints one line per figure. `benchmarks.serving_load` has the metrics API
under load.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import numpy as np
from threadpoolctl import threadpool_limits

import models
from benchmarks.procfs import cpu_seconds, peak_mib, rss_mib
from forecaster.app.child import ServingProcess
from forecaster.domain.decision import Clamp, Reason, Recommendation, Resize, Scale, SignalView
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, PeakForecast, StepForecast
from forecaster.domain.workload import Resources, WorkloadId
from forecaster.forecasting.peaks import PATH_LEVELS, STEPS
from forecaster.forecasting.shards import ROWS
from forecaster.publish.table_file import TableFile
from forecaster.serving.options import Address
from tests.support.decided_records import RecordPublisher, record_publisher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from forecaster.domain.signal import Signal

STARTS = 5
GIB = 2.0**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    rows = [recommendation(i) for i in range(options.workloads)]
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory) / "table"
        publisher = publisher_of(table)
        measure_publishing(publisher, table, rows)
        measure_paths(table.with_name("with-paths"), rows)
        starts = [measure_start(table) for _ in range(STARTS)]
        walls, owns = zip(*starts, strict=True)
        print(
            f"start to first answer: median {statistics.median(walls):.2f} s, worst {max(walls):.2f} s,"
            f" {statistics.median(owns):.2f} s own CPU"
        )
        measure_reloading(publisher, table, rows, options.seconds)


def publisher_of(
    table: Path, paths: Mapping[WorkloadId, Mapping[Signal, StepForecast]] | None = None
) -> RecordPublisher:
    file = TableFile(table, interval=timedelta(minutes=1), version="0", paths=lambda: paths or {})
    return record_publisher(file, Policies(Policy()))


def measure_publishing(publisher: RecordPublisher, table: Path, rows: list[Recommendation]) -> None:
    wall, own = time.perf_counter(), time.process_time()
    publisher.publish(datetime.now(UTC), rows)
    wall, own = time.perf_counter() - wall, time.process_time() - own
    size = table.stat().st_size / 2**20
    print(f"publishing {len(rows)} workloads x 3 signals: {own:.3f} s own CPU, {wall:.3f} s wall, {size:.1f} MiB")


def measure_paths(table: Path, rows: list[Recommendation]) -> None:
    """Publish one signal step by step, a tenth of the workloads anew, as after any cycle; time the paths, too."""
    paths = {row.id: {CPU: path()} for row in rows}
    publisher = publisher_of(table, paths)
    publisher.publish(datetime.now(UTC), rows)
    for row in rows[::10]:
        paths[row.id] = {CPU: path()}
    measure_publishing(publisher, table, rows)
    week = np.random.default_rng(1).random((ROWS, 2016))
    panel = models.Panel(week, datetime(2026, 1, 1, tzinfo=UTC), timedelta(minutes=5), tuple(map(str, range(ROWS))))
    with threadpool_limits(1):
        fitted = models.create("adaptive").fit(panel)
        fitted.forecast(STEPS, PATH_LEVELS)
        own = time.process_time()
        fitted.forecast(STEPS, PATH_LEVELS)
        print(f"paths of {ROWS} workloads: {(time.process_time() - own) * 1000:.0f} ms of CPU")


def path() -> StepForecast:
    now, step = datetime.now(UTC), timedelta(minutes=5)
    values = np.sort(np.random.default_rng().random((STEPS, len(PATH_LEVELS))).round(4)).tolist()
    return StepForecast(now, now, step, PATH_LEVELS, tuple(map(tuple, values)), "adaptive")


def measure_start(table: Path) -> tuple[float, float]:
    begin = time.perf_counter()
    with running(table) as serving:
        httpx.get(f"http://{serving.address}/readyz", timeout=20).raise_for_status()
        return time.perf_counter() - begin, cpu_seconds(serving.pid or 0)


def measure_reloading(publisher: RecordPublisher, table: Path, rows: list[Recommendation], seconds: int) -> None:
    waits = []
    with running(table) as serving, httpx.Client(base_url=f"http://{serving.address}") as client:
        client.get("/readyz").raise_for_status()
        pid = serving.pid
        if pid is None:
            raise RuntimeError("the serving process is not running")
        print(f"RSS with one table: {rss_mib(pid):.0f} MiB")
        for _ in range(seconds):
            publisher.publish(datetime.now(UTC), rows)
            waits += ask_for_a_second(client, rows)
        print(f"RSS after {seconds} tables in {seconds} s: {rss_mib(pid):.0f} MiB, at its peak {peak_mib(pid):.0f} MiB")
    waits.sort()
    at = {share: waits[int(share * len(waits))] * 1000 for share in (0.5, 0.99, 0.999)}
    print(
        f"{len(waits)} answers meanwhile, one connection: "
        + ", ".join(f"p{100 * q:g} {ms:.1f} ms" for q, ms in at.items())
    )


def ask_for_a_second(client: httpx.Client, rows: list[Recommendation]) -> Iterator[float]:
    until = time.perf_counter() + 1.0
    for row in rows:
        begin = time.perf_counter()
        if begin > until:
            return
        client.get(f"/api/v1/recommendations/{row.id.namespace}/{row.id.name}").raise_for_status()
        yield time.perf_counter() - begin


@contextmanager
def running(table: Path) -> Iterator[ServingProcess]:
    serving = ServingProcess(table, Address("127.0.0.1", 0))
    serving.start()
    try:
        yield serving
    finally:
        serving.stop()


def recommendation(i: int) -> Recommendation:
    at = datetime.now(UTC)
    ahead = PeakForecast(
        "ridge", 0.9, 1.75 + i, 1.1 + i, 1.4 + i, 1.9 + i, at + timedelta(minutes=3), at + timedelta(minutes=8)
    )
    return Recommendation(
        id=WorkloadId(f"namespace-{i % 100}", "Deployment", f"workload-{i}"),
        at=at,
        replicas_now=3,
        replicas=Scale(5, Reason.FORECAST, "cpu: peak of 2.1 cores at 12:07 by ridge asks for 5"),
        resources_now=Resources(0.25, None, GIB, GIB),
        resources=Resize(Resources(0.3, None, GIB, GIB), Reason.SIZED, "95 % of what one pod used in a day"),
        signals=tuple(
            SignalView(signal, "70 % of 0.5 cores a pod", 1.2345678 * i, at, 4, ahead, 5, "")
            for signal in ("cpu", "memory", "requests")
        ),
        clamps=(Clamp("max replicas", 7, 5, "within 2..5 of the HPA"),),
        autoscaler=f"workload-{i}",
    )


if __name__ == "__main__":
    main()

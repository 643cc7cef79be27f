"""History and ledger at full size: `python -m benchmarks.store [--workloads N] [--days N]`.

Fills the rings as a back-fill does (slices of six hours), then times the writes of a cycle, the snapshot both ways,
and the ledger when few, and when all, decisions change. Prints one line per figure.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.procfs import peak_mib, rss_mib
from forecaster.domain.decision import Reason, Recommendation, Resize, Scale
from forecaster.domain.report import ForecastScore
from forecaster.domain.signal import CPU, DEMAND, Signal
from forecaster.domain.window import Block
from forecaster.domain.workload import Resources, WorkloadId
from forecaster.store.history import FIVE_MINUTES, MINUTE, HistorySettings, HistoryStore
from forecaster.store.ledger import SqlLedger
from forecaster.store.snapshot import Snapshots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.window import Gap

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SLICE = timedelta(hours=6)
SHARES = {"first cycle": 1, "settled": 10**9, "5 % change": 20, "all change": 1}
"""One of so many decisions is another one than before."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--database", default="", help="address of the ledger; default: a SQLite file")
    options = parser.parse_args()
    ids = tuple(WorkloadId(f"namespace-{i % 100}", "Deployment", f"workload-{i}") for i in range(options.workloads))
    with tempfile.TemporaryDirectory() as directory:
        measure_rings(ids, timedelta(days=options.days), Path(directory))
        measure_ledger(ids, options.database or f"sqlite:///{directory}/ledger.sqlite")


@contextmanager
def timed(step: str) -> Iterator[None]:
    wall, own = time.perf_counter(), time.process_time()
    yield
    print(f"{step:<58} {time.process_time() - own:8.3f} s own CPU {time.perf_counter() - wall:8.3f} s wall")


def measure_rings(ids: tuple[WorkloadId, ...], keep: timedelta, directory: Path) -> None:
    settings = HistorySettings(weeks_kept=keep)
    history = HistoryStore(DEMAND, settings, now=NOON)
    before = rss_mib()
    with timed("back-fill, slices of six hours, generation included"):
        for gap in history.gaps(NOON):
            for block in slices(gap, ids):
                history.write(block)
    points = sum(ring.window().values.size for pair in history.rings.values() for ring in (pair.minutes, pair.weeks))
    grown, peak = rss_mib() - before, peak_mib() - before
    print(f"rings hold {points * 4 / 2**20:.0f} MiB; RSS grew by {grown:.0f}, at its peak {peak:.0f}")
    measure_cycles(history, ids)
    measure_snapshot(history, settings, directory)


def slices(gap: Gap, ids: tuple[WorkloadId, ...]) -> Iterator[Block]:
    start, random = gap.start, np.random.default_rng(0)
    while start <= gap.end:
        columns = (min(gap.end - start, SLICE - gap.step) // gap.step) + 1
        yield Block(gap.signal, ids, start, gap.step, random.random((len(ids), columns)))
        start += columns * gap.step


def measure_cycles(history: HistoryStore, ids: tuple[WorkloadId, ...]) -> None:
    slowest = 0.0
    with timed("five cycles: gaps, three columns, one five-minute point"):
        for minute in range(1, 6):
            begin = time.perf_counter()
            for gap in history.gaps(NOON + minute * MINUTE):
                history.write(Block(gap.signal, ids, gap.start, gap.step, np.ones((len(ids), gap.columns))))
            slowest = max(slowest, time.perf_counter() - begin)
    print(f"slowest of the five {slowest:.3f} s")
    weeks = history.rings[CPU].weeks
    later = weeks.latest
    with timed("moving all five-minute columns to the front, three signals"):
        for signal in DEMAND:
            ring = history.rings[signal].weeks
            ring.advance(later + (ring.columns // 16 + 1) * FIVE_MINUTES)
    with timed("windows of three signals, both resolutions"):
        for signal in DEMAND:
            history.window(signal, MINUTE)
            history.window(signal, FIVE_MINUTES)


def measure_snapshot(history: HistoryStore, settings: HistorySettings, directory: Path) -> None:
    path, before = directory / "history", peak_mib()
    with timed("snapshot saved"):
        Snapshots(path, history).save()
    print(f"snapshot {path.stat().st_size / 2**20:.0f} MiB; peak grew by {peak_mib() - before:.0f}")
    now = max(ring.latest for pair in history.rings.values() for ring in (pair.minutes, pair.weeks))
    with timed("snapshot read"):
        Snapshots(path, HistoryStore(DEMAND, settings, now=now)).load()


def measure_ledger(ids: tuple[WorkloadId, ...], address: str) -> None:
    with closing(SqlLedger(address, keep=timedelta(days=30))) as ledger:
        for minute, (title, every) in enumerate(
            {"first cycle": 1, "settled": 10**9, "5 % change": 20, "all change": 1}.items()
        ):
            at = NOON + minute * MINUTE
            rows = [recommendation(id_, at, 3 + minute * (i % every == 0)) for i, id_ in enumerate(ids)]
            with timed(f"ledger, {len(ids)} decisions, {title}"):
                ledger.record(at, rows)
        scores = [score(id_, signal) for id_ in ids[::10] for signal in DEMAND]
        with timed(f"ledger, {len(scores)} scores"):
            ledger.score(scores)
        with timed("ledger, decisions of one workload"):
            ledger.changes_of(ids[:1], NOON)


def recommendation(workload: WorkloadId, at: datetime, replicas: int) -> Recommendation:
    return Recommendation(
        id=workload,
        at=at,
        replicas_now=3,
        replicas=Scale(replicas, Reason.FORECAST, "cpu: peak of 2.1 cores at 12:07 by ridge"),
        resources_now=Resources(),
        resources=Resize(Resources(0.25, None, 2.0**30, 2.0**30), Reason.SIZED, "95 % of what one pod used in a day"),
    )


def score(workload: WorkloadId, signal: Signal) -> ForecastScore:
    return ForecastScore(workload, signal, NOON, NOON, "ridge", 0.9, median=2.0, upper=3.0, actual=2.5)


if __name__ == "__main__":
    main()

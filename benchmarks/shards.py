"""What a shard costs: the worker that computes it, and the service that takes its answer into table and ledger.

    python -m benchmarks.shards [--workloads 1500] [--cycles 6]

All in one process, one shard, on a fleet that is computed; what goes over the network is pickled and unpickled as Dask
does it. CPU microseconds and bytes, a workload and cycle; the last cycles are the steady ones. Gates are off: their
replays take turns for hours.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.fleet import NOON, Fleet, FleetSource
from forecaster.app.sharding import dask, shard
from forecaster.app.sharding.parts import parted, settings_for_workers
from forecaster.config.settings import parse
from forecaster.cycle.run import Effects
from forecaster.cycle.targets import Roster
from forecaster.domain.layers import NOTHING_STATED
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import ContainerFacts
from forecaster.publish.publisher import OfferPublisher
from forecaster.publish.table_file import TableFile
from forecaster.store.ledger import SqlLedger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from benchmarks.fleet import Floats
    from forecaster.app.sharding.shard import ShardTask
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import ContainerBlock, Workload

assert dask.CONFIG, "it says how frozen mappings are pickled"


@dataclass(frozen=True)
class Part(Fleet):
    """Some workloads of a fleet."""

    here: tuple[Workload, ...] = ()

    @property
    def workloads(self) -> tuple[Workload, ...]:  # type: ignore[override]
        return self.here

    def _noise(self, signal: Signal, seconds: Floats) -> Floats:
        """Without a generator for each instant: weeks of it are asked for at the first cycle."""
        row = np.arange(self.size)[:, None]
        return np.asarray(np.sin(seconds[None] * 12.9898 + row * 78.233 + len(signal)) * 1.4)


class PartSource(FleetSource):
    """What a worker asks instead of Prometheus."""

    def follow(self, _: object) -> None:
        """No HPA names a container."""

    def containers(self, _: datetime) -> ContainerFacts:
        return ContainerFacts()

    def container_usage(self, _: Signal, *__: object) -> Iterator[ContainerBlock]:
        return iter(())


def source_of(task: ShardTask) -> Any:
    here = task.inventory.workloads
    return PartSource(Part(len(here), here))


def measured(workloads: int, cycles: int, folder: Path) -> Iterator[dict[str, int]]:
    shard.narrowed_source = source_of
    settings = parse({"policy": {"mode": "publish", "horizontal": {"gate": False}}}, "benchmark")
    sent, running, roster = settings_for_workers(settings), shard.ShardCycles(), Roster()
    source = FleetSource(Fleet(workloads))
    table = TableFile(folder / "table", interval=settings.cycle.interval, version="benchmark")
    ledger = SqlLedger(f"sqlite:///{folder / 'ledger.sqlite'}", keep=settings.state.keep)
    effects = Effects(OfferPublisher(settings.policies, {"table": table}), ledger)
    for minute in range(cycles):
        at, times = NOON + minute * MINUTE, [time.process_time()]
        (part,) = parted(roster.find(source, at), {}, NOTHING_STATED, lambda _: 0, settings.queries.kinds).values()
        task = pickle.dumps(shard.ShardTask(sent, "fleet", 0, part, settings.policy, (), None))
        times.append(time.process_time())
        result = pickle.dumps(running.run(pickle.loads(task)))  # noqa: S301  our own
        times.append(time.process_time())
        came = pickle.loads(result)  # noqa: S301  our own
        times.append(time.process_time())
        effects.publish_and_record(list(came.recommendations), at)
        times.append(time.process_time())
        used = {
            name: round((after - before) / workloads * 1e6)
            for name, before, after in zip(("hand out", "worker", "take in", "publish"), times, times[1:], strict=False)
        }
        learned, published = len(came.learned.observed), (folder / "table").stat().st_size
        sizes = {"task": len(task), "result": len(result), "learned": learned, "table": published}
        yield used | {f"{name} bytes": size // workloads for name, size in sizes.items()}
    ledger.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=1500)
    parser.add_argument("--cycles", type=int, default=6)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for cycle, one in enumerate(measured(given.workloads, given.cycles, Path(folder))):
            print(cycle, one, flush=True)


if __name__ == "__main__":
    main()

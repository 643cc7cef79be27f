"""What a fleet in shards costs the service, whatever the workers, and a worker.

    python -m benchmarks.shards [--sizes 10000 30000 100000]

In one process, a shard of 1,500 workloads is computed by the cycle of a worker; its answers, with its rows repeated
under other names, are those of all shards of a fleet of that size. Table, ledger and what shards have learned are those
of `forecaster run`; what goes over the network is pickled and unpickled as Dask does it.

CPU of the process counts. The service works before the first task is out and after the last answer is in, when no
worker has anything to do, and between, while workers compute. Gates are off: their replays take turns for hours.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.fleet import NOON, Fleet, FleetSource
from benchmarks.procfs import peak_mib, rss_mib
from forecaster.app import telemetry
from forecaster.app.live_facts import ServiceFacts
from forecaster.app.serve import build_service, table_path
from forecaster.app.sharding import shard
from forecaster.app.sharding.texts import ShardTexts
from forecaster.config.settings import parse
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import ContainerFacts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from benchmarks.fleet import Floats
    from forecaster.app.sharding.shard import ShardResult, ShardTask
    from forecaster.config.settings import Settings
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import ContainerBlock, Workload

SHARD = 1500


@dataclass(frozen=True)
class Part(Fleet):
    """Some workloads of a fleet."""

    here: tuple[Workload, ...] = ()

    @property
    def workloads(self) -> tuple[Workload, ...]:  # type: ignore[override]
        return self.here

    def _noise(self, signal: Signal, seconds: Floats) -> Floats:
        """Without a generator for each instant: weeks of it are asked for each shard at its first cycle."""
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


def settings_with(sharding: dict[str, Any], folder: Path) -> Settings:
    return parse(
        {
            "sharding": {"enabled": True, **sharding},
            "state": {"directory": str(folder)},
            "cycle": {"interval": "15m"},
            "policy": {"mode": "publish", "horizontal": {"gate": False}},
            "kubernetes": {"live": "off"},
        },
        "benchmark",
    )


class Phases(NamedTuple):
    """CPU seconds of the service in one cycle."""

    before: float
    """Until the tasks are made."""
    between: float
    """Handing out and taking in, while workers compute."""
    after: float
    """Merging, publishing, recording."""

    @property
    def whole(self) -> float:
        return sum(self)


@dataclass
class Clocked:
    """An executor whose calls part the CPU time of a cycle."""

    executor: Any
    times: list[float] = field(default_factory=list)

    @property
    def processes(self) -> int:
        return int(self.executor.processes)

    def run(self, tasks: Sequence[ShardTask], seconds: float) -> Iterator[Any]:
        self.times.append(time.process_time())
        yield from self.executor.run(tasks, seconds)
        self.times.append(time.process_time())

    def close(self) -> None:
        self.executor.close()

    def cycle(self, cycle: Any, at: datetime, workloads: int) -> Phases:
        self.times = [time.process_time()]
        outcome = cycle.run(at)
        self.times.append(time.process_time())
        assert len(outcome.recommendations) == workloads, "nothing is measured that was not done"
        assert not outcome.report.failures, outcome.report.failures[:3]
        begin, out, came, end = self.times
        return Phases(out - begin, came - out, end - came)


@dataclass
class Repeated:
    """An executor that computes one shard, and answers for all with its rows; what is not the service's is left out."""

    cycles: shard.ShardCycles = field(default_factory=shard.ShardCycles)
    told: datetime | None = None
    worker: float = 0.0
    """CPU seconds of the shard that was computed."""
    lost: float = 0.0
    """CPU seconds that are no work of the service."""
    bytes_: dict[str, int] = field(default_factory=dict)
    processes = 1

    def run(self, tasks: Sequence[ShardTask], _seconds: float) -> Iterator[Any]:
        began = time.process_time()
        first = tasks[0]
        source, at = Part(SHARD, Fleet(SHARD).workloads), first.inventory.at
        inventory = first.inventory.__class__(at, source.here)
        template = self.cycles.run(first._replace(shard=-1, inventory=inventory, learned=None, told=self.told))
        assert template
        self.told = at
        pickle.dumps(template)
        self.worker = time.process_time() - began
        self.lost, self.bytes_ = self.worker, {"task": 0, "answer": 0, "learned": 0}
        for task in tasks:
            sent = pickle.dumps(task.alone() if task.learned else task)
            began = time.process_time()
            answer = repeated(template, task)
            came = pickle.dumps(answer)
            self.lost += time.process_time() - began
            for name, size in (("task", sent), ("answer", came), ("learned", answer.learned.observed)):
                self.bytes_[name] += len(size)
            yield pickle.loads(came)  # noqa: S301  our own

    def close(self) -> None:
        """Nothing is open."""


def repeated(template: ShardResult, task: ShardTask) -> ShardResult:
    """An answer for another shard with the rows of this one."""
    count = len(task.inventory.workloads)
    rows = np.arange(count) % SHARD
    columns = {name: column[..., rows] for name, column in template.numbers.columns.items()}
    place = {row: number for number, row in enumerate(template.texts.rows)}
    news = [row for row in range(count) if row % SHARD in place]
    texts = ShardTexts(
        news,
        [template.texts.words[place[row % SHARD]] for row in news],
        [template.texts.resources[place[row % SHARD]] for row in news],
    )
    learned = template.learned
    observed = learned.observed * (count // SHARD) or learned.observed[: len(learned.observed) * count // SHARD]
    numbers = template.numbers._replace(columns=columns)
    return template._replace(
        shard=task.shard, numbers=numbers, texts=texts, learned=learned._replace(observed=observed)
    )


def one_process(workloads: int, cycles: int) -> None:
    """The service with so many workloads."""
    shard.narrowed_source = source_of
    with tempfile.TemporaryDirectory() as name, ExitStack() as parts:
        folder = Path(name)
        settings = settings_with({"shards": max(1, workloads // 2000)}, folder)
        facts = ServiceFacts(FleetSource(Fleet(workloads)), None)
        service = build_service(settings, folder, telemetry.logger(), parts, clock=lambda: NOON, facts=facts)
        cycle: Any = service.cycle
        repeats = Repeated()
        cycle.executor = clocked = Clocked(repeats)
        for minute in range(cycles):
            phases = clocked.cycle(cycle, NOON + minute * MINUTE, workloads)
            micro = {one: 1e6 * each / workloads for one, each in phases._asdict().items()}
            micro["between"] -= 1e6 * repeats.lost / workloads
            micro |= {"worker": 1e6 * repeats.worker / SHARD}
            sizes = repeats.bytes_ | {"table": table_path(folder).stat().st_size}
            told = ", ".join(f"{one} {each:.1f}" for one, each in micro.items())
            weighed = ", ".join(f"{one} {each / workloads:,.0f}" for one, each in sizes.items())
            memory = f"{rss_mib():,.0f} MiB, peak {peak_mib():,.0f}"
            print(
                f"{workloads} workloads, cycle {minute}: µs a workload: {told} | bytes: {weighed} | {memory}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 30_000, 100_000])
    parser.add_argument("--cycles", type=int, default=5)
    given = parser.parse_args()
    for size in given.sizes:
        one_process(size, given.cycles)


if __name__ == "__main__":
    main()

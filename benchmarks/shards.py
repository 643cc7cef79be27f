"""Measure the cost of a fleet in shards: of the service alone, and with one, two and four workers.

    python -m benchmarks.shards [--sizes 10000 30000 100000] [--workers 1 2 4] [--workloads 6000] [--write]

`--sizes`, in one process: a shard of 500 workloads is computed by the cycle of a worker; its answers, with its rows
repeated under other names, are those of all shards of a fleet of that size. Table, ledger and what shards have learned
are those of `forecaster run`; messages over the network are pickled and unpickled as Dask does it.

`--workers`, of `--workloads` in `--shards`: the service, a scheduler and workers as processes with mutual TLS. Each
worker computes the demand of its own shards, so that no Prometheus takes the cores.

CPU of processes counts, so that others on the machine and the number of its cores matter little. The service works
before the first task is out and after the last answer is in, when no worker has anything to do, and between, while they
compute. `efficiency` is the CPU of service and worker with one worker over n times the way of n workers: the busiest
one and the service's before and after; `strict` counts between, too, as if nothing overlapped. Gates are off: their
replays take turns for hours.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import yaml
from distributed import Client

from benchmarks.borrowed import lend
from benchmarks.fleet import NOON, Fleet, FleetSource
from benchmarks.procfs import cpu_seconds, rss_mib
from benchmarks.record import record
from forecaster.app import telemetry
from forecaster.app.compose import ServiceFacts
from forecaster.app.serve import build_service, table_path
from forecaster.app.sharding import dask, shard
from forecaster.app.sharding.sizes import ShardSizes
from forecaster.config.settings import load, parse
from forecaster.config.sharding import ShardingSettings
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import ContainerFacts
from tests.support.ports import free_ports
from tests.support.shard_processes import certificate_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from benchmarks.fleet import Floats
    from forecaster.app.sharding.shard import ShardResult, ShardTask
    from forecaster.config.settings import Settings
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import ContainerBlock, Workload

SHARD = 500
WARM = 3
"""Cycles before those that count."""


@dataclass(frozen=True)
class Part(Fleet):
    """Some workloads of a fleet."""

    members: tuple[Workload, ...] = ()

    @property
    def workloads(self) -> tuple[Workload, ...]:  # type: ignore[override]
        return self.members

    def _noise(self, signal: Signal, seconds: Floats) -> Floats:
        """Noise without a generator for each instant: the first cycle of each shard needs weeks of it."""
        row = np.arange(self.size)[:, None]
        return np.asarray(np.sin(seconds[None] * 12.9898 + row * 78.233 + len(signal)) * 1.4)


class PartSource(FleetSource):
    """Source that a worker reads instead of Prometheus."""

    def follow(self, _: object) -> None:
        """Do nothing: no HPA names a container."""

    def containers(self, _: datetime) -> ContainerFacts:
        return ContainerFacts()

    def container_usage(self, _: Signal, *__: object) -> Iterator[ContainerBlock]:
        return iter(())


def source_of(task: ShardTask) -> Any:
    workloads = task.inventory.workloads
    return PartSource(Part(len(workloads), workloads))


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
    """CPU seconds until the tasks are made."""
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
    """An executor that computes one shard, and answers for all with its rows; only the service's own work is timed."""

    cycles: shard.ShardCycles = field(default_factory=shard.ShardCycles)
    last_cycle: datetime | None = None
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
        inventory = first.inventory.__class__(at, source.members)
        template = self.cycles.run(
            first._replace(shard=-1, inventory=inventory, learned=None, sizes_since=self.last_cycle)
        )
        assert template
        self.last_cycle = at
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
        """Do nothing: nothing is open."""


def repeated(template: ShardResult, task: ShardTask) -> ShardResult:
    """An answer for another shard with the rows of this one."""
    count = len(task.inventory.workloads)
    rows = np.arange(count) % SHARD
    place = {row: number for number, row in enumerate(template.sizes.rows)}
    news = [row for row in range(count) if row % SHARD in place]
    # Each row has a size object of its own, as different workloads do: one object for all would need no memory.
    resources = [*map(pickle.dumps, template.sizes.resources)]
    sizes = ShardSizes(news, [pickle.loads(resources[place[row % SHARD]]) for row in news])  # noqa: S301  our own
    learned = template.learned
    observed = learned.observed * (count // SHARD) or learned.observed[: len(learned.observed) * count // SHARD]
    numbers = template.numbers.take(rows)
    return template._replace(
        shard=task.shard, numbers=numbers, sizes=sizes, learned=learned._replace(observed=observed)
    )


def service_of(settings: Settings, folder: Path, workloads: int, parts: ExitStack) -> tuple[Any, Clocked]:
    facts = ServiceFacts(FleetSource(Fleet(workloads)), None)
    cycle: Any = build_service(settings, folder, telemetry.logger(), parts, clock=lambda: NOON, facts=facts).cycle
    cycle.executor = clocked = Clocked(cycle.executor)
    return cycle, clocked


def one_process(workloads: int, cycles: int, repeats: Repeated) -> str:
    """Line of figures of the service with so many workloads; the shard goes on from its present state."""
    shard.narrowed_source = source_of
    begin, repeats.last_cycle = repeats.last_cycle or NOON, None
    with tempfile.TemporaryDirectory() as name, ExitStack() as parts:
        folder = Path(name)
        settings = settings_with({"shards": max(1, workloads // 2000)}, folder)
        cycle, clocked = service_of(settings, folder, workloads, parts)
        clocked.executor, figures = repeats, []
        for minute in range(1, WARM + cycles + 1):
            phases = clocked.cycle(cycle, begin + minute * MINUTE, workloads)
            between = phases.between - repeats.lost
            figures.append([1e6 * seconds / workloads for seconds in (phases.before, between, phases.after)])
            figures[-1] += [sum(figures[-1]), 1e6 * repeats.worker / SHARD]
            print(workloads, minute, [round(figure, 1) for figure in figures[-1]], flush=True)
        micro = [statistics.median(column) for column in zip(*figures[WARM:], strict=True)]
        sizes = (*repeats.bytes_.values(), table_path(folder).stat().st_size)
        weighed = " | ".join(f"{size / workloads:,.0f}" for size in sizes)
        return f"| {workloads:,} | {' | '.join(f'{figure:.1f}' for figure in micro)} | {weighed} | {rss_mib():,.0f} |"


ONE_PROCESS = """| workloads | before | between | after | service | worker | task | answer | learned | table | MiB |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""
"""µs of CPU, and bytes, a workload and cycle; memory with the one shard that is computed beside it."""


@dataclass(frozen=True)
class Cost:
    """CPU seconds of one steady cycle."""

    phases: Phases
    scheduler: float
    workers: tuple[float, ...]


@contextmanager
def processes(folder: Path, workers: int, shards: int) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """The section of the settings, and the processes: the scheduler first."""
    port, *healths = free_ports(workers + 2)
    section = {"enabled": True, "shards": shards, "scheduler": f"tls://127.0.0.1:{port}", **certificate_files(folder)}
    config = folder / "settings.yaml"
    config.write_text(yaml.safe_dump({"sharding": section}), encoding="utf-8")
    scheduler = ["forecaster", "shards", "scheduler", "--config", str(config), "--health", f"127.0.0.1:{healths[0]}"]
    each = [["benchmarks.shards", "--worker", str(config), str(health)] for health in healths[1:]]
    started = [subprocess.Popen([sys.executable, "-m", *arguments]) for arguments in (scheduler, *each)]
    try:
        yield section, [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def work(config: Path, port: str) -> None:
    """The process of a worker; its first models are few, and lent to all its workloads."""
    shard.narrowed_source, new_cycle = source_of, shard.new_cycle

    def lent(task: ShardTask, source: Any) -> Any:
        cycle = new_cycle(task, source)
        lend(cycle.forecaster, 1)
        return cycle

    shard.new_cycle = lent
    dask.work(load(config).sharding, f"127.0.0.1:{port}")


def until_workers(section: dict[str, Any], count: int) -> None:
    """All are there before the first shard is handed out."""
    settings = ShardingSettings.model_validate(section)
    security = dask.security_of(settings)
    with Client(settings.scheduler, timeout=120, security=security, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=120)


def on_processes(workloads: int, shards: int, workers: int, cycles: int) -> tuple[Cost, float]:
    """The median cycle, and MiB of the largest worker."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as parts:
        folder, costs = Path(name), []
        section, pids = parts.enter_context(processes(folder, workers, shards))
        cycle, clocked = service_of(settings_with(section, folder), folder, workloads, parts)
        until_workers(section, workers)
        for minute in range(WARM + cycles):
            before = [*map(cpu_seconds, pids)]
            phases = clocked.cycle(cycle, NOON + minute * MINUTE, workloads)
            scheduler, *each = (
                after - before_it for after, before_it in zip(map(cpu_seconds, pids), before, strict=True)
            )
            costs.append(Cost(phases, scheduler, tuple(each)))
            print(workers, minute, costs[-1], flush=True)
        return median_of(costs[WARM:]), max(map(rss_mib, pids[1:]))


def median_of(costs: list[Cost]) -> Cost:
    phases = (statistics.median(column) for column in zip(*(cost.phases for cost in costs), strict=True))
    each = zip(*(cost.workers for cost in costs), strict=True)
    return Cost(
        Phases(*phases),
        statistics.median(cost.scheduler for cost in costs),
        tuple(statistics.median(seconds) for seconds in each),
    )


def table_of(by_workers: dict[int, tuple[Cost, float]]) -> str:
    """Seconds of CPU a cycle by number of workers."""
    lines = [
        "| workers | before | between | after | scheduler | busiest worker | all workers | efficiency | strict | MiB |",
        "| ---: " * 10 + "|",
    ]
    first = next(iter(by_workers.values()))[0]
    for workers, (cost, memory) in by_workers.items():
        phases, most = cost.phases, max(cost.workers)
        alone = phases.before + phases.after
        ideal = (sum(first.workers) + first.phases.before + first.phases.after) / workers
        strict = (sum(first.workers) + first.phases.whole) / workers / (most + phases.whole)
        numbers = (*phases, cost.scheduler, most, sum(cost.workers), ideal / (most + alone), strict)
        lines.append(f"| {workers} | {' | '.join(f'{number:.2f}' for number in numbers)} | {memory:,.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 30_000, 100_000])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--workloads", type=int, default=8000, help="for the workers")
    parser.add_argument("--shards", type=int, default=8, help="of these")
    parser.add_argument("--cycles", type=int, default=5, help="of the steady state")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--worker", nargs=2, metavar=("CONFIG", "PORT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(Path(given.worker[0]), given.worker[1])
        return
    repeats = Repeated()
    lines = [ONE_PROCESS, *(one_process(size, given.cycles, repeats) for size in given.sizes)]
    by_workers = {count: on_processes(given.workloads, given.shards, count, given.cycles) for count in given.workers}
    if by_workers:
        lines += ["", f"{given.workloads:,} workloads in {given.shards} shards:", "", table_of(by_workers)]
    text = "\n".join(lines)
    print(text)
    if given.write:
        record("shards", "A fleet in shards", "python -m benchmarks.shards", text)


if __name__ == "__main__":
    main()

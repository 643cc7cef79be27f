"""Measure the cost of a cycle: 10,000 workloads with three signals and ready pods, a week by five minutes.

    python -m benchmarks.cycle --source memory
    python -m benchmarks.cycle --source prometheus --dir DIRECTORY

The parts are those of `forecaster run`: rings, model, decisions, SQLite ledger, published table. The source is a fleet
computed in this process, or a real Prometheus over the blocks that benchmarks/fill.py keeps in DIRECTORY. The same
requests of each cycle are then sent once more, and the answers thrown away: Prometheus' own time beside ours.

Cycles go on until every model is fitted and every workload sized; the steady state follows, in which each cycle renews
its share of the models (at 10,000 workloads one of 128 in four cycles of ten). With `--refit` all models fall due at
once after that, and so many cycles are reported in which they are renewed: the longest must stay within the interval.
With `--fitted` only so many models of a signal are fitted at first (benchmarks/borrowed.py). CPU is that of a process
with all its threads; Prometheus reports its own. Steps are reported in CPU seconds, each with its highest memory; at
the end the files that are left are weighed, and the serving process on them. Limits: own CPU of a steady cycle 1.5 s at
10,000 workloads, 5 s at 30,000 and 18 s at 100,000 (`--workloads`), peak 1.0 GiB at 10,000 and 8 GiB at 100,000;
back-fill 1.5 times Prometheus' own time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import requests

from benchmarks.borrowed import fit_again, lend
from benchmarks.fill import binaries_or_exit, filled
from benchmarks.fleet import NOON, Fleet, FleetSource
from benchmarks.procfs import peak_mib, rss_mib
from benchmarks.serving import running
from forecaster.app.compose import build_cycle
from forecaster.config.settings import Settings, parse
from forecaster.cycle import rows as rows_of_fleet
from forecaster.cycle.benefit import LiveBenefit
from forecaster.cycle.gates import JUDGING_INTERVAL, ROUND, SOONEST
from forecaster.cycle.run import Effects
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.horizontal.gate_states import Gates
from forecaster.publish.pictures import PictureFile
from forecaster.publish.publisher import OfferPublisher
from forecaster.publish.table_file import TableFile
from forecaster.sources.prometheus import PrometheusSource
from forecaster.store.history import HistoryStore
from forecaster.store.ledger import SqlLedger
from forecaster.store.snapshot import Snapshots
from tests.support.prometheus import RealPrometheus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.cycle.run import Cycle
    from forecaster.ports import Source
    from forecaster.sources.client import PrometheusClient
    from forecaster.sources.wire import Query, QueryAnswer

MOST_CYCLES = 55
"""The filled hour after NOON holds no more."""
COLUMNS = 100
"""Columns of an answer about the past, whatever the number of workloads."""
UNTIL_OFFERED = ("targets", "observations", "demand", "forecasts", "decisions", "offers")
"""The steps after which all that is decided is published."""


@dataclass(frozen=True)
class Cost:
    """One cycle: seconds of CPU and wall, Prometheus' share when it is queried alone, and MiB."""

    cpu: float
    wall: float
    server_cpu: float
    alone: float
    alone_cpu: float
    rss: float
    peak: float
    waiting: int
    steps: Mapping[str, float] = field(repr=False)
    """CPU seconds."""
    peaks: Mapping[str, float] = field(repr=False)
    """MiB by step."""


@dataclass
class PeakWatch:
    """`StageWatch` that notes how high memory went in each step."""

    peaks: dict[str, float] = field(default_factory=dict)
    stage: str = ""

    def began(self, stage: str, _share: float = 0.0) -> None:
        if self.stage:
            self.peaks[self.stage] = max(peak_mib(), self.peaks.get(self.stage, 0.0))
        self.stage = stage.partition(":")[0]
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the kernel's own mark of the peak

    def interrupted(self, _stage: str) -> bool:
        return False

    def taken(self) -> dict[str, float]:
        """Return the peaks of each step since the last call."""
        self.began("")
        peaks, self.peaks = self.peaks, {}
        return peaks


@dataclass
class Overheard:
    """Every question that a client asks, to ask them again."""

    client: PrometheusClient
    questions: list[Query] = field(default_factory=list)

    def __post_init__(self) -> None:
        ask = self.client.ask

        def overheard(question: Query) -> QueryAnswer:
            self.questions.append(question)
            return ask(question)

        self.client.ask = overheard

    def repeat(self) -> None:
        """Send all questions once more, and throw the answers away."""
        questions, self.questions = self.questions, []
        with requests.Session() as session:
            for question in questions:
                _throw_away(session, self.client.url + question.path, question.form)

    def cpu(self) -> float:
        """CPU seconds that the server has used."""
        text = requests.get(f"{self.client.url}/metrics", timeout=30).text
        return next(
            float(line.split()[1]) for line in text.splitlines() if line.startswith("process_cpu_seconds_total")
        )


def _throw_away(session: requests.Session, url: str, form: Mapping[str, str]) -> None:
    with session.post(url, data=form, headers={"Accept-Encoding": "identity"}, stream=True) as answer:
        answer.raise_for_status()
        for _ in answer.iter_content(1 << 20):
            pass


def build(settings: Settings, source: Source, parts: ExitStack, directory: Path) -> tuple[Cycle, HistoryStore]:
    """Build the cycle and its history in this directory, as `forecaster run` does."""
    history = HistoryStore(settings.signal_table.measured, settings.history, now=NOON)
    table = TableFile(directory / "table", interval=settings.cycle.interval, version="benchmark")
    ledger = SqlLedger(f"sqlite:///{directory / 'ledger.sqlite'}", keep=settings.state.keep)
    parts.callback(ledger.close)
    pictures = PictureFile(
        directory / "pictures",
        interval=settings.cycle.interval,
        version="benchmark",
        signals=settings.signal_table,
        window=history.window,
    )
    benefit = LiveBenefit()
    table.beside["benefit"] = lambda: benefit.texts
    publisher = OfferPublisher(settings.policies, {"table": table, "pictures": pictures, "benefit": benefit})
    cycle = build_cycle(settings, source, history, Effects(publisher, ledger))
    cycle.benefit = benefit
    cycle.seconds, cycle.watch = time.process_time, PeakWatch()
    return cycle, history


def run(cycle: Cycle, steady: int, overheard: Overheard | None, *, hurried: bool = False) -> list[Cost]:
    """The first back-fill, the cycles until all models are fitted and all workloads sized, and so many more.

    Hurried: without the budgets until then, which spread the first fits and sizes of a large fleet over hours. Gates
    are not judged until then, and in the steady state as old as after a day: each has its turn.
    """
    budgets = cycle.budget, cycle.sizes.first, cycle.forecaster.fits
    if hurried:
        cycle.budget, cycle.sizes.first, cycle.forecaster.fits = timedelta(hours=1), sys.maxsize, sys.maxsize
    _judged_before(cycle, NOON, hurried=hurried)
    costs = [_measured(cycle, NOON, overheard)]
    left, aged = steady, False
    while left and len(costs) < MOST_CYCLES:
        now = NOON + len(costs) * MINUTE
        if not costs[-1].waiting:
            cycle.budget, cycle.sizes.first, cycle.forecaster.fits = budgets
            fit_again(cycle.forecaster)
            left -= 1
            aged = aged or _spread_ages(cycle, now)
        else:
            _judged_before(cycle, now, hurried=hurried)
        costs.append(_measured(cycle, now, overheard))
    return costs


def _spread_ages(cycle: Cycle, now: datetime) -> bool:
    """Models as old as after some hours of service, so that each cycle has its share of renewals."""
    shards = [shard for it in cycle.forecaster.signals.values() for shard in it.shards]
    for place, shard in enumerate(shards):
        shard.fitted_at = now - cycle.forecaster.refit_after * (place + 1) / len(shards)
    gates, fleet = cycle.decider.observed.gates, rows_of_fleet.Fleet()
    rows = fleet.rows(list(cycle.decider.observed.fleet.row), now)
    ages = ROUND.total_seconds() * (rows + 1) / len(rows)
    new = Gates.new(len(rows))
    gates.restore(
        fleet, replace(new, judged_at=now.timestamp() - ages, due=now.timestamp() - ages + SOONEST.total_seconds())
    )
    gates.latest = now - JUDGING_INTERVAL + 2 * MINUTE
    return True


def _judged_before(cycle: Cycle, now: datetime, *, hurried: bool) -> None:
    """A round of judging a minute ago keeps the next one away."""
    if hurried:
        cycle.decider.observed.gates.latest = now - MINUTE


def refit(cycle: Cycle, cycles: int, now: datetime) -> dict[str, object]:
    """Cycles from `now` on in which all models are due at once: the longest, and how many renew all of them."""
    forecaster, before = cycle.forecaster, now - 2 * cycle.forecaster.refit_after
    shards = [shard for it in forecaster.signals.values() for shard in it.shards]
    for shard in shards:
        shard.fitted_at = before
    costs = [_measured(cycle, now + place * MINUTE, None) for place in range(cycles)]
    renewed = sum(shard.fitted_at != before for shard in shards)
    decided = [sum(cost.steps[step] for step in UNTIL_OFFERED) for cost in costs]
    return {
        "models": len(shards),
        "renewed": renewed,
        "cycles_for_all": -(-len(shards) * cycles // max(1, renewed)),
        "fits_s": {"median": statistics.median(cost.steps["fits"] for cost in costs)},
        "longest_cpu_s": max(cost.cpu for cost in costs),
        "longest_wall_s": max(cost.wall for cost in costs),
        "longest_until_offered_cpu_s": max(decided),
    }


def _measured(cycle: Cycle, now: datetime, overheard: Overheard | None) -> Cost:
    clocks = [(time.process_time(), time.perf_counter(), overheard.cpu() if overheard else 0.0)]
    report, peaks = cycle.run(now).report, cycle.watch.taken() if isinstance(cycle.watch, PeakWatch) else {}
    clocks.append((time.process_time(), time.perf_counter(), overheard.cpu() if overheard else 0.0))
    rss, peak = rss_mib(), max(peaks.values())
    if report.failures:
        raise SystemExit(f"{now}: {report.failures[0]}")
    if overheard:
        overheard.repeat()
    clocks.append((time.process_time(), time.perf_counter(), overheard.cpu() if overheard else 0.0))
    (cpu, wall, server), (_, alone, alone_cpu) = (
        tuple(after - before for before, after in zip(*pair, strict=True)) for pair in pairwise(clocks)
    )
    waiting = sum(len(shards.waiting()) for shards in cycle.forecaster.signals.values())
    waiting += len(cycle.decider.observed.fleet.row) - len(cycle.sizes.known)
    cost = Cost(cpu, wall, server, alone, alone_cpu, rss, peak, waiting, report.steps, peaks)
    show(now, cost)
    return cost


def show(now: datetime, cost: Cost) -> None:
    steps = " ".join(f"{name} {seconds:.2f}" for name, seconds in cost.steps.items())
    print(
        f"{now:%H:%M} cpu {cost.cpu:.2f} wall {cost.wall:.2f} server cpu {cost.server_cpu:.2f} | "
        f"server alone {cost.alone:.2f} cpu {cost.alone_cpu:.2f} | "
        f"MiB {cost.rss:.0f} peak {cost.peak:.0f} | {cost.waiting} to fit and size | {steps}",
        flush=True,
    )


def summary(costs: list[Cost], steady: int, history: HistoryStore) -> dict[str, object]:
    """Medians and worst values of the steady cycles, and the whole first cycle."""
    first, last = costs[0], costs[-steady:]
    rings = sum(
        history.window(signal, step).values.nbytes for signal in history.rings for step in (MINUTE, FIVE_MINUTES)
    )
    figures = {
        name: {"median": round(statistics.median(values), 3), "worst": round(max(values), 3)}
        for name, values in {
            "cpu_s": [cost.cpu for cost in last],
            "wall_s": [cost.wall for cost in last],
            "server_cpu_s": [cost.server_cpu for cost in last],
            "server_alone_s": [cost.alone for cost in last],
            "server_alone_cpu_s": [cost.alone_cpu for cost in last],
            **{f"{step}_s": [cost.steps.get(step, 0.0) for cost in last] for step in first.steps},
        }.items()
    }
    return {
        "steady": figures,
        "first": asdict(first),
        "start_up_cycles": len(costs) - steady,
        "rings_mib": rings / 2**20,
        "first_above_rings_mib": first.peak - rings / 2**20,
        "peak_mib": max(cost.peak for cost in costs),
        "peak_mib_by_step": {step: round(max(cost.peaks.get(step, 0.0) for cost in costs)) for step in first.peaks},
    }


def weighed(cycle: Cycle, history: HistoryStore, directory: Path) -> dict[str, float]:
    """Sizes in MiB of the files in the directory after a snapshot, and of the serving process on them."""
    Snapshots(directory / "snapshot", history).save()
    (directory / "observed.json").write_bytes(cycle.decider.observed.encoded())
    with running(directory / "table") as serving:
        requests.get(f"http://{serving.address}/readyz", timeout=300).raise_for_status()
        memory = {"serving": rss_mib(serving.pid or 0), "serving at its peak": peak_mib(serving.pid or 0)}
    return memory | {path.name: path.stat().st_size / 2**20 for path in sorted(directory.iterdir())}


def settings_of(given: argparse.Namespace, url: str) -> Settings:
    """Default settings with the history and the model of the arguments."""
    return parse(
        {
            "prometheus": {"url": url},
            "queries": {"preset": "recorded"},
            "history": {"weeks_kept": timedelta(days=given.days)},
            "forecast": {"model": given.model},
            # Who has no HPA is scaled on CPU and requests, the others on CPU and memory: three signals to forecast.
            "policy": {"horizontal": {"requests_per_pod": 60}},
        },
        "benchmark",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", choices=("memory", "prometheus"), default="memory")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="where the blocks are kept")
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=7, help="history by five minutes")
    parser.add_argument("--cycles", type=int, default=20, help="of the steady state")
    parser.add_argument("--model", default=Settings().forecast.model)
    parser.add_argument("--refit", type=int, default=0, metavar="CYCLES", help="after those, all models due at once")
    parser.add_argument("--hurry", action="store_true", help="no budget until all is fitted and sized")
    parser.add_argument("--fitted", type=int, default=0, metavar="MODELS", help="of a signal at first; 0 is all")
    given = parser.parse_args()
    fleet = Fleet(given.workloads)
    with ExitStack() as parts:
        if given.source == "memory":
            source, overheard = FleetSource(fleet, COLUMNS * given.workloads), None
            settings = settings_of(given, "http://localhost")
        else:
            binaries = binaries_or_exit()
            server = parts.enter_context(RealPrometheus(binaries, filled(given.dir, fleet, binaries)))
            settings = settings_of(given, server.url)
            source = PrometheusSource(settings.prometheus, settings.queries)
            overheard = Overheard(source.client)
            print(f"Prometheus {binaries.version}")
        del fleet
        directory = Path(parts.enter_context(tempfile.TemporaryDirectory()))
        cycle, history = build(settings, source, parts, directory)
        if given.fitted:
            lend(cycle.forecaster, given.fitted)
        costs = run(cycle, given.cycles, overheard, hurried=given.hurry)
        figures = summary(costs, given.cycles, history) | {"mib": weighed(cycle, history, directory)}
        if given.refit:
            figures["refit"] = refit(cycle, given.refit, NOON + len(costs) * MINUTE)
        print(json.dumps(figures, indent=1, default=str))


if __name__ == "__main__":
    main()

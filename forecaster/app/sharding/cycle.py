"""The cycle of all shards: the workloads, the decisions of the shards, one table, one record, one writer."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from forecaster.app.compose import prepare_process
from forecaster.app.sharding.learned import LearnedShards, shard_of
from forecaster.app.sharding.shard import Executor, LocalExecutor, ShardFailure, ShardResult, ShardTask
from forecaster.app.sharding.sizes import SentSizes
from forecaster.config.settings import Settings
from forecaster.cycle.decide import held_all, held_size
from forecaster.cycle.run import Effects, Outcome
from forecaster.cycle.steps import Steps, expect_records
from forecaster.cycle.targets import Targets, WorkloadTracker
from forecaster.domain.decision import Hold, Reason, Resize
from forecaster.domain.report import CycleReport
from forecaster.errors import unexpected
from forecaster.horizontal.lead_time import MAX_SCALE_UPS
from forecaster.publish.decided import DecidedRows, held_numbers
from forecaster.publish.offer import DecidedColumns

if TYPE_CHECKING:
    from contextlib import ExitStack

    from forecaster.config.sharding import ShardingSettings
    from forecaster.domain.layers import ClusterPolicies
    from forecaster.domain.policies import Policies
    from forecaster.domain.signal import Signal
    from forecaster.domain.window import Inventory, StartedPod
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.ports import Source


class ShardAnswers(NamedTuple):
    """Answers of the shards for one evaluation time."""

    results: list[ShardResult]
    failures: dict[int, str]
    """Reason why a shard could not be computed, by its number."""
    rows: dict[int, list[int]]
    """Rows of the inventory, by shard."""


@dataclass(slots=True)
class ShardedCycle:
    """`Cycle.run` for a fleet in shards: the first and the last steps are here, all between runs in the shards."""

    settings: Settings
    source: Source
    effects: Effects
    executor: Executor
    learned: LearnedShards
    seconds: Callable[[], float]
    """A clock for durations only."""
    patience: timedelta
    """Longest time for the shards of one evaluation time."""
    tracker: WorkloadTracker = field(default_factory=WorkloadTracker)
    started: dict[WorkloadId, tuple[StartedPod, ...]] = field(default_factory=dict)
    """Pods that became ready and were not sent to a shard yet; per workload as many as a lead time needs."""
    sizes: SentSizes = field(default_factory=SentSizes)
    sizes_sent: dict[int, datetime] = field(default_factory=dict)
    """Evaluation time up to which each shard has sent the sizes of its workloads."""
    for_workers: Settings = field(init=False)
    identity: str = field(init=False)
    """Identity of the settings: after a restart workers go on with the state that they hold for it."""

    def __post_init__(self) -> None:
        self.for_workers = settings_for_workers(self.settings)
        text = self.settings.model_dump_json(exclude={"sharding"})
        self.identity = blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def policies(self) -> Policies:
        """Return the policies of all workloads."""
        return self.settings.policies

    def divide(self, shards: int) -> None:
        """Divide the fleet into `shards` shards from the next cycle on."""
        if shards != self.learned.shards:
            self.learned.divide(shards)
            self.sizes_sent.clear()

    def run(self, now: datetime) -> Outcome:
        """Run one cycle for an evaluation time."""
        steps, answers = Steps(self.seconds, self.patience), ShardAnswers([], {}, {})
        targets = steps.run("targets", lambda: self._targets(now), self.tracker.known(now, "nothing could be read"))
        if not targets.down:
            steps.run("shards", lambda: self._collect(answers, targets), None)
        decided = self._merged(targets, answers, now)
        unrecorded: Sequence[str] = steps.run("offers", lambda: self.effects.publish(targets, decided, now), ())
        effected = self.effects.act(steps, now)
        merged_report = merged(now, [result.report for result in answers.results])
        unscored = self.effects.score(merged_report.scores)
        failed = [f"shard {shard} of {self.learned.shards}: {why}" for shard, why in sorted(answers.failures.items())]
        early = (*targets.inventory.faults, *self.learned.refused, *failed, *merged_report.failures)
        unwritten = [line for effect in effected.values() for line in effect.failures]
        report = replace(
            merged_report,
            steps=steps.seconds,
            verdicts=decided.verdicts(),
            failures=(*early, *unrecorded, *unwritten, *unscored, *steps.failures),
            effected=effected,
        )
        return Outcome(targets.inventory, decided, report)

    def facts(self, id_: WorkloadId) -> bytes:
        """Return the facts of a workload from the last process of its shard, as msgpack; empty without an answer."""
        return self.executor.facts(self._fleet, self._shard(id_), id_)

    @property
    def _fleet(self) -> str:
        return f"{self.identity}-{self.learned.shards}"

    def _targets(self, now: datetime) -> Targets:
        self.learned.restore()
        targets = self.tracker.find(self.source, now)
        if targets.inventory.policies is not None:
            self.policies.take_over(targets.inventory.policies)
        expect_records(len(targets.inventory.workloads))
        for id_, pods in targets.inventory.started.items():
            self.started[id_] = (*self.started.get(id_, ()), *pods)[-MAX_SCALE_UPS:]
        return targets

    def _collect(self, answers: ShardAnswers, targets: Targets) -> None:
        """Collect the answers of shards; store learned state as soon as it arrives."""
        self.sizes.follow(targets.inventory.ids)
        answers.rows.update(rows_of(targets.inventory.workloads, self._shard))
        tasks = self._tasks(targets, answers.rows)
        for answer in self.executor.run(tasks, self.patience.total_seconds()):
            if isinstance(answer, ShardFailure):
                answers.failures[answer.shard] = answer.why
            else:
                self._keep(answer, answers)
        answered = {result.shard for result in answers.results}
        self.started = {id_: pods for id_, pods in self.started.items() if self._shard(id_) not in answered}
        late = f"not computed within {self.patience.total_seconds():g} s"
        missing = {task.shard for task in tasks} - answered - answers.failures.keys()
        answers.failures.update(dict.fromkeys(missing, late))

    def _keep(self, result: ShardResult, answers: ShardAnswers) -> None:
        """Take over an answer; one that a worker of another version gave in another form is a failure of its shard."""
        rows = answers.rows[result.shard]
        try:
            result.numbers.take(np.arange(len(rows)))
            merged(result.learned.at, [result.report])
            self.sizes.update(rows, result.sizes)
        except Exception as error:  # noqa: BLE001  the boundary of a shard: the others are decided
            reason = f"its answer is not understood ({unexpected(error)})"
            answers.failures[result.shard] = f"{reason}; deploy workers and service of one version"
            return
        self.learned.keep(result.shard, result.learned)
        self.sizes_sent[result.shard] = result.learned.at
        answers.results.append(result)

    def _tasks(self, targets: Targets, rows: Mapping[int, Sequence[int]]) -> list[ShardTask]:
        parts = parted(targets, self.started, self.policies.cluster, rows, self._shard, self.settings.queries.kinds)
        share = min(1.0, self.executor.processes / max(1, len(parts)))
        return [
            ShardTask(
                self.for_workers,
                self._fleet,
                shard,
                inventory,
                self.policies.defaults,
                self.policies.overrides,
                self.learned.by_shard.get(shard),
                self.sizes_sent.get(shard),
                share,
            )
            for shard, inventory in sorted(parts.items())
        ]

    def _shard(self, id_: WorkloadId) -> int:
        return placed(id_.namespace, self.learned.shards)

    def _merged(self, targets: Targets, answers: ShardAnswers, now: datetime) -> DecidedRows:
        """Return one decision about every present workload; it is held where its shard has no answer."""
        workloads = targets.inventory.workloads
        if targets.down:
            return held_all(workloads, Reason.SOURCE_DOWN, targets.down, now)
        parts = [(np.array(answers.rows[result.shard], np.intp), result.numbers) for result in answers.results]
        why_missing = partial(self._why_missing, answers=answers)
        return merged_decisions(now, workloads, parts, self.sizes.latest, why_missing)

    def _why_missing(self, workload: Workload, answers: ShardAnswers) -> str:
        """Say why a workload has no decision."""
        shard = self._shard(workload.id)
        why = answers.failures.get(shard, "nothing was said of this workload")
        return f"shard {shard} of {self.learned.shards}: {why}"


placed = lru_cache(maxsize=1 << 16)(shard_of)


STAYS_HERE = ("state", "serving", "keda", "remote_write", "acting", "floor", "scale", "resize", "replicas", "sharding")
"""Sections that workers do not get, with the addresses and files of secrets that they name."""
V = TypeVar("V")


def settings_for_workers(settings: Settings) -> Settings:
    """Return the settings by which a shard is read and decided."""
    sections = {name: getattr(settings, name) for name in Settings.model_fields if name not in STAYS_HERE}
    return Settings.model_construct(**sections)


def parted(
    targets: Targets,
    started: Mapping[WorkloadId, tuple[StartedPod, ...]],
    stated: ClusterPolicies,
    rows: Mapping[int, Sequence[int]],
    shard: Callable[[WorkloadId], int],
    kinds: Iterable[str],
) -> dict[int, Inventory]:
    """Return the part of the inventory that each shard needs, by its number, with the workloads in its rows."""
    inventory = targets.inventory
    spread = partial(_spread, shard=shard)
    lost, begun, images = spread(targets.lost), spread(started), spread(inventory.images)
    own, labels = spread(stated.own), spread(stated.labels)
    whole = frozenset(kinds)  # what is not listed here is lost by the inventory of all, or gone
    return {
        number: replace(
            inventory,
            workloads=tuple([inventory.workloads[row] for row in shard_rows]),
            faults=(),
            partly=lost[number],
            whole=whole,
            policies=replace(stated, own=own[number], labels=labels[number], faults=()),
            started=begun[number],
            images=images[number],
        )
        for number, shard_rows in rows.items()
    }


def rows_of(workloads: Sequence[Workload], shard: Callable[[WorkloadId], int]) -> dict[int, list[int]]:
    """The rows of each shard; one without workloads is in none."""
    rows: defaultdict[int, list[int]] = defaultdict(list)
    for row, workload in enumerate(workloads):
        rows[shard(workload.id)].append(row)
    return dict(rows)


def _spread(by_workload: Mapping[WorkloadId, V], shard: Callable[[WorkloadId], int]) -> defaultdict[int, dict[Any, V]]:
    parts: defaultdict[int, dict[Any, V]] = defaultdict(dict)
    for id_, value in by_workload.items():
        parts[shard(id_)][id_] = value
    return parts


SUMMED_IN_REPORTS = ("series", "incomplete", "states")
CHAINED = ("scores", "masked", "gates", "moved")
EACH_ONCE = ("failures", "late_steps")
"""Faults of the source are the same for all shards."""


def merged(at: datetime, reports: Sequence[CycleReport]) -> CycleReport:
    """Merge the reports of shards into one; without the counts of the fleet, and its steps."""
    facts: dict[str, Any] = {name: _summed([getattr(report, name) for report in reports]) for name in SUMMED_IN_REPORTS}
    facts |= {name: _chained(reports, name) for name in CHAINED}
    facts |= {name: tuple(dict.fromkeys(_chained(reports, name))) for name in EACH_ONCE}
    facts |= {name: sum(getattr(report, name) for report in reports) for name in ("at_maximum", "gates_waiting")}
    return CycleReport(at, newest_sample_age=_youngest([report.newest_sample_age for report in reports]), **facts)


def merged_decisions(
    at: datetime,
    workloads: Sequence[Workload],
    parts: Sequence[tuple[NDArray[np.intp], DecidedColumns]],
    sizes: Sequence[Resize | Hold | None],
    why_missing: Callable[[Workload], str],
) -> DecidedRows:
    """Return one decision about each workload: a part has those in its rows, others are held with `why_missing`."""
    answered = np.zeros(len(workloads), np.bool_)
    for rows, _ in parts:
        answered[rows] = True
    answered[[row for row, size in enumerate(sizes) if size is None]] = False
    merged_sizes: list[Any] = [*sizes]
    others = np.flatnonzero(~answered).tolist()
    for row in others:
        merged_sizes[row] = held_size(Reason.FAILED, why_missing(workloads[row]))
    held = held_numbers([workloads[row] for row in others], Reason.FAILED, why_missing)
    rest = (np.array(others, np.intp), held)
    numbers = DecidedColumns.side_by_side(len(workloads), [*parts, rest])
    return DecidedRows(at, workloads, numbers, merged_sizes)


def _summed(counts: Sequence[Mapping[Any, int]]) -> Counter[Any]:
    """Sum counts by key; keys that were counted 0 stay."""
    total: Counter[Any] = Counter()
    for counter in counts:
        total.update(counter)
    return total


def _chained(reports: Sequence[CycleReport], name: str) -> tuple[Any, ...]:
    return tuple(chain.from_iterable(getattr(report, name) for report in reports))


def _youngest(ages: Sequence[Mapping[Signal, float]]) -> dict[Signal, float]:
    youngest: dict[Signal, float] = {}
    for by_signal in ages:
        for signal, age in by_signal.items():
            youngest[signal] = min(age, youngest.get(signal, age))
    return youngest


SHARD_TIME_SHARE = 2 / 3
"""Share of the interval that shards may use: the table, its record and writes to the cluster come after them."""


def sharded_cycle(
    settings: Settings, source: Source, effects: Effects, learned: LearnedShards, parts: ExitStack
) -> ShardedCycle:
    """The cycle of a fleet in shards; `parts` ends it.

    Raises:
        StoreError: a scheduler is named, and Dask is not installed.
    """
    prepare_process()
    executor = executor_of(settings.sharding)
    parts.callback(learned.close)
    parts.callback(executor.close)
    patience = settings.cycle.interval * SHARD_TIME_SHARE
    return ShardedCycle(settings, source, effects, executor, learned, time.perf_counter, patience)


def executor_of(settings: ShardingSettings) -> Executor:
    """Return the executor that runs shards.

    Raises:
        StoreError: a scheduler is named, and Dask is not installed.
    """
    if not settings.scheduler:
        return LocalExecutor()
    from forecaster.app.sharding import dask  # noqa: PLC0415  the extra `dask`

    return dask.DaskExecutor(settings.scheduler, dask.security_of(settings))

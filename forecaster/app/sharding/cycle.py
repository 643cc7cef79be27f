"""The cycle of all shards: which workloads there are, what the shards decided, one table, one record, one writer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.app.sharding.executors import ShardFailure
from forecaster.app.sharding.learned import shard_of
from forecaster.app.sharding.merged import merged, merged_decisions
from forecaster.app.sharding.parts import parted, rows_of, settings_for_workers
from forecaster.app.sharding.shard import ShardTask
from forecaster.app.sharding.sizes import KeptSizes
from forecaster.cycle.run import Outcome, record_scores
from forecaster.cycle.steps import Steps, expect_records
from forecaster.cycle.targets import Roster, Targets
from forecaster.cycle.told_decisions import held_all
from forecaster.domain.decision import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from forecaster.app.sharding.executors import Executor
    from forecaster.app.sharding.learned import LearnedShards
    from forecaster.app.sharding.shard import ShardResult
    from forecaster.config.settings import Settings
    from forecaster.cycle.run import Effects
    from forecaster.domain.policies import Policies
    from forecaster.domain.report import Effected
    from forecaster.domain.window import Inventory, StartedPod
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.ports import Source
    from forecaster.publish.decided import DecidedRows


class ShardAnswers(NamedTuple):
    """What came of the shards of one evaluation time."""

    results: list[ShardResult]
    failures: dict[int, str]
    """Why a shard could not be computed, by its number."""
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
    """How long the shards of one evaluation time may take."""
    roster: Roster = field(default_factory=Roster)
    started: dict[WorkloadId, tuple[StartedPod, ...]] = field(default_factory=dict)
    """Pods that have become ready, of which no shard has heard yet."""
    sizes: KeptSizes = field(default_factory=KeptSizes)
    told: dict[int, datetime] = field(default_factory=dict)
    """Up to which evaluation time each shard has told the sizes of its workloads."""
    for_workers: Settings = field(init=False)
    identity: str = field(init=False)
    """Identity of the settings: after a restart workers go on with the state that they hold for it."""

    def __post_init__(self) -> None:
        self.for_workers = settings_for_workers(self.settings)
        told = self.settings.model_dump_json(exclude={"sharding"})
        self.identity = blake2b(told.encode(), digest_size=8).hexdigest()

    @property
    def policies(self) -> Policies:
        """Return the policies of all workloads."""
        return self.settings.policies

    def divide(self, shards: int) -> None:
        """Have so many shards from the next cycle on."""
        self.learned.divide(shards)
        self.told.clear()

    def run(self, now: datetime) -> Outcome:
        """Run one cycle for an evaluation time."""
        steps, came = Steps(self.seconds, self.patience), ShardAnswers([], {}, {})
        targets = steps.run("targets", lambda: self._targets(now), self.roster.known(now, "nothing could be read"))
        if not targets.down:
            steps.run("shards", lambda: self._collect(came, targets), None)
        decided = self._merged(targets, came, now)
        unkept: Sequence[str] = steps.run("offers", lambda: self._hand_over(targets, decided, now), ())
        effected = self._act(steps, now)
        found = merged(now, [one.report for one in came.results])
        unscored = record_scores(self.effects.ledger, found.scores)
        failed = [f"shard {shard} of {self.learned.shards}: {why}" for shard, why in sorted(came.failures.items())]
        early = (*targets.inventory.faults, *filter(None, [self.learned.damaged]), *failed, *found.failures)
        unwritten = [line for one in effected.values() for line in one.failures]
        report = replace(
            found,
            steps=steps.seconds,
            verdicts=decided.verdicts(),
            failures=(*early, *unkept, *unwritten, *unscored, *steps.failures),
            effected=effected,
        )
        return Outcome(targets.inventory, decided, report)

    def facts(self, id_: WorkloadId) -> bytes:
        """What the process that ran its shard last knows of a workload, as msgpack; nothing where it does not say."""
        return self.executor.facts(self._fleet, self._shard(id_), id_)

    @property
    def _fleet(self) -> str:
        return f"{self.identity}-{self.learned.shards}"

    def _targets(self, now: datetime) -> Targets:
        self.learned.recall()
        targets = self.roster.find(self.source, now)
        if targets.inventory.policies is not None:
            self.policies.take_over(targets.inventory.policies)
        expect_records(len(targets.inventory.workloads))
        for id_, pods in targets.inventory.started.items():
            self.started[id_] = (*self.started.get(id_, ()), *pods)
        return targets

    def _collect(self, came: ShardAnswers, targets: Targets) -> None:
        """What the shards say; what they learned is kept as soon as it is there."""
        self.sizes.follow(targets.inventory.ids)
        came.rows.update(rows_of(targets.inventory.workloads, self._shard))
        tasks = self._tasks(targets, came.rows)
        for one in self.executor.run(tasks, self.patience.total_seconds()):
            if isinstance(one, ShardFailure):
                came.failures[one.shard] = one.why
            else:
                self._keep(one, came)
        told = {one.shard for one in came.results}
        self.started = {id_: pods for id_, pods in self.started.items() if self._shard(id_) not in told}
        late = f"not computed within {self.patience.total_seconds():g} s"
        came.failures.update({one.shard: late for one in tasks if one.shard not in told | came.failures.keys()})

    def _keep(self, one: ShardResult, came: ShardAnswers) -> None:
        self.learned.keep(one.shard, one.learned)
        self.sizes.take(came.rows[one.shard], one.sizes)
        self.told[one.shard] = one.learned.at
        came.results.append(one)

    def _tasks(self, targets: Targets, rows: Mapping[int, Sequence[int]]) -> list[ShardTask]:
        parts = parted(targets, self.started, self.policies.cluster, rows, self._shard, self.settings.queries.kinds)
        share = min(1.0, self.executor.processes / max(1, len(parts)))
        return [self._task(shard, parts[shard], share) for shard in sorted(parts)]

    def _task(self, shard: int, inventory: Inventory, share: float) -> ShardTask:
        policies = self.policies
        return ShardTask(
            self.for_workers,
            self._fleet,
            shard,
            inventory,
            policies.defaults,
            policies.overrides,
            self.learned.of.get(shard),
            self.told.get(shard),
            share,
        )

    def _shard(self, id_: WorkloadId) -> int:
        return placed(id_.namespace, self.learned.shards)

    def _merged(self, targets: Targets, came: ShardAnswers, now: datetime) -> DecidedRows:
        """One decision about every workload that is there; it is held where its shard did not say."""
        workloads = targets.inventory.workloads
        if targets.down:
            return held_all(workloads, Reason.SOURCE_DOWN, targets.down, now)
        parts = [(np.array(came.rows[one.shard], np.intp), one.numbers) for one in came.results]
        return merged_decisions(now, workloads, parts, self.sizes.told, lambda one: self._unsaid(one, came))

    def _unsaid(self, workload: Workload, came: ShardAnswers) -> str:
        """Why nothing was said of a workload."""
        shard = self._shard(workload.id)
        why = came.failures.get(shard, "nothing was said of this workload")
        return f"shard {shard} of {self.learned.shards}: {why}"

    def _hand_over(self, targets: Targets, decided: DecidedRows, now: datetime) -> Sequence[str]:
        """Offers and records. While not even the workloads are known, the table of an earlier process stays."""
        return () if targets.down and not decided else self.effects.publish_and_record(decided, now)

    def _act(self, steps: Steps, now: datetime) -> Mapping[str, Effected]:
        actuator = self.effects.actuator
        return steps.run("effects", lambda: actuator.act(now), {}) if actuator else {}


placed = lru_cache(maxsize=1 << 16)(shard_of)

"""One shard: the ordinary cycle on the workloads of some namespaces, as a function of what is handed to it.

What a cycle keeps between evaluation times (rings, models) stays in the process that ran it last and is used again if
the shard comes back; any other process makes it anew, of what was learned and of the source. An `Executor` runs shards.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import NamedTuple, Protocol, cast

import numpy as np

from forecaster.app.compose import Nowhere, build_cycle, nothing_observed
from forecaster.app.sharding.sizes import ShardSizes, SizeTimes
from forecaster.config.settings import Settings
from forecaster.cycle.gates import NEW_JUDGED
from forecaster.cycle.run import Cycle, Effects
from forecaster.cycle.workload_facts import encoded_facts
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.report import CycleReport
from forecaster.domain.window import Inventory
from forecaster.domain.workload import WorkloadId
from forecaster.errors import unexpected
from forecaster.publish.decided import DecidedRows
from forecaster.publish.offer import DecidedColumns
from forecaster.sources.factory import close, origins_of, source_of
from forecaster.sources.live_source import RelistedSource
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.promql import expression_of
from forecaster.store.history import HistoryStore
from forecaster.store.shards import ShardState

IDLE = timedelta(minutes=15)
"""Time without a request after which a shard counts as computed elsewhere, and its rings are freed."""


class ShardTask(NamedTuple):
    """Inputs of one shard's decisions."""

    settings: Settings
    fleet: str
    """Identity of the settings and the number of shards: a worker that has run it before keeps its state."""
    shard: int
    inventory: Inventory
    """Workloads of the shard at the evaluation time, with all that cluster objects state."""
    policy: Policy
    overrides: tuple[tuple[PolicySelector, Mapping[str, object]], ...]
    learned: ShardState | None
    """State learned until then, if any."""
    sizes_since: datetime | None = None
    """Evaluation time since which changed sizes are requested; None: all of them."""
    share: float = 1.0
    """Share of a process's time, 0-1, that this shard may use."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Return the namespaces of its workloads, in order."""
        return tuple(sorted({workload.id.namespace for workload in self.inventory.workloads}))

    def alone(self) -> ShardTask:
        """Return this task without learned state, for a process that has run the shard before; others refuse it."""
        known = self.learned and self.learned._replace(observed=b"", origins=b"")
        return self._replace(learned=known)

    @property
    def is_alone(self) -> bool:
        """Whether the learned state is left out."""
        return self.learned is not None and not self.learned.observed


class ShardResult(NamedTuple):
    """Result of one shard."""

    shard: int
    numbers: DecidedColumns
    """Numbers of its workloads, in the order of the task."""
    sizes: ShardSizes
    """Sizes that the receiving process does not have yet."""
    report: CycleReport
    learned: ShardState


class ListedSource(RelistedSource):
    """Source with an inventory that is given and not read."""

    def __init__(self, source: PrometheusSource, inventory: Inventory) -> None:
        super().__init__(source)
        self._inventory = inventory
        source.follow(inventory)

    def inventory(self, _: datetime) -> Inventory:
        """Return the given inventory."""
        return self._inventory


class _DecidedShard(NamedTuple):
    """Last decisions about a shard, and the state learned by then."""

    fleet: DecidedRows
    report: CycleReport
    learned: ShardState


@dataclass(slots=True)
class _RunningShard:
    """A shard as this process ran it last."""

    namespaces: tuple[str, ...]
    source: PrometheusSource
    cycle: Cycle
    sizes: SizeTimes = field(default_factory=SizeTimes)
    decided: _DecidedShard | None = None

    def ask_for(self, task: ShardTask) -> None:
        """Ask the source for the workloads of this task, by the policies of this task."""
        if self.namespaces != task.namespaces:
            other = narrowed_source(task)
            other.request_origins = self.source.request_origins
            close(self.source)
            self.source, self.namespaces = other, task.namespaces
        self.cycle.source = ListedSource(self.source, task.inventory)
        self.cycle.budget = task.settings.cycle.interval / 2 * task.share
        self.cycle.decider.observed.gates.most_new = max(1, int(NEW_JUDGED * task.share))
        policies = self.cycle.policies
        if (task.policy, task.overrides) != (policies.defaults, policies.overrides):
            policies.restate(task.policy, task.overrides)

    def run(self, task: ShardTask) -> None:
        """Decide."""
        outcome = self.cycle.run(task.inventory.at)
        fleet, origins = cast("DecidedRows", outcome.recommendations), origins_of(self.source)
        observed = self.cycle.decider.observed.encoded()
        learned = ShardState(task.inventory.at, observed, origins.encoded() if origins else b"")
        self.sizes.follow(fleet)
        self.decided = _DecidedShard(fleet, outcome.report, learned)

    def answer(self, task: ShardTask) -> ShardResult:
        """Return the last decisions, without the sizes that the asking process already has."""
        fleet, report, learned = cast("_DecidedShard", self.decided)
        rows = len(task.inventory.workloads)  # one that is held because it is listed no more is behind these
        if fleet.ids[:rows] != task.inventory.ids:
            raise ValueError("the workloads of the answer are not the requested ones")
        numbers, sizes = fleet.numbers.take(np.arange(rows)), self.sizes.since(task.sizes_since, fleet, rows)
        return ShardResult(task.shard, numbers, sizes, report, learned)


@dataclass(slots=True)
class ShardCycles:
    """The cycles of the shards that this process has run, one at a time."""

    running: dict[tuple[str, int], _RunningShard] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def run(self, task: ShardTask) -> ShardResult | None:
        """Decide about the workloads of a shard; a repeated call for one evaluation time returns the same answer.

        None where the learned state has to be sent first.
        """
        with self.lock:
            self._give_back(task.inventory.at)
            running = self.running.get((task.fleet, task.shard))
            if running is None or not _goes_on(running.decided, task):
                if task.is_alone:
                    return None
                running = self._begun(task)
            if running.decided is None or running.decided.learned.at != task.inventory.at:
                running.ask_for(task)
                running.run(task)
            return running.answer(task)

    def facts(self, fleet: str, shard: int, id_: WorkloadId) -> bytes:
        """Return the facts of a workload from its shard in this process, as msgpack; empty if it did not run here."""
        running = self.running.get((fleet, shard))
        return encoded_facts(running.cycle, id_) if running else b""

    def _begun(self, task: ShardTask) -> _RunningShard:
        key = (task.fleet, task.shard)
        if before := self.running.pop(key, None):
            close(before.source)
        source = narrowed_source(task)
        return self.running.setdefault(key, _RunningShard(task.namespaces, source, new_cycle(task, source)))

    def _give_back(self, now: datetime) -> None:
        idle = [key for key, shard in self.running.items() if shard.decided and now - shard.decided.learned.at > IDLE]
        for key in idle:
            close(self.running.pop(key).source)


def _goes_on(decided: _DecidedShard | None, task: ShardTask) -> bool:
    """Whether nothing was decided elsewhere since this process ran the shard."""
    if decided is None or decided.learned.at > task.inventory.at:
        return False
    return task.learned is None or decided.learned.at >= task.learned.at


def new_cycle(task: ShardTask, source: PrometheusSource) -> Cycle:
    """Return the cycle of a shard new to this process, with the state learned elsewhere."""
    settings, at = task.settings, task.inventory.at
    observed = nothing_observed(settings)
    origins = origins_of(source)
    if task.learned:
        observed.restore(task.learned.observed)
        if origins and task.learned.origins:
            origins.restore(task.learned.origins)
    history = HistoryStore(settings.signal_table.measured, settings.history, now=at)
    listed = ListedSource(source, task.inventory)
    cycle = build_cycle(settings, listed, history, Effects(Nowhere(), Nowhere()), observed=observed)
    cycle.policies = Policies(  # shards share no state
        task.policy, task.overrides, signals=settings.signal_table, ceilings=settings.resources.owners
    )
    return cycle


def narrowed_source(task: ShardTask) -> PrometheusSource:
    """Return a source with queries restricted to the namespaces of a shard."""
    namespaces = "|".join(map(expression_of, task.namespaces))
    queries = task.settings.queries.model_copy(update={"namespaces": namespaces})
    source: PrometheusSource = source_of(task.settings.model_copy(update={"queries": queries}))  # type: ignore[assignment]
    return source


PROCESS_CYCLES = ShardCycles()
"""Cycles of the shards that this process computes."""


class ShardFailure(NamedTuple):
    """A shard that could not be computed, in this cycle and wherever it is tried."""

    shard: int
    why: str


class UnknownShard(NamedTuple):
    """A shard unknown to a process that was not sent its learned state."""

    shard: int


class Executor(Protocol):
    """Runs shards; results that are late are left out."""

    @property
    def processes(self) -> int:
        """Number of shards that are computed at a time."""

    def run(self, tasks: Sequence[ShardTask], seconds: float) -> Iterator[ShardResult | ShardFailure]:
        """Yield the result of each shard as it arrives, at most once. Raises nothing."""

    def facts(self, fleet: str, shard: int, id_: WorkloadId) -> bytes:
        """Return the facts of a workload from the last process of its shard, as msgpack; empty without an answer.

        Called by another thread while shards run.
        """

    def close(self) -> None:
        """Release held resources."""


def tried(cycles: ShardCycles, task: ShardTask) -> ShardResult | ShardFailure | UnknownShard:
    """Run a shard within a boundary: its failure stops no other shard."""
    try:
        return cycles.run(task) or UnknownShard(task.shard)
    except Exception as error:  # noqa: BLE001  as above
        return ShardFailure(task.shard, unexpected(error))


@dataclass(slots=True)
class LocalExecutor:
    """Runs one shard after the other, in this process."""

    cycles: ShardCycles = field(default_factory=ShardCycles)

    @property
    def processes(self) -> int:
        """This one."""
        return 1

    def run(self, tasks: Sequence[ShardTask], seconds: float) -> Iterator[ShardResult | ShardFailure]:
        """Yield results as long as there is time."""
        until = time.monotonic() + seconds
        for task in tasks:
            if time.monotonic() > until:
                return
            outcome = tried(self.cycles, task)
            if not isinstance(outcome, UnknownShard):
                yield outcome

    def facts(self, fleet: str, shard: int, id_: WorkloadId) -> bytes:
        """Return facts of this process."""
        return self.cycles.facts(fleet, shard, id_)

    def close(self) -> None:
        """Do nothing: no resource is held open."""

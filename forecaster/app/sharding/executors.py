"""Executors of shards: what each promises, and the one that runs them in this process."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from forecaster.app.sharding.shard import ShardCycles, ShardResult, ShardTask
from forecaster.errors import unexpected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forecaster.domain.workload import WorkloadId


class ShardFailure(NamedTuple):
    """A shard that could not be computed, in this cycle and wherever it is tried."""

    shard: int
    why: str


class UntoldShard(NamedTuple):
    """A shard that a process does not know, and was not told what was learned of it."""

    shard: int


class Executor(Protocol):
    """Runs shards; what is not there in time is left out."""

    @property
    def processes(self) -> int:
        """How many shards are computed at a time."""

    def run(self, tasks: Sequence[ShardTask], seconds: float) -> Iterator[ShardResult | ShardFailure]:
        """What came of each, as it comes and at most once. Raises nothing."""

    def facts(self, fleet: str, shard: int, id_: WorkloadId) -> bytes:
        """What the process that ran a shard last knows of a workload, as msgpack; nothing where it does not say.

        Asked by another thread, while shards run.
        """

    def close(self) -> None:
        """Give back what is held open."""


def tried(cycles: ShardCycles, task: ShardTask) -> ShardResult | ShardFailure | UntoldShard:
    """The boundary of a shard: what is wrong with one stops no other."""
    try:
        return cycles.run(task) or UntoldShard(task.shard)
    except Exception as error:  # noqa: BLE001  as above
        return ShardFailure(task.shard, unexpected(error))


@dataclass(slots=True)
class LocalExecutor:
    """One shard after the other, in this process."""

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
            came = tried(self.cycles, task)
            if not isinstance(came, UntoldShard):
                yield came

    def facts(self, fleet: str, shard: int, id_: WorkloadId) -> bytes:
        """Return facts of this process."""
        return self.cycles.facts(fleet, shard, id_)

    def close(self) -> None:
        """Do nothing: no resource is held open."""

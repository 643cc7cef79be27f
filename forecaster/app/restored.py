"""What a service goes on from after a restart: history, what was earned, where rates come from, past decisions."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from forecaster.app.compose import nothing_observed, observed_file, origins_path
from forecaster.app.service import Persistence
from forecaster.app.sharding.learned import LearnedShards, joined, newest
from forecaster.errors import StoreError
from forecaster.publish.decision_history import (
    CHANGES_KEPT,
    HALF_LIFE,
    DecisionChange,
    DecisionHistory,
    PastScores,
    ScoreSums,
)
from forecaster.sources.request_origins import Origins
from forecaster.store.history import HistoryStore
from forecaster.store.shards import ShardState, ShardStates
from forecaster.store.snapshot import Snapshots
from forecaster.store.state import ObservedFile

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.app import telemetry
    from forecaster.app.service import Persistable
    from forecaster.config.settings import Settings
    from forecaster.cycle.observed import Observed
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.store.ledger import SqlLedger
    from forecaster.store.past import FadedScores, PastDecision

OBSERVED_EVERY = timedelta(minutes=5)
"""Time between two writes of the observed state; a kill loses no more. 15 ms of CPU at 10,000 rows."""
SIZES_BETWEEN = 2
"""The ledger has changes of sizes, too: so many rows are read for each change of the count. At a start with 10,000
workloads sixteen rows each take a second and a half."""


def recalled(ledger: SqlLedger, now: datetime) -> DecisionHistory:
    """A chronicle that goes on where the process before this one stopped.

    Raises:
        StoreError: the database cannot be read.
    """
    found = ledger.recalled(now, changes=CHANGES_KEPT * SIZES_BETWEEN, half_life=HALF_LIFE)
    chronicle = DecisionHistory()
    chronicle.recall(now, map(_change, found.decisions), map(_past, found.scores))
    return chronicle


def _change(one: PastDecision) -> tuple[WorkloadId, DecisionChange]:
    return one.id, DecisionChange(one.at, one.replicas, one.verdict, one.reason, one.message)


def _past(one: FadedScores) -> PastScores:
    return PastScores(one.id, one.signal, ScoreSums(*one[2:]))


class KeptState(NamedTuple):
    """What outlives the process, taken over from the one before, and the files in which it is kept."""

    history: HistoryStore
    observed: Observed
    files: list[Persistence]
    earned: Persistable
    """What writes `observed`, or what shards have learned."""
    shards: LearnedShards | None = None
    """What was learned in shards, of a fleet that is divided; `history` and `observed` are with them then."""

    def follow(self, file: ObservedFile[Any] | None, log: telemetry.Log, every: timedelta = timedelta(0)) -> None:
        """Go on with what is kept in one more file, as far as there is one; by default a change is written at once."""
        if file is not None:
            restore(file, log)
            self.files.append(Persistence(OnChange(file), every))


def restored(settings: Settings, directory: Path, address: str, now: datetime, log: telemetry.Log) -> KeptState:
    """History and what was seen of workloads, as the last run left them; `address` is that of the database."""
    history = HistoryStore(settings.signal_table.measured, settings.history, now=now)
    every = timedelta(0) if settings.replicas.enabled else OBSERVED_EVERY
    if settings.sharding.enabled:
        shards = LearnedShards(settings.sharding.shards, ShardStates(address), partial(undivided, settings, log))
        return KeptState(history, nothing_observed(settings), [Persistence(shards, every)], shards, shards)
    snapshots = Snapshots(directory / "history.snapshot", history)
    restore(snapshots, log)
    observed = observed_file(settings, nothing_observed(settings))
    restore(observed, log)
    observed = rejoined(settings, address, observed, log)
    files = [Persistence(snapshots, settings.cycle.snapshot_every), Persistence(observed, every)]
    return KeptState(history, observed.observed, files, observed)


def undivided(settings: Settings, log: telemetry.Log) -> ShardState | None:
    """What the service has learned before its fleet was divided; None where nothing of it lies there."""
    observed, origins = observed_file(settings, nothing_observed(settings)), Origins()
    restore(observed, log)
    if not observed.observed.fleet.row:
        return None
    restore(ObservedFile(origins_path(settings), origins), log)
    at = datetime.fromtimestamp(observed.observed.decided_at, UTC)
    return ShardState(at, observed.observed.kept(), origins.kept())


def rejoined(
    settings: Settings, address: str, file: ObservedFile[Observed], log: telemetry.Log
) -> ObservedFile[Observed]:
    """What the shards of a fleet have learned that is not divided any more, where that is newer than the file."""
    try:
        with closing(ShardStates(address)) as states:
            _, found = states.read()
        if newest(found).timestamp() <= file.observed.decided_at:
            return file
        one, observed, origins = joined(found), nothing_observed(settings), Origins()
        observed.restore(one.observed)
        if one.origins:
            origins.restore(one.origins)
            ObservedFile(origins_path(settings), origins).save()
        return observed_file(settings, observed)
    except (StoreError, msgspec.MsgspecError) as error:
        log.warning("snapshot_not_restored", error=f"what shards have learned: {error}")
        return file


@dataclass(frozen=True, slots=True)
class StateBefore:
    """Writes what was earned and decided before the table that says so: a copy of the table has its state, too."""

    file: Persistable

    def receive(self, _cycle: OfferedCycle) -> None:
        """A table is about to be written. Raises `StoreError`."""
        self.file.save()


def restore(snapshots: Snapshots | ObservedFile[Any], log: telemetry.Log) -> None:
    """Take over what the last run kept; without its history, everything is asked for again."""
    try:
        found = snapshots.load()
    except StoreError as error:
        log.warning("snapshot_not_restored", error=str(error))
    else:
        log.info("snapshot_restored" if found else "no_snapshot", path=str(snapshots.path))


@dataclass(slots=True)
class OnChange:
    """A file that is written in the cycle in which there is something new to keep."""

    file: ObservedFile[Any]
    written: bytes = b""

    def save(self) -> None:
        """Write it where it differs from what was written last. Raises `StoreError`."""
        kept = self.file.observed.kept()
        if kept != self.written:
            self.file.save()
            self.written = kept


def recall(ledger: SqlLedger, now: datetime, log: telemetry.Log) -> DecisionHistory:
    """What became of each workload before this start; a database that is away leaves it unknown."""
    try:
        return recalled(ledger, now)
    except StoreError as error:
        log.warning("past_not_recalled", error=str(error))
        return DecisionHistory()

"""State restored at a start: history, learned state, origins of rates, past decisions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from forecaster.app.compose import nothing_observed, observed_file
from forecaster.app.service import OnChange, Persistable, Persistence
from forecaster.errors import ForecasterError, StoreError
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.kube.lease import REQUEST_SECONDS
from forecaster.publish.decision_history import HALF_LIFE, MAX_CHANGES, DecisionHistory
from forecaster.store.history import HistoryStore
from forecaster.store.signing import StateKeys, keep_keys, keys_of_directory, new_key, read_key_file
from forecaster.store.snapshot import Snapshots

if TYPE_CHECKING:
    from forecaster.app import telemetry
    from forecaster.app.sharding.learned import LearnedShards
    from forecaster.config.settings import Settings
    from forecaster.cycle.observed import Observed
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.store.database import DatabaseAddress
    from forecaster.store.ledger import SqlLedger
    from forecaster.store.state import ObservedFile
    from forecaster.store.state_secret import StateSecret

OBSERVED_INTERVAL = timedelta(minutes=5)
"""Time between two writes of the observed state; a kill loses no more. 15 ms of CPU at 10,000 rows."""
DIVIDED = "divided"
"""Mark in the state directory of a fleet in shards. Without it the database is not asked what shards have learned."""
SIZES_BETWEEN = 2
"""Rows read for each change of the count, because the ledger has changes of sizes, too. At a start with 10,000
workloads sixteen rows each take a second and a half."""


def read_past(ledger: SqlLedger, now: datetime, log: telemetry.Log) -> DecisionHistory:
    """Read the decisions before this start; empty while the database is away."""
    history = DecisionHistory()
    try:
        past = ledger.persisted_history(now, changes=MAX_CHANGES * SIZES_BETWEEN, half_life=HALF_LIFE)
    except StoreError as error:
        log.warning("past_not_recalled", error=str(error))
    else:
        history.restore(now, past.decisions, past.scores)
    return history


class RestoredState(NamedTuple):
    """State that outlives the process, restored from the previous one, and its files."""

    history: HistoryStore
    observed: Observed
    files: list[Persistence]
    earned: Persistable
    """Writer of `observed`, or of the state learned by shards."""
    shards: LearnedShards | None = None
    """State learned by shards, for a divided fleet, which has `history` and `observed` with its workers."""

    def follow(self, file: ObservedFile[Any] | None, news: StateNews, every: timedelta = timedelta(0)) -> None:
        """Restore from one more file, if it exists, and write to it; by default a change is written at once."""
        if file is not None:
            restore(file, news)
            self.files.append(Persistence(OnChange(file), every))


class StateNews(NamedTuple):
    """Tells what became of stored state: in the log, and as a metric where it was refused."""

    log: telemetry.Log
    mark: Callable[[str], None]
    """Hears which part of the state was refused."""

    def refused(self, part: str, why: str) -> None:
        """A part of the state is not taken over, so it is not known."""
        self.log.warning("state_refused", part=part, error=why)
        self.mark(part)


def state_secret(settings: Settings, parts: ExitStack, news: StateNews) -> StateSecret | None:
    """Return the Secret with what a new pod needs; None where the settings name none, or no API server is known."""
    if not settings.state.secret:
        return None
    try:
        client = ApiClient(client_config_source(settings.acting.kubeconfig), timeout=REQUEST_SECONDS).configured()
    except ForecasterError as error:
        news.log.warning("state_secret_not_read", error=str(error))
        return None
    from forecaster.store.state_secret import StateSecret  # noqa: PLC0415  only where the settings name it

    parts.callback(client.close)
    return StateSecret(client, settings.state.secret)


def state_keys(settings: Settings, directory: Path, secret: StateSecret | None, news: StateNews) -> StateKeys:
    """Return the keys that sign state: of the settings' file, of the Secret, else of the state directory alone.

    The directory has a copy of what the Secret holds, for a start while the API server is away.

    Raises:
        StoreError: the file that the settings name cannot be read, or has no key.
    """
    if settings.state.key_file:
        return read_key_file(settings.state.key_file)
    try:
        keys = secret.keys() if secret else None
    except StoreError as error:
        news.log.warning("state_secret_not_read", error=str(error))
        keys = None
    try:
        if keys is None:
            return keys_of_directory(directory)
        keep_keys(directory, keys.keys)
    except StoreError as error:
        news.log.warning("state_key_not_kept", error=str(error))
    return keys or StateKeys((new_key(),), "the memory of one process", of_release=False)


class ReleaseState(NamedTuple):
    """State shared by a pod with its predecessor and with other replicas."""

    keys: StateKeys
    secret: StateSecret | None
    cluster: str
    """UID of kube-system; empty where it is not known."""
    holds: Callable[[], bool]
    """Whether this replica leads."""

    @property
    def keys_of_files(self) -> StateKeys | None:
        """Return the keys that sign files, which replicas copy: not those of one directory."""
        return self.keys if self.keys.of_release else None

    def continued(self, observed: Observed, news: StateNews) -> list[Persistence]:
        """Go on from the checkpoint in the Secret where it is newer; return what writes it from now on."""
        if self.secret is None or not self.keys.of_release:
            return []
        from forecaster.store.state_secret import CHECKPOINT, MAX_CHECKPOINT, Checkpoint  # noqa: PLC0415  as above

        def tell_left(left: tuple[str, ...]) -> None:
            news.log.warning("checkpoint_bounded", left_out=left, most_bytes=MAX_CHECKPOINT)

        checkpoint = Checkpoint(self.secret, self.keys, self.cluster, observed, self.holds, tell_left)
        try:
            content = self.secret.read(CHECKPOINT)
        except StoreError as error:
            news.log.warning("state_secret_not_read", error=str(error))
            content = b""
        try:
            if content and (restored := checkpoint.decoded(content)).at > observed.decided_at:
                observed.restore(restored.observed)
                news.log.info("checkpoint_restored", at=datetime.fromtimestamp(restored.at, UTC))
        except (StoreError, msgspec.MsgspecError) as error:
            news.refused(CHECKPOINT, f"checkpoint in Secret {self.secret.name}: {error}")
        return [Persistence(checkpoint, OBSERVED_INTERVAL)]


def restored(
    settings: Settings, directory: Path, address: DatabaseAddress, release: ReleaseState, now: datetime, news: StateNews
) -> RestoredState:
    """Restore history and observations of the last run; `address` is that of the database."""
    keys, of_files = release.keys, release.keys_of_files
    history = HistoryStore(settings.signal_table.measured, settings.history, now=now)
    every = timedelta(0) if settings.replicas.enabled else OBSERVED_INTERVAL
    if settings.sharding.enabled:
        with suppress(OSError):  # a directory that cannot be written is told of by what needs it
            (directory / DIVIDED).touch()
        from forecaster.app.sharding.learned import learned_shards  # noqa: PLC0415  only where there are shards

        shards = learned_shards(settings, address, keys, news)
        return RestoredState(history, nothing_observed(settings), [Persistence(shards, every)], shards, shards)
    snapshots = Snapshots(directory / "history.snapshot", history)
    restore(snapshots, news)
    observed = observed_file(settings, nothing_observed(settings), of_files)
    restore(observed, news)
    if (directory / DIVIDED).exists():
        from forecaster.app.sharding.learned import rejoined  # noqa: PLC0415  only where there were shards

        observed = rejoined(settings, address, keys, observed, news)
        with suppress(OSError):
            (directory / DIVIDED).unlink()
    files = [Persistence(snapshots, settings.cycle.snapshot_every), Persistence(observed, every)]
    files += release.continued(observed.observed, news)
    return RestoredState(history, observed.observed, files, observed)


@dataclass(frozen=True, slots=True)
class StateBefore:
    """Writes learned state and decisions before the table based on them: a copy of the table has its state, too."""

    file: Persistable

    def receive(self, _cycle: OfferedCycle) -> None:
        """A table is about to be written. Raises `StoreError`."""
        self.file.save()


def restore(snapshots: Snapshots | ObservedFile[Any], news: StateNews) -> None:
    """Restore the state of the last run; without its history, all history is read again."""
    try:
        restored = snapshots.load()
    except StoreError as error:
        news.refused(snapshots.path.name, str(error))
    else:
        news.log.info("snapshot_restored" if restored else "no_snapshot", path=str(snapshots.path))

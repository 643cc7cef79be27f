"""State learned in shards: stored here, whatever becomes of the computing processes, and beyond this one.

It is joined and split by workload when the number of shards changes.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.app.compose import nothing_observed, observed_file, origins_path
from forecaster.app.restored import StateNews, restore
from forecaster.config.settings import Settings
from forecaster.cycle.lead_times import PersistedStartUps
from forecaster.cycle.observed import VERSION, Observed, PersistedColumn, PersistedObservations, packed, unpacked
from forecaster.domain.window import EPOCH
from forecaster.errors import StoreError
from forecaster.horizontal.columns import Table
from forecaster.horizontal.gate_states import Gates
from forecaster.horizontal.state import State
from forecaster.sources import request_origins
from forecaster.store.database import DatabaseAddress
from forecaster.store.shards import ShardState, ShardStates
from forecaster.store.signing import StateKeys
from forecaster.store.state import ObservedFile

Place = Callable[[str], int]
"""The shard of a namespace."""

Before = Callable[[], "ShardState | None"]
"""State learned by a service without shards until its last evaluation time, if there was one."""


def shard_of(namespace: str, shards: int) -> int:
    """Return the shard of a namespace: the same in every process and every cycle."""
    return zlib.crc32(namespace.encode()) % shards


@dataclass(slots=True)
class LearnedShards:
    """The states of all shards. No decision is made before those of the previous process are read."""

    shards: int
    store: ShardStates
    before: Before = lambda: None
    by_shard: dict[int, ShardState] = field(default_factory=dict)
    read: bool = False
    tell_refused: Callable[[str, str], None] = lambda _part, _why: None
    """Hears which part of the state is refused, and why."""
    refused: tuple[str, ...] = ()
    """Reasons why stored states were not restored, a line each; they are learned anew."""
    _written: dict[int, ShardState] = field(default_factory=dict)

    def restore(self) -> None:
        """Restore the states in the database, once.

        Raises:
            StoreError: it cannot be read.
        """
        if self.read:
            return
        shards, states, self.refused = self.store.read()
        if (state := self.before()) and state.at > latest_evaluation(states):
            shards, states = 1, {0: state}
        self.by_shard, self.read = states, True
        try:
            for state in states.values():
                Observed().restore(state.observed)
            if states and shards != self.shards:
                self.by_shard = divided(states, self.shards)
            else:
                self._written = dict(states)
        except msgspec.MsgspecError as error:
            self.by_shard = {}
            self.refused += (f"what shards have learned is not taken over ({error}); it is learned anew",)
        for why in self.refused:
            self.tell_refused("shards", why)

    def keep(self, shard: int, learned: ShardState) -> None:
        """Store the state of a shard."""
        self.by_shard[shard] = learned

    def divide(self, shards: int) -> None:
        """Divide the fleet into `shards` shards from now on; each gets the learned state of its namespaces."""
        if shards != self.shards:
            self.by_shard, self.shards = divided(self.by_shard, shards), shards

    def save(self) -> None:
        """Write changed states.

        Raises:
            StoreError: they cannot be written; they will be next time.
        """
        if not self.read:
            raise StoreError("the learned state of shards was not read yet, so nothing is written over it")
        changed = {shard: state for shard, state in self.by_shard.items() if self._written.get(shard) is not state}
        if changed:
            self.store.write(self.shards, changed)
            self._written = dict(self.by_shard)

    def close(self) -> None:
        """Give back the connections."""
        self.store.close()


def latest_evaluation(learned: Mapping[int, ShardState]) -> datetime:
    """The last evaluation time that shards know of."""
    return max((state.at for state in learned.values()), default=EPOCH)


def divided(learned: dict[int, ShardState], shards: int) -> dict[int, ShardState]:
    """Divide the learned states among another number of shards; shards without any are left out.

    Raises:
        msgspec.MsgspecError: a state is damaged, or of another version.
    """
    if not learned:
        return {}

    def place(namespace: str) -> int:
        return shard_of(namespace, shards)

    at = latest_evaluation(learned)
    observed = repartitioned([state.observed for state in learned.values()], place)
    origins = request_origins.repartitioned([state.origins for state in learned.values() if state.origins], place)
    return {shard: ShardState(at, text, origins.get(shard, b"")) for shard, text in observed.items()}


def learned_shards(settings: Settings, address: DatabaseAddress, keys: StateKeys, news: StateNews) -> LearnedShards:
    """Return the state of shards in the database at `address`, or that of the service before it had shards."""
    before = partial(undivided, settings, keys if keys.of_release else None, news)
    return LearnedShards(settings.sharding.shards, ShardStates(address, keys), before, tell_refused=news.refused)


def undivided(settings: Settings, keys: StateKeys | None, news: StateNews) -> ShardState | None:
    """Return the state learned before the fleet was divided; None where there is none."""
    observed, origins = observed_file(settings, nothing_observed(settings), keys), request_origins.Origins()
    restore(observed, news)
    if not observed.observed.fleet.row:
        return None
    restore(ObservedFile(origins_path(settings), origins, keys), news)
    at = datetime.fromtimestamp(observed.observed.decided_at, UTC)
    return ShardState(at, observed.observed.encoded(), origins.encoded())


def rejoined(
    settings: Settings, address: DatabaseAddress, keys: StateKeys, file: ObservedFile[Observed], news: StateNews
) -> ObservedFile[Observed]:
    """Return the state of the shards of a fleet divided until now, where it is newer than the file."""
    try:
        with closing(ShardStates(address, keys)) as states:
            _, by_shard, refused = states.read()
        for why in refused:
            news.refused("shards", why)
        if latest_evaluation(by_shard).timestamp() <= file.observed.decided_at:
            return file
        state, observed, origins = divided(by_shard, 1).get(0), nothing_observed(settings), request_origins.Origins()
        if state is None:  # each shard has failed from its first cycle on
            return file
        observed.restore(state.observed)
        if state.origins:
            origins.restore(state.origins)
            ObservedFile(origins_path(settings), origins, file.keys).save()
        return observed_file(settings, observed, file.keys)
    except (StoreError, msgspec.MsgspecError) as error:
        news.refused("shards", f"what shards have learned: {error}")
        return file


PERSISTED_LISTS = ("lead_times", "pods", "capacities")
"""Lists of records that name their workload."""


def repartitioned(persisted: Iterable[bytes], place: Place) -> dict[int, bytes]:
    """Distribute persisted observations of several shards (`Observed.encoded`) to the shards of a new partition.

    Raises:
        msgspec.MsgspecError: one of them is no such JSON, or that of another version.
    """
    parts = [msgspec.json.decode(text, type=PersistedObservations) for text in persisted]
    if others := {part.version for part in parts} - {VERSION}:
        raise msgspec.ValidationError(f"version {min(others)}, and not {VERSION}")
    return {shard: msgspec.json.encode(part) for shard, part in _cut(_joined(parts), place).items()}


def _joined(parts: Sequence[PersistedObservations]) -> PersistedObservations:
    """Join the parts."""
    lists = (*PERSISTED_LISTS, "gated", "fleet")
    return PersistedObservations(
        version=VERSION,
        images=_images(parts),
        pools=_pools(parts),
        gates=_joined_columns(Gates, [part.gates for part in parts]),
        state=_joined_columns(State, [part.state for part in parts]),
        **{name: tuple(chain.from_iterable(getattr(part, name) for part in parts)) for name in lists},
    )


def _images(parts: Sequence[PersistedObservations]) -> dict[str, PersistedStartUps]:
    """Merge what several shards know of an image: the one with the most pods counts."""
    images: dict[str, PersistedStartUps] = {}
    for image, start_ups in chain.from_iterable(part.images.items() for part in parts):
        if image not in images or len(start_ups.took) > len(images[image].took):
            images[image] = start_ups
    return images


def _pools(parts: Sequence[PersistedObservations]) -> dict[str, tuple[PersistedStartUps, ...]]:
    """Join the start-up times of each node pool; one pool runs workloads of several shards."""
    pools: defaultdict[str, list[PersistedStartUps]] = defaultdict(list)
    for pool, start_ups in chain.from_iterable(part.pools.items() for part in parts):
        pools[pool] += start_ups
    return {pool: tuple(start_ups) for pool, start_ups in pools.items()}


def _cut(known: PersistedObservations, place: Place) -> dict[int, PersistedObservations]:
    """Split observations by shard of the workloads' namespaces; images go to all shards."""
    fleet, gated = _places(known.fleet, place), _places(known.gated, place)
    lists = {name: _spread(getattr(known, name), place) for name in PERSISTED_LISTS}
    pools = {pool: _spread(start_ups, place) for pool, start_ups in known.pools.items()}
    shards = {*fleet.tolist(), *gated.tolist(), *chain.from_iterable(lists.values())}
    by_shard = {}
    for shard in shards:
        rows, judged = np.flatnonzero(fleet == shard), np.flatnonzero(gated == shard)
        by_shard[shard] = msgspec.structs.replace(
            known,
            fleet=tuple(known.fleet[row] for row in rows.tolist()),
            gated=tuple(known.gated[row] for row in judged.tolist()),
            gates=_columns_at(Gates, known.gates, judged),
            pools={pool: tuple(of_shard[shard]) for pool, of_shard in pools.items() if shard in of_shard},
            state=_columns_at(State, known.state, rows),
            **{name: tuple(of_shard[shard]) for name, of_shard in lists.items()},
        )
    return by_shard


def _places(rows: Sequence[tuple[tuple[str, str, str], float]], place: Place) -> NDArray[np.int64]:
    """[row] the shard of each."""
    return np.fromiter((place(id_[0]) for id_, _ in rows), np.int64, len(rows))


def _spread(records: Iterable[Any], place: Place) -> defaultdict[int, list[Any]]:
    by_shard: defaultdict[int, list[Any]] = defaultdict(list)
    for record in records:
        by_shard[place(record.id[0])].append(record)
    return by_shard


def _joined_columns(table: type[Table], parts: Iterable[Mapping[str, PersistedColumn]]) -> dict[str, PersistedColumn]:
    """Persisted rows of several tables, one after the other."""
    tables = [unpacked(table, part) for part in parts if part]
    if not tables:
        return {}
    ends = np.cumsum([part.rows for part in tables])
    placed = [(np.arange(end - part.rows, end), part) for end, part in zip(ends.tolist(), tables, strict=True)]
    return packed(table.side_by_side(int(ends[-1]), placed))


def _columns_at(
    table: type[Table], columns: Mapping[str, PersistedColumn], rows: NDArray[np.int64]
) -> dict[str, PersistedColumn]:
    """Some rows of a persisted table."""
    return packed(unpacked(table, columns).take(rows)) if columns else {}

"""What was learned in shards: it is here, whatever becomes of the processes that compute, and outlives this one."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from forecaster.app.compose import nothing_observed, observed_file, origins_path
from forecaster.app.restored import StateNews, restore
from forecaster.cycle import handed_over
from forecaster.cycle.observed import Observed
from forecaster.domain.window import EPOCH
from forecaster.errors import StoreError
from forecaster.sources import request_origins
from forecaster.store.shards import ShardState, ShardStates
from forecaster.store.state import ObservedFile

if TYPE_CHECKING:
    from forecaster.config.settings import Settings
    from forecaster.store.signing import StateKeys

Before = Callable[[], "ShardState | None"]
"""What a service without shards has learned until its last evaluation time, where there was one."""


def shard_of(namespace: str, shards: int) -> int:
    """Which shard a namespace is in: the same one in every process and in every cycle."""
    return zlib.crc32(namespace.encode()) % shards


@dataclass(slots=True)
class LearnedShards:
    """The states of all shards. Nothing is decided before those of the process before this one are read."""

    shards: int
    store: ShardStates
    before: Before = lambda: None
    of: dict[int, ShardState] = field(default_factory=dict)
    read: bool = False
    tell_refused: Callable[[str, str], None] = lambda _part, _why: None
    """Hears which part of the state is refused, and why."""
    refused: tuple[str, ...] = ()
    """Why something that lay there was not taken over, a line each; it is learned anew."""
    _written: dict[int, ShardState] = field(default_factory=dict)

    def recall(self) -> None:
        """Take over what lies in the database, once.

        Raises:
            StoreError: it cannot be read.
        """
        if self.read:
            return
        shards, found, self.refused = self.store.read()
        if (one := self.before()) and one.at > newest(found):
            shards, found = 1, {0: one}
        self.of, self.read = found, True
        try:
            for one in found.values():
                Observed().restore(one.observed)
            if found and shards != self.shards:
                self.of = divided(found, self.shards)
            else:
                self._written = dict(found)
        except msgspec.MsgspecError as error:
            self.of = {}
            self.refused += (f"what shards have learned is not taken over ({error}); it is learned anew",)
        for why in self.refused:
            self.tell_refused("shards", why)

    def keep(self, shard: int, learned: ShardState) -> None:
        """What a shard knows now."""
        self.of[shard] = learned

    def divide(self, shards: int) -> None:
        """Have so many shards from now on; each takes over what was learned of its namespaces."""
        if shards != self.shards:
            self.of, self.shards = divided(self.of, shards), shards

    def save(self) -> None:
        """Write what has changed.

        Raises:
            StoreError: it cannot be written, and will be next time.
        """
        if not self.read:
            raise StoreError("what shards have learned was not read yet, so nothing is written over it")
        changed = {shard: one for shard, one in self.of.items() if self._written.get(shard) is not one}
        if changed:
            self.store.write(self.shards, changed)
            self._written = dict(self.of)

    def close(self) -> None:
        """Give back the connections."""
        self.store.close()


def newest(learned: Mapping[int, ShardState]) -> datetime:
    """The last evaluation time that shards know of."""
    return max((one.at for one in learned.values()), default=EPOCH)


def divided(learned: dict[int, ShardState], shards: int) -> dict[int, ShardState]:
    """What another number of shards has to know; a shard of which nothing was learned is left out.

    Raises:
        msgspec.MsgspecError: it is damaged, or of another version.
    """
    if not learned:
        return {}

    def place(namespace: str) -> int:
        return shard_of(namespace, shards)

    at = newest(learned)
    observed = handed_over.handed_over([one.observed for one in learned.values()], place)
    origins = request_origins.handed_over([one.origins for one in learned.values() if one.origins], place)
    return {shard: ShardState(at, text, origins.get(shard, b"")) for shard, text in observed.items()}


def learned_shards(settings: Settings, address: str, keys: StateKeys, news: StateNews) -> LearnedShards:
    """What shards have learned, in the database at `address`, or what the service did before it had any."""
    before = partial(undivided, settings, keys if keys.of_release else None, news)
    return LearnedShards(settings.sharding.shards, ShardStates(address, keys), before, tell_refused=news.refused)


def undivided(settings: Settings, keys: StateKeys | None, news: StateNews) -> ShardState | None:
    """What the service has learned before its fleet was divided; None where nothing of it lies there."""
    observed, origins = observed_file(settings, nothing_observed(settings), keys), request_origins.Origins()
    restore(observed, news)
    if not observed.observed.fleet.row:
        return None
    restore(ObservedFile(origins_path(settings), origins, keys), news)
    at = datetime.fromtimestamp(observed.observed.decided_at, UTC)
    return ShardState(at, observed.observed.kept(), origins.kept())


def rejoined(
    settings: Settings, address: str, keys: StateKeys, file: ObservedFile[Observed], news: StateNews
) -> ObservedFile[Observed]:
    """What the shards of a fleet have learned that was divided until now, where that is newer than the file."""
    try:
        with closing(ShardStates(address, keys)) as states:
            _, found, refused = states.read()
        for why in refused:
            news.refused("shards", why)
        if newest(found).timestamp() <= file.observed.decided_at:
            return file
        one, observed, origins = divided(found, 1).get(0), nothing_observed(settings), request_origins.Origins()
        if one is None:  # each shard has failed from its first cycle on
            return file
        observed.restore(one.observed)
        if one.origins:
            origins.restore(one.origins)
            ObservedFile(origins_path(settings), origins, file.keys).save()
        return observed_file(settings, observed, file.keys)
    except (StoreError, msgspec.MsgspecError) as error:
        news.refused("shards", f"what shards have learned: {error}")
        return file

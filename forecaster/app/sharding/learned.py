"""What was learned in shards: it is here, whatever becomes of the processes that compute, and outlives this one."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from forecaster.cycle import handed_over
from forecaster.cycle.observed import Observed
from forecaster.domain.window import EPOCH
from forecaster.errors import StoreError
from forecaster.sources import request_origins
from forecaster.store.shards import ShardState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.store.shards import ShardStates

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
    damaged: str = ""
    """Why what lay there was not taken over; it is learned anew."""
    _written: dict[int, ShardState] = field(default_factory=dict)

    def recall(self) -> None:
        """Take over what lies in the database, once.

        Raises:
            StoreError: it cannot be read.
        """
        if self.read:
            return
        shards, found = self.store.read()
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
            self.of, self.damaged = {}, f"what shards have learned is not taken over ({error}); it is learned anew"

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


def joined(learned: dict[int, ShardState]) -> ShardState:
    """What shards have learned, for a service that is not divided.

    Raises:
        msgspec.MsgspecError: it is damaged, or of another version.
    """
    return divided(learned, 1)[0]


def divided(learned: dict[int, ShardState], shards: int) -> dict[int, ShardState]:
    """What another number of shards has to know."""
    if not learned:
        return {}

    def place(namespace: str) -> int:
        return shard_of(namespace, shards)

    at = newest(learned)
    observed = handed_over.handed_over([one.observed for one in learned.values()], place)
    origins = request_origins.handed_over([one.origins for one in learned.values() if one.origins], place)
    return {shard: ShardState(at, text, origins.get(shard, b"")) for shard, text in observed.items()}

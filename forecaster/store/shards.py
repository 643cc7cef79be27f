"""ShardStates: state learned from the workloads of each shard, in SQLite or PostgreSQL."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Row, delete, or_, select

from forecaster.errors import StoreError
from forecaster.store.database import Database, DatabaseAddress, shards
from forecaster.store.signing import StateKeys, inflated

QUICKLY = 1
"""Level of compression: half of a state, at 100 MB a second."""


class ShardState(NamedTuple):
    """Learned state of a shard's workloads until an evaluation time."""

    at: datetime
    observed: bytes
    """Encoded observations (`Observed.encoded`)."""
    origins: bytes
    """Encoded origins (`Origins.encoded`); empty where the settings state them."""


class StoredShards(NamedTuple):
    """States of shards in the database."""

    shards: int
    """Number of shards that the fleet was divided into; 0 where nothing was learned."""
    states: dict[int, ShardState]
    refused: tuple[str, ...] = ()
    """Reasons why states of shards are not restored, a line each."""


class ShardStates:
    """One row a shard, signed by a key of the release. Writing is left to one process."""

    def __init__(self, address: DatabaseAddress, keys: StateKeys) -> None:
        self._database, self._keys = Database(address), keys

    def read(self) -> StoredShards:
        """Read the learned states; rows that are damaged, or not signed by a key of ours, are refused.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._database.transaction() as connection:
            rows = connection.execute(select(shards)).all()
        states, refused = dict[int, ShardState](), []
        for row in rows:
            try:
                states[row.shard] = self._state(row)
            except (StoreError, zlib.error, TypeError) as error:
                problem = str(error) if isinstance(error, StoreError) else f"shard {row.shard} is damaged ({error})"
                refused.append(f"ledger {self._database}: {problem}")
        return StoredShards(max((row.of for row in rows if row.shard in states), default=0), states, tuple(refused))

    def _state(self, row: Row[tuple[object, ...]]) -> ShardState:
        """Return the state of one row. Raises StoreError, zlib.error, TypeError."""
        origins = inflated(row.origins)
        observed = self._keys.verified(inflated(row.observed), _subject(row.shard, row.of, row.at), origins)
        return ShardState(datetime.fromtimestamp(row.at, UTC), observed, origins)

    def write(self, count: int, learned: Mapping[int, ShardState]) -> None:
        """Replace the states of these shards of `count`, and delete those of any other number of shards.

        Raises:
            StoreError: nothing was written.
        """
        insert = self._database.insert(shards)
        renewed = {name: insert.excluded[name] for name in ("of", "at", "observed", "origins")}
        rows = [self._row(shard, count, state) for shard, state in learned.items()]
        with self._database.transaction() as connection:
            connection.execute(delete(shards).where(or_(shards.c.of != count, shards.c.shard >= count)))
            if rows:
                connection.execute(insert.on_conflict_do_update(index_elements=["shard"], set_=renewed), rows)

    def close(self) -> None:
        """Give back the connections."""
        self._database.close()

    def _row(self, shard: int, count: int, state: ShardState) -> dict[str, object]:
        at = int(state.at.timestamp())
        signed = self._keys.signed(state.observed, _subject(shard, count, at), state.origins)
        observed, origins = (zlib.compress(text, QUICKLY) for text in (signed, state.origins))
        return {"shard": shard, "of": count, "at": at, "observed": observed, "origins": origins}


def _subject(shard: int, count: int, at: int) -> str:
    """A row is of one shard and instant: its signature counts for no other."""
    return f"shard {shard} of {count} at {at}"

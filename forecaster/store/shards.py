"""ShardStates: what was learned of the workloads of each shard, in SQLite or PostgreSQL."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Row, delete, or_, select

from forecaster.errors import StoreError
from forecaster.store.database import Database, shards
from forecaster.store.signing import StateKeys, inflated

if TYPE_CHECKING:
    from collections.abc import Mapping


QUICKLY = 1
"""Level of compression: half of a state, at 100 MB a second."""


class ShardState(NamedTuple):
    """What was learned of a shard's workloads until an evaluation time."""

    at: datetime
    observed: bytes
    """Encoded observations (`Observed.kept`)."""
    origins: bytes
    """Encoded origins (`Origins.kept`); empty where the settings state them."""


class StoredShards(NamedTuple):
    """What lies in the database."""

    of: int
    """Number of shards that the fleet was divided into; 0 where nothing was learned."""
    states: dict[int, ShardState]
    refused: tuple[str, ...] = ()
    """Why the state of a shard is not taken over, a line each."""


class ShardStates:
    """One row a shard, signed by a key of the release. Writing is left to one process."""

    def __init__(self, address: str, keys: StateKeys) -> None:
        self._database, self._keys = Database(address), keys

    def read(self) -> StoredShards:
        """Read what was learned; rows that are damaged, or that no key of ours signed, are refused and not known.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._database.transaction() as connection:
            rows = connection.execute(select(shards)).all()
        found, refused = dict[int, ShardState](), []
        for row in rows:
            try:
                found[row.shard] = self._state(row)
            except (StoreError, zlib.error, TypeError) as error:
                told = str(error) if isinstance(error, StoreError) else f"shard {row.shard} is damaged ({error})"
                refused.append(f"ledger {self._database}: {told}")
        return StoredShards(max((row.of for row in rows if row.shard in found), default=0), found, tuple(refused))

    def _state(self, row: Row[tuple[object, ...]]) -> ShardState:
        """Return the state of one row. Raises StoreError, zlib.error, TypeError."""
        origins = inflated(row.origins)
        observed = self._keys.verified(inflated(row.observed), _what(row.shard, row.of, row.at), origins)
        return ShardState(datetime.fromtimestamp(row.at, UTC), observed, origins)

    def write(self, of: int, learned: Mapping[int, ShardState]) -> None:
        """Put these in the place of what is there, and take away what is of no shard of this number of them.

        Raises:
            StoreError: nothing was written.
        """
        insert = self._database.insert(shards)
        renewed = {name: insert.excluded[name] for name in ("of", "at", "observed", "origins")}
        rows = [self._row(shard, of, one) for shard, one in learned.items()]
        with self._database.transaction() as connection:
            connection.execute(delete(shards).where(or_(shards.c.of != of, shards.c.shard >= of)))
            if rows:
                connection.execute(insert.on_conflict_do_update(index_elements=["shard"], set_=renewed), rows)

    def close(self) -> None:
        """Give back the connections."""
        self._database.close()

    def _row(self, shard: int, of: int, one: ShardState) -> dict[str, object]:
        at = int(one.at.timestamp())
        signed = self._keys.signed(one.observed, _what(shard, of, at), one.origins)
        observed, origins = (zlib.compress(text, QUICKLY) for text in (signed, one.origins))
        return {"shard": shard, "of": of, "at": at, "observed": observed, "origins": origins}


def _what(shard: int, of: int, at: int) -> str:
    """A row is of one shard and instant: its signature counts for no other."""
    return f"shard {shard} of {of} at {at}"

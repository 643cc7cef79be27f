"""ShardStates: what was learned of the workloads of each shard, in SQLite or PostgreSQL."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, select

from forecaster.errors import StoreError
from forecaster.store.database import Database, shards

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


class ShardStates:
    """One row a shard. Writing is left to one process."""

    def __init__(self, address: str) -> None:
        self._database = Database(address)

    def read(self) -> tuple[int, dict[int, ShardState]]:
        """How many shards there were, and what was learned of each; 0 where nothing was.

        Raises:
            StoreError: the database cannot be read, or holds something else.
        """
        with self._database.transaction() as connection:
            rows = connection.execute(select(shards)).all()
        try:
            found = {
                row.shard: ShardState(
                    datetime.fromtimestamp(row.at, UTC), zlib.decompress(row.observed), zlib.decompress(row.origins)
                )
                for row in rows
            }
        except zlib.error as error:
            raise StoreError(f"ledger {self._database}: `shards` is damaged ({error}); empty that table") from error
        return max((row.of for row in rows), default=0), found

    def write(self, of: int, learned: Mapping[int, ShardState]) -> None:
        """Put these in the place of what is there, and take away what is of another number of shards.

        Raises:
            StoreError: nothing was written.
        """
        insert = self._database.insert(shards)
        renewed = {name: insert.excluded[name] for name in ("of", "at", "observed", "origins")}
        rows = [_row(shard, of, one) for shard, one in learned.items()]
        with self._database.transaction() as connection:
            connection.execute(delete(shards).where(shards.c.of != of))
            if rows:
                connection.execute(insert.on_conflict_do_update(index_elements=["shard"], set_=renewed), rows)

    def close(self) -> None:
        """Give back the connections."""
        self._database.close()


def _row(shard: int, of: int, one: ShardState) -> dict[str, object]:
    observed, origins = (zlib.compress(text, QUICKLY) for text in (one.observed, one.origins))
    return {"shard": shard, "of": of, "at": int(one.at.timestamp()), "observed": observed, "origins": origins}

"""State that shards have learned, on real databases: nothing of it is lost."""

from __future__ import annotations

import zlib
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, text

from forecaster.app.sharding.cycle import ShardedCycle
from forecaster.errors import StoreError
from forecaster.store.database import Database
from forecaster.store.ledger import SqlLedger
from forecaster.store.move import move
from forecaster.store.shards import ShardState, ShardStates
from forecaster.store.signing import MAX_BYTES, StateKeys, keys_of_directory
from tests.support import postgres
from tests.support.builders import NOON, after, workload, workload_id
from tests.support.composed import composed, published, recorded_cluster, tick
from tests.support.recommendations import recommendation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forecaster.app.service import Service

KEYS = StateKeys((b"k" * 64,), "Secret forecaster/forecaster-state")
FLEET = [workload(id=workload_id("web", f"team-{team}")) for team in range(4)]


def learned(minute: int, words: str = "of this shard") -> ShardState:
    return ShardState(NOON + timedelta(minutes=minute), f'{{"observed":"{words}"}}'.encode(), b"")


def test_what_was_written_is_read_and_what_changed_is_written_again(address: str) -> None:
    with closing(ShardStates(address, KEYS)) as states:
        assert states.read() == (0, {}, ())
        states.write(3, {0: learned(0), 2: learned(0)})
        states.write(3, {2: learned(1, "later")})
        assert states.read() == (3, {0: learned(0), 2: learned(1, "later")}, ())


def test_another_number_of_shards_takes_the_place_of_the_one_before(address: str) -> None:
    with closing(ShardStates(address, KEYS)) as states:
        states.write(3, {0: learned(0), 2: learned(0)})
        states.write(2, {1: learned(1)})
        assert states.read() == (2, {1: learned(1)}, ())


def written(address: str, statement: str, **values: object) -> None:
    """Change the table as somebody else would."""
    engine = create_engine(address)
    with engine.begin() as connection:
        connection.execute(text(statement), values)
    engine.dispose()


@pytest.mark.parametrize(
    ("statement", "value", "why"),
    [
        ("UPDATE shards SET observed = :value WHERE shard = 1", b"something else", "shard 1 is damaged"),
        ("UPDATE shards SET observed = :value WHERE shard = 1", zlib.compress(b'{"version":3}'), "not signed by a key"),
        ("UPDATE shards SET origins = :value WHERE shard = 1", zlib.compress(b"others"), "not signed by a key"),
        ("UPDATE shards SET at = at + length(:value) WHERE shard = 1", b"later", "not signed by a key"),
        (
            "UPDATE shards SET observed = :value WHERE shard = 1",
            lambda: zlib.compress(bytes(MAX_BYTES + 1), 1),
            f"more than {MAX_BYTES}",
        ),
    ],
    ids=["damaged", "forged", "other origins", "later", "enormous"],
)
def test_a_row_that_we_did_not_write_is_refused_by_its_shard_and_the_others_are_read(
    address: str, statement: str, value: bytes | Callable[[], bytes], why: str
) -> None:
    with closing(ShardStates(address, KEYS)) as states:
        states.write(2, {0: learned(0), 1: learned(0)})
        written(address, statement, value=value if isinstance(value, bytes) else value())
        states_read = states.read()
        assert states_read[:2] == (2, {0: learned(0)})
        (refused,) = states_read.refused
        assert "shard 1" in refused
        assert why in refused
        states.write(2, {1: learned(1)})
        assert states.read() == (2, {0: learned(0), 1: learned(1)}, ())


def test_a_row_beyond_the_last_shard_goes_with_the_next_write(address: str) -> None:
    with closing(ShardStates(address, KEYS)) as states:
        states.write(2, {0: learned(0), 1: learned(0)})
        written(address, "UPDATE shards SET shard = 99 WHERE shard = 1")
        assert "shard 99" in states.read().refused[0]
        states.write(2, {0: learned(1)})
        assert states.read() == (2, {0: learned(1)}, ())


def test_a_move_takes_them_along(address: str, tmp_path: Path) -> None:
    source = f"sqlite:///{tmp_path}/source.db"
    with closing(SqlLedger(source, keep=timedelta(days=30))) as ledger:
        ledger.record(NOON, [recommendation()])
    with closing(ShardStates(source, KEYS)) as states:
        states.write(2, {0: learned(0), 1: learned(1)})
    with closing(Database(source)) as old, closing(Database(address)) as new:
        assert [(table.table, table.rows) for table in move(old, new, lambda *_: None)][-1] == ("shards", 2)
    with closing(ShardStates(address, KEYS)) as states:
        assert states.read() == (2, {0: learned(0), 1: learned(1)}, ())


def shards_of(service: Service) -> dict[int, ShardState]:
    assert isinstance(service.cycle, ShardedCycle)
    return service.cycle.learned.by_shard


@pytest.mark.postgres
def test_a_postgres_that_is_killed_loses_nothing_that_shards_have_learned(
    postgres_programs: tuple[Path, str], tmp_path: Path
) -> None:
    with (
        postgres.server(*postgres_programs, "synchronous_commit=on") as server,
        recorded_cluster(FLEET) as cluster,
    ):
        given = {"sharding": {"enabled": True, "shards": 3}, "state": {"directory": str(tmp_path), "database": server}}
        with composed(cluster, tmp_path, **given) as service:
            saved = service.persisted[0].part
            tick(service, after(0))
            postgres.stop(*postgres_programs, server)
            tick(service, after(1))
            assert len(published(tmp_path).entries) == len(FLEET)
            with pytest.raises(StoreError, match="see whether the database answers"):
                saved.save()
            postgres.restart(*postgres_programs, server)
            saved.save()
            before = dict(shards_of(service))
            assert {state.at for state in before.values()} == {after(1)}
        with composed(cluster, tmp_path, **given) as service:
            tick(service, after(2))
            assert service.report
            assert service.report.failures == ()
            assert shards_of(service).keys() == before.keys()
        with closing(ShardStates(server, keys_of_directory(tmp_path))) as states:
            assert states.read()[1].keys() == before.keys()

"""A PostgreSQL that is killed, and a forecaster that is started again: nothing that was kept is lost, or kept twice."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.report import ForecastScore
from forecaster.domain.signal import CPU
from forecaster.errors import StoreError
from forecaster.store.database import Database
from forecaster.store.ledger import SqlLedger
from forecaster.store.move import OWNER_COLUMNS, ROWS_A_STATEMENT, move
from tests.support import postgres
from tests.support.accuracies import accuracy_of
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Connection

WEB = workload_id("web")
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def durable(postgres_programs: tuple[Path, str]) -> Iterator[str]:
    """The address of a server that has written what it has committed, as PostgreSQL is by default."""
    with postgres.server(*postgres_programs, "synchronous_commit=on") as address:
        yield address


def open_ledger(address: str) -> SqlLedger:
    return SqlLedger(address, keep=timedelta(days=30))


def record(ledger: SqlLedger, minute: int, replicas: int, name: str = "web") -> None:
    ledger.record(NOON + minute * MINUTE, [recommendation(workload_id(name), replicas=replicas)])


def kept(ledger: SqlLedger, name: str = "web") -> list[tuple[int, int | None]]:
    return [
        (one.at.minute, one.decided.replicas) for one in ledger.changes_of([workload_id(name)], NOON)[workload_id(name)]
    ]


@pytest.mark.postgres
def test_a_killed_database_is_written_to_again_as_soon_as_it_is_back(
    durable: str, postgres_programs: tuple[Path, str]
) -> None:
    with closing(open_ledger(durable)) as ledger:
        record(ledger, 0, 4)
        ledger.score([ForecastScore(WEB, CPU, NOON, NOON, "ridge", 0.9, 2.0, 3.0, 4.0)])
        postgres.restart(*postgres_programs, durable)
        record(ledger, 1, 5)
        postgres.stop(*postgres_programs, durable)
        with pytest.raises(StoreError, match="see whether the database answers"):
            record(ledger, 2, 6)
        postgres.restart(*postgres_programs, durable)
        record(ledger, 3, 6)
        assert kept(ledger) == [(0, 4), (1, 5), (3, 6)]
        assert [one.accuracy.count for one in accuracy_of(durable, WEB, NOON)] == [1]


@pytest.mark.postgres
def test_a_move_whose_database_is_killed_is_gone_on_with(
    durable: str, postgres_programs: tuple[Path, str], tmp_path: Path
) -> None:
    fleet = [workload_id(f"moved-{number:03}") for number in range(3 * ROWS_A_STATEMENT)]
    source = f"sqlite:///{tmp_path}/ledger.db"
    with closing(open_ledger(source)) as ledger:
        # Later than all that other stories have left in this server.
        ledger.record(NOON + timedelta(hours=1), [recommendation(one) for one in fleet])
    parts = iter(range(100))

    def killed(_table: str, _share: float) -> None:
        if next(parts) == 4:
            postgres.stop(*postgres_programs, durable)

    with closing(Database(source)) as old, closing(Database(durable)) as new:
        _emptied(new)
        with pytest.raises(StoreError, match="see whether the database answers"):
            move(old, new, killed)
        postgres.restart(*postgres_programs, durable)
        rest = {one.table: (one.rows, one.copied) for one in move(old, new, lambda *_: None)}
    assert rest == {"workloads": (75, 0), "decisions": (75, 2 * ROWS_A_STATEMENT), "scores": (0, 0)}


def _emptied(database: Database) -> None:
    with database.transaction() as connection:
        for table in OWNER_COLUMNS:
            connection.execute(table.delete())


def test_a_commit_that_was_not_answered_is_not_kept_twice(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_ledger(address)) as ledger:
        record(ledger, 0, 4)
        answered = Database.transaction

        @contextmanager
        def unanswered(self: Database) -> Iterator[Connection]:
            with answered(self) as connection:
                yield connection
            raise StoreError("server closed the connection unexpectedly")

        monkeypatch.setattr(Database, "transaction", unanswered)
        with pytest.raises(StoreError):
            record(ledger, 1, 5)
        monkeypatch.undo()
        record(ledger, 2, 5)
        assert kept(ledger) == [(0, 4), (1, 5)]


def test_one_replica_goes_on_where_the_other_was_lost(address: str) -> None:
    lost = open_ledger(address)
    for minute, replicas in enumerate((4, 5)):
        record(lost, minute, replicas)
    with closing(open_ledger(address)) as taken_over:
        record(taken_over, 2, 5)
        record(taken_over, 3, 6)
        assert kept(taken_over) == [(0, 4), (1, 5), (3, 6)]
    lost.close()

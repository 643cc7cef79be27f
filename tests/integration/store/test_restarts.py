"""A PostgreSQL that is killed, and a forecaster that is started again: nothing that was kept is lost, or kept twice."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from forecaster.domain.report import ForecastScore
from forecaster.domain.signal import CPU
from forecaster.errors import StoreError
from forecaster.store.database import Database
from forecaster.store.ledger import SqlLedger
from forecaster.store.move import OWNER_COLUMNS, ROWS_A_STATEMENT, move
from tests.support import postgres
from tests.support.accuracies import accuracy_of
from tests.support.builders import after
from tests.support.composed import composed, published, recorded_cluster, tick
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def changes(ledger: SqlLedger, name: str = "web") -> list[tuple[int, int | None]]:
    return [
        (change.at.minute, change.decided.replicas)
        for change in ledger.changes_of([workload_id(name)], NOON)[workload_id(name)]
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
        assert changes(ledger) == [(0, 4), (1, 5), (3, 6)]
        assert [row.accuracy.count for row in accuracy_of(durable, WEB, NOON)] == [1]


@pytest.mark.postgres
def test_a_database_that_stands_still_ends_the_wait_of_one_cycle_and_not_all_cycles(
    postgres_programs: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing closes its connections: the disk of the server hangs, or a commit waits for a standby that is lost."""
    monkeypatch.setattr("forecaster.store.database.SILENT_SECONDS", 1.0)
    with (
        postgres.server(*postgres_programs) as server,
        recorded_cluster() as cluster,
        composed(cluster, tmp_path, state={"directory": str(tmp_path), "database": server}) as service,
    ):
        tick(service, after(0))
        still = postgres.processes(server)
        for process in still:
            os.kill(process, signal.SIGSTOP)
        tick(service, after(1))
        for process in still:
            os.kill(process, signal.SIGCONT)
        assert service.report
        assert any("see whether the database answers" in line for line in service.report.failures)
        assert published(tmp_path).meta.published_at == after(1)
        tick(service, after(2))
        assert service.report.failures == ()


@pytest.mark.postgres
def test_a_database_whose_answers_come_byte_by_byte_ends_the_wait_of_one_cycle_and_not_all_cycles(
    postgres_programs: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forecaster.store.database.WHOLE_ANSWER_SECONDS", 1.0)
    drips = threading.Event()
    with (
        postgres.server(*postgres_programs) as server,
        postgres.byte_by_byte(server, drips) as address,
        recorded_cluster() as cluster,
        composed(cluster, tmp_path, state={"directory": str(tmp_path), "database": address}) as service,
    ):
        tick(service, after(0))
        drips.set()
        tick(service, after(1))
        drips.clear()
        assert service.report
        assert any("see whether the database answers" in line for line in service.report.failures)
        assert published(tmp_path).meta.published_at == after(1)
        tick(service, after(2))
        assert service.report.failures == ()


@pytest.mark.postgres
def test_a_rotated_password_is_read_from_its_file_once_the_old_one_is_refused(
    postgres_programs: tuple[Path, str], tmp_path: Path
) -> None:
    with postgres.server(*postgres_programs) as server, recorded_cluster() as cluster:
        hba = Path(str(make_url(server).query["host"])) / "data" / "pg_hba.conf"
        hba.write_text("local all writer scram-sha-256\nlocal all all trust\n")
        rotate(server, "CREATE ROLE writer SUPERUSER LOGIN", "first", tmp_path / "address")
        state = {"directory": str(tmp_path), "database_file": str(tmp_path / "address")}
        with composed(cluster, tmp_path, state=state) as service:
            tick(service, after(0))
            rotate(server, "ALTER ROLE writer", "second", tmp_path / "address")
            postgres.restart(*postgres_programs, server)
            tick(service, after(1))
            tick(service, after(2))
            assert service.report
            assert service.report.failures == ()


def rotate(server: str, statement: str, password: str, address: Path) -> None:
    """Give the user another password, and write it into the file."""
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"{statement} PASSWORD '{password}'"))
        connection.execute(text("SELECT pg_reload_conf()"))
    engine.dispose()
    there = make_url(server).set(username="writer", password=password)
    address.write_text(there.render_as_string(hide_password=False))


@pytest.mark.postgres
def test_a_move_whose_database_is_killed_is_gone_on_with(
    durable: str, postgres_programs: tuple[Path, str], tmp_path: Path
) -> None:
    fleet = [workload_id(f"moved-{number:03}") for number in range(3 * ROWS_A_STATEMENT)]
    source = f"sqlite:///{tmp_path}/ledger.db"
    with closing(open_ledger(source)) as ledger:
        # Later than anything that other tests have left in this server.
        ledger.record(NOON + timedelta(hours=1), [recommendation(id_) for id_ in fleet])
    parts = iter(range(100))

    def killed(_table: str, _share: float) -> None:
        if next(parts) == 4:
            postgres.stop(*postgres_programs, durable)

    with closing(Database(source)) as old, closing(Database(durable)) as new:
        _emptied(new)
        with pytest.raises(StoreError, match="see whether the database answers"):
            move(old, new, killed)
        postgres.restart(*postgres_programs, durable)
        rest = {table.table: (table.rows, table.copied) for table in move(old, new, lambda *_: None)}
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
        assert changes(ledger) == [(0, 4), (1, 5)]


def test_one_replica_goes_on_where_the_other_was_lost(address: str) -> None:
    lost = open_ledger(address)
    for minute, replicas in enumerate((4, 5)):
        record(lost, minute, replicas)
    with closing(open_ledger(address)) as taken_over:
        record(taken_over, 2, 5)
        record(taken_over, 3, 6)
        assert changes(taken_over) == [(0, 4), (1, 5), (3, 6)]
    lost.close()

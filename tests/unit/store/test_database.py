"""Opening a database file that another process is just creating."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from forecaster.errors import ConfigError, StoreError
from forecaster.store import database

if TYPE_CHECKING:
    from pathlib import Path


class BusyConnection(sqlite3.Connection):
    """Answers the first questions for the journal as SQLite does while another process switches it: at once, locked."""

    refusals = 3

    def execute(self, sql: str, *args: object) -> sqlite3.Cursor:  # type: ignore[override]
        if "journal_mode" in sql and self.refusals:
            self.refusals -= 1
            raise sqlite3.OperationalError("database is locked")
        return super().execute(sql, *args)


def connection_to(path: Path) -> BusyConnection:
    return sqlite3.connect(path / "ledger.db", factory=BusyConnection)


def test_a_file_that_another_replica_is_just_creating_is_waited_for(tmp_path: Path) -> None:
    connection = connection_to(tmp_path)
    database.prepare_sqlite(connection, None)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_that_stays_locked_is_an_error_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connection_to(tmp_path)
    monkeypatch.setattr(database, "LOCK_WAIT_SECONDS", -1)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        database.prepare_sqlite(connection, None)


@pytest.mark.parametrize("address", ["writer:Xy@zzy@127.0.0.1", "writer:Xyzzy@127.0.0.1:port", "writer:Xyzzy@[::1"])
def test_an_address_that_cannot_be_meant_so_is_refused_without_a_part_of_its_password(address: str) -> None:
    with pytest.raises(ConfigError, match=r"state\.database") as refused:
        database.Database(f"postgresql://{address}/forecasts")
    assert "zzy" not in str(refused.value)


def test_a_file_in_the_place_of_a_server_is_refused() -> None:
    with pytest.raises(ConfigError, match="sqlite:///FILE"):
        database.Database("sqlite://var/lib/ledger.sqlite")


def test_while_the_file_of_an_address_is_replaced_the_last_one_counts(tmp_path: Path) -> None:
    """An empty file is no address for the moment; the failure before it is that of a file that is no database."""
    ledger = tmp_path / "ledger.db"
    ledger.write_text("no database")
    addresses = iter([f"sqlite:///{ledger}", ""])
    opened = database.Database(lambda: next(addresses))
    with pytest.raises(StoreError, match="not a database"), opened.transaction():
        pass
    ledger.unlink()
    with opened.transaction():
        pass
    opened.close()

"""Tables of other versions, on real databases."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text
from typer.testing import CliRunner

from forecaster.cli import app
from forecaster.errors import StoreError
from forecaster.store import migrations
from forecaster.store.database import metadata
from forecaster.store.ledger import SqlLedger
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click.testing import Result
    from sqlalchemy import Engine

KEEP = timedelta(days=30)
NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "0004", "0003"


def upgrade():
    op.add_column("workloads", sa.Column("note", sa.Text))
    {then}
"""


@pytest.fixture
def engine(address: str) -> Iterator[Engine]:
    engine = create_engine(address)
    yield engine
    engine.dispose()


def recorded(address: str) -> int:
    """Decisions that are kept after one more is recorded."""
    with closing(SqlLedger(address, keep=KEEP)) as ledger:
        ledger.record(NOON, [recommendation()])
        return len(ledger.changes_of([recommendation().id], NOON)[recommendation().id])


def versions(engine: Engine) -> tuple[int, int]:
    """Versions of the tables by revisions, and as a forecaster from before revisions reads them."""
    with engine.connect() as connection:
        return migrations.version_of(connection), connection.scalar(text("SELECT version FROM schema")) or 0


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give the forecaster one more revision, which ends with the given statements."""
    versions = tmp_path / "migrations" / "versions"
    versions.mkdir(parents=True)
    folder = Path(migrations.__file__).parent
    shutil.copy(folder / "env.py", versions.parent)
    for script in (folder / "versions").glob("v*.py"):
        shutil.copy(script, versions)

    def released(then: str = "") -> None:
        (versions / "v0004_note.py").write_text(NEXT.format(then=then), encoding="utf-8")
        monkeypatch.setattr(migrations, "SCRIPTS", str(versions.parent))
        monkeypatch.setattr(migrations, "LATEST_REVISION", 4)
        monkeypatch.setattr("forecaster.store.database.LATEST_REVISION", 4)

    return released


def test_the_newest_revision_is_the_last_script() -> None:
    config = Config()
    config.set_main_option("script_location", migrations.SCRIPTS)
    assert ScriptDirectory.from_config(config).get_current_head() == f"{migrations.LATEST_REVISION:04}"


def test_revisions_make_the_tables_that_the_ledger_uses(address: str, engine: Engine) -> None:
    assert recorded(address) == 1
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert versions(engine) == (3, 3)


def history(address: str, folder: Path) -> Result:
    """Run `forecaster history` on a database."""
    settings = folder / "settings.yaml"
    settings.write_text(f"state: {{database: '{address}'}}\n")
    return CliRunner().invoke(app, ["history", "--config", str(settings), "--length", "9999d"])


def test_a_command_that_reads_makes_no_tables(address: str, engine: Engine, tmp_path: Path) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE users (name TEXT)"))
    refused = history(address, tmp_path).exception
    assert "no decisions are recorded in" in str(refused)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["users"]


def test_a_command_that_reads_leaves_older_tables_to_the_service(
    address: str, engine: Engine, tmp_path: Path, next_release: Callable[..., None]
) -> None:
    recorded(address)
    assert "web" in history(address, tmp_path).stdout
    next_release()
    refused = str(history(address, tmp_path).exception)
    assert "has version 3 of the tables, and this forecaster knows 4" in refused
    assert "wait until its service is of this release" in refused
    assert versions(engine) == (3, 3)


def from_before_revisions(engine: Engine) -> None:
    metadata.create_all(engine, [table for table in metadata.sorted_tables if table.name != "shards"])
    with engine.begin() as connection:
        for table in ("workloads", "decisions"):
            connection.execute(text(f"ALTER TABLE {table} DROP COLUMN spare"))
        connection.execute(text("INSERT INTO schema VALUES (1)"))


def test_tables_from_before_revisions_are_taken_over(address: str, engine: Engine) -> None:
    from_before_revisions(engine)
    assert recorded(address) == 1
    assert versions(engine) == (3, 3)


def test_older_tables_are_upgraded_and_nothing_is_lost(
    address: str, engine: Engine, next_release: Callable[..., None]
) -> None:
    recorded(address)
    next_release()
    assert recorded(address) == 1
    assert versions(engine) == (4, 4)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT name, note FROM workloads")).all() == [("web", None)]


def test_tables_from_before_revisions_are_upgraded_from_where_they_are(
    address: str, engine: Engine, next_release: Callable[..., None]
) -> None:
    from_before_revisions(engine)
    next_release()
    assert recorded(address) == 1
    assert versions(engine) == (4, 4)


def test_an_upgrade_that_fails_leaves_the_tables_as_they_were(
    address: str, engine: Engine, next_release: Callable[..., None]
) -> None:
    recorded(address)
    next_release('op.execute("SELECT 1 FROM elsewhere")')
    with pytest.raises(StoreError, match="elsewhere"):
        recorded(address)
    assert versions(engine) == (3, 3)
    next_release()
    assert recorded(address) == 1
    assert versions(engine) == (4, 4)


def test_replicas_that_start_together_upgrade_once(address: str, engine: Engine) -> None:
    with ThreadPoolExecutor(4) as several:
        assert list(several.map(recorded, [address] * 4)) == [1] * 4
    assert versions(engine) == (3, 3)


def test_tables_of_a_newer_version_are_refused_with_both_numbers(address: str, engine: Engine) -> None:
    recorded(address)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0004'"))
    with pytest.raises(StoreError, match="it has version 4 of the tables, and this forecaster knows 3; install"):
        recorded(address)

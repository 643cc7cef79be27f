"""Migrates the tables of a database to this version, one numbered revision after the other.

Alembic runs the revisions in `versions`; it is imported only where there is something to do. A revision adds what the
forecaster before it can ignore: replicas of two versions share one database while the one takes over from the other.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

SCRIPTS = "forecaster.store:migrations"
LATEST_REVISION = 3
"""The last revision in `versions`."""
LOCK = 0x666F7265
"""Number of the advisory lock that one process at a time holds in a database of PostgreSQL."""


def version_of(connection: Connection) -> int:
    """Return the revision of a database's tables: 0 without tables, 1 for tables from before revisions."""
    there = inspect(connection).get_table_names()
    if "alembic_version" in there:
        version = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return int(version or 0)
    return int("schema" in there and connection.scalar(text("SELECT version FROM schema")) is not None)


def upgrade(connection: Connection) -> int:
    """Bring older tables to `LATEST_REVISION`, all or nothing; the revision they have then.

    A second process waits, and finds that it is done, by a newer forecaster perhaps. The connection is in no
    transaction yet that has read anything.
    """
    sqlite = connection.dialect.name == "sqlite"
    connection.execute(text("BEGIN IMMEDIATE" if sqlite else f"SELECT pg_advisory_xact_lock({LOCK})"))
    if (before := version_of(connection)) < LATEST_REVISION:
        _run(connection, before)
    return max(before, LATEST_REVISION)


def _run(connection: Connection, before: int) -> None:
    from alembic import command  # noqa: PLC0415  takes longer to import than a start has time for
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.attributes["connection"] = connection
    if before and "alembic_version" not in inspect(connection).get_table_names():
        command.stamp(config, f"{before:04}")
    command.upgrade(config, f"{LATEST_REVISION:04}")
    # What a forecaster from before revisions looks at: it refuses every number but its own.
    connection.execute(text("UPDATE schema SET version = :newest"), {"newest": LATEST_REVISION})

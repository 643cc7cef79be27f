"""Old rows of a ledger, and its move: `python -m benchmarks.ledger [--workloads N] [--changes N] [--days N]`.

Starts a server of its own, fills `decisions` as so many changes of each workload a day do, and times what an hour, six
hours and a day of them cost to delete and to vacuum. Beside it the same rows in a table with a partition a day: what
dropping one costs, and what the query of a new process ("the last decisions of all") costs with it. At last a ledger
of SQLite, in which every workload has decided otherwise once an hour for a day, is moved there, and moved again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from forecaster.store.database import Database
from forecaster.store.ledger import SqlLedger
from forecaster.store.move import move
from forecaster.store.past import latest_decisions
from tests.support import postgres
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

DAY = 86_400
ROWS = """INSERT INTO {table} SELECT w, d * 86400 + (c * 86400 / {changes}) + (w * 7919) % (86400 / {changes}),
 3, 5, 'scale', 'forecast', 0.5, NULL, 1e9, 1e9, 'resize', 'sized', 'the forecast of the peak asks for 5 pods',
 '95 % of the coming day' FROM generate_series(0, {days} - 1) d, generate_series(0, {changes} - 1) c,
 generate_series(1, {workloads}) w"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=20, help="of each workload a day")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--only", choices=["move"])
    options = parser.parse_args()
    place, owner = postgres.binaries(), postgres.user()
    if place is None or owner is None:
        sys.exit("no PostgreSQL here")
    with postgres.server(place, owner, "shared_buffers=512MB", "max_wal_size=4GB", "autovacuum=off") as address:
        if options.only != "move":
            measure_retention(address, options)
        measure_move(address, options.workloads)


def measure_move(address: str, workloads: int) -> None:
    ids = [workload_id(f"workload-{number}") for number in range(workloads)]
    with tempfile.TemporaryDirectory() as directory, _database(address) as connection:
        connection.execute(text("CREATE DATABASE moved"))
        source, target = f"sqlite:///{directory}/ledger.sqlite", str(make_url(address).set(database="moved"))
        with closing(SqlLedger(source, keep=timedelta(days=30))) as ledger:
            for hour in range(24):
                at = NOON + timedelta(hours=hour)
                ledger.record(at, [recommendation(id_, at=at, replicas=hour + 1) for id_ in ids])
        for step in ("move", "move once more"):
            with timed(step), closing(Database(source)) as old, closing(Database(target)) as new:
                print(f"  {[(moved.table, moved.rows, moved.copied) for moved in move(old, new, lambda *_: None)]}")


@contextmanager
def _database(address: str) -> Iterator[Connection]:
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def measure_retention(address: str, options: argparse.Namespace) -> None:
    with closing(Database(address)) as database, database.transaction():
        pass  # its tables are made
    with _database(address) as connection:
        measure(connection, options)


def measure(connection: Connection, options: argparse.Namespace) -> None:
    connection.execute(
        text(
            "INSERT INTO workloads SELECT i, 'shop', 'Deployment', 'w' || i, 0, 3, 5, 'scale', 'forecast', 0.5, NULL,"
            " 1e9, 1e9, 'resize', 'sized' FROM generate_series(1, :workloads) i"
        ),
        {"workloads": options.workloads},
    )
    with timed("fill, one table"):
        fill(connection, "decisions", options)
    size(connection, "decisions")
    with timed("the last 8 decisions of all"):
        print(f"  {sum(1 for _ in latest_decisions(connection, 8))} rows")
    for hours in (1, 6, 24):
        with timed(f"delete {hours} h"):
            done = connection.execute(
                text("DELETE FROM decisions WHERE at < (SELECT min(at) FROM decisions) + :span"), {"span": hours * 3600}
            )
            print(f"  {done.rowcount} rows")
    with timed("vacuum of what was deleted"):
        connection.execute(text("VACUUM decisions"))
    size(connection, "decisions")
    partitioned(connection, options)


def partitioned(connection: Connection, options: argparse.Namespace) -> None:
    """Store the rows once more, a partition a day."""
    connection.execute(text("ALTER TABLE decisions RENAME TO whole"))
    connection.execute(text("CREATE TABLE decisions (LIKE whole, PRIMARY KEY (workload, at)) PARTITION BY RANGE (at)"))
    for day in range(options.days):
        bounds = f"FROM ({day * DAY}) TO ({(day + 1) * DAY})"
        connection.execute(text(f"CREATE TABLE day{day} PARTITION OF decisions FOR VALUES {bounds}"))
    connection.execute(text("DROP TABLE whole"))
    with timed("fill, a partition a day"):
        fill(connection, "decisions", options)
    with timed("the last 8 decisions of all, partitioned"):
        print(f"  {sum(1 for _ in latest_decisions(connection, 8))} rows")
    with timed("drop a partition"):
        connection.execute(text("DROP TABLE day0"))


def fill(connection: Connection, table: str, options: argparse.Namespace) -> None:
    given = {"days": options.days, "changes": options.changes, "workloads": options.workloads}
    connection.execute(text(ROWS.format(table=table, **given)))
    connection.execute(text(f"VACUUM ANALYZE {table}"))


def size(connection: Connection, table: str) -> None:
    size_bytes = connection.scalar(text(f"SELECT pg_total_relation_size('{table}')")) or 0
    print(f"  {size_bytes / 2**20:.0f} MiB with its indexes")


@contextmanager
def timed(step: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    print(f"{step:<45} {time.perf_counter() - began:8.3f} s", flush=True)


if __name__ == "__main__":
    main()

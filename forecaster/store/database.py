"""The tables of the ledger, as the newest of the `migrations` makes them.

    schema     the version, for forecasters from before there were migrations
    workloads  every workload that was decided about, and the latest decision about each
    decisions  one row for each change of a decision
    scores     how forecasts turned out, as sums that can be added: by hour, and by day once they are old
    shards     what was learned of the workloads of each shard, of a fleet that is computed in shards

Instants are seconds since 1970 (UTC), CPU in cores, memory in bytes. A number that is not known is NULL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeAlias

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    func,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from forecaster.errors import ConfigError, Fault, StoreError
from forecaster.store.migrations import LATEST_REVISION, upgrade, version_of

DatabaseAddress: TypeAlias = str | Callable[[], str]

NAME_MAX = 253
"""Kubernetes' own limit on the length of a name."""
MODEL_NAME_MAX = 64
"""Signs of the name of a model that are kept; only a model of one's own may have more."""

metadata = MetaData()


def _decision() -> list[Column[object]]:
    """Return the columns of a decision, the same in `workloads` and in `decisions`."""
    return [
        Column("replicas_now", Integer, nullable=False),
        Column("replicas", Integer),
        Column("verdict", String(16), nullable=False),
        Column("reason", String(32), nullable=False),
        Column("cpu_request", Double),
        Column("cpu_limit", Double),
        Column("memory_request", Double),
        Column("memory_limit", Double),
        Column("resources_verdict", String(16), nullable=False),
        Column("resources_reason", String(32), nullable=False),
        Column("spare", Integer),
    ]


schema = Table("schema", metadata, Column("version", Integer, primary_key=True, autoincrement=False))

workloads = Table(
    "workloads",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("namespace", String(NAME_MAX), nullable=False),
    Column("kind", String(NAME_MAX), nullable=False),
    Column("name", String(NAME_MAX), nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    *_decision(),
    UniqueConstraint("namespace", "name", "kind"),
)

decisions = Table(
    "decisions",
    metadata,
    Column("workload", Integer, primary_key=True, autoincrement=False),
    Column("at", BigInteger, primary_key=True, autoincrement=False),
    *_decision(),
    Column("message", Text, nullable=False),
    Column("resources_message", Text, nullable=False),
    Index("decisions_at", "at"),
    sqlite_with_rowid=False,
)

scores = Table(
    "scores",
    metadata,
    Column("workload", Integer, primary_key=True, autoincrement=False),
    Column("signal", String(16), primary_key=True),
    Column("model", String(MODEL_NAME_MAX), primary_key=True),
    Column("at", BigInteger, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
    Column("covered", Integer, nullable=False),
    Column("quantiles", Double, nullable=False),
    Column("absolute_error", Double, nullable=False),
    Column("pinball_loss", Double, nullable=False),
    Column("actual", Double, nullable=False),
    Index("scores_at", "at"),
    sqlite_with_rowid=False,
)
shards = Table(
    "shards",
    metadata,
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("of", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("observed", LargeBinary, nullable=False),
    Column("origins", LargeBinary, nullable=False),
)
SUMS = ("count", "covered", "quantiles", "absolute_error", "pinball_loss", "actual")


LOCK_WAIT_SECONDS = 5
"""Longest time for which a locked database, or one that cannot be reached, delays a cycle."""
SILENT_SECONDS = 30.0
"""Longest wait for a word of PostgreSQL: one that stands still, or waits for a lost standby, ends no connection."""
WHOLE_ANSWER_SECONDS = 120.0
"""Longest wait for a whole answer: what lies between may pass it on byte by byte."""
DATABASE_REMEDIES = {
    "locked": "another process holds it; stop that one, or use PostgreSQL for several",
    "readonly": "make the file and its directory writable",
    "read-only": "connect to the primary, with a user that may write",
    "unable to open": "make its directory, and make it writable",
    "full": "free some space",
    "no space": "free some space",
    "disk i/o": "free some space, and see whether its disk is well",
    "malformed": "move the file away; a new one is made",
    "not a database": "move the file away; a new one is made",
    "permission denied": "grant the user the right to create and write tables",
    "password": "correct the user or the password in the address",
}
OTHER_REMEDY = "see whether the database answers at that address"


class Database:
    """One engine. The schema is made or checked at the first use, so that a database may be late.

    An address that is a function is read again after each failure: passwords are rotated. A database that is only read
    is neither created nor upgraded: a service of another release may be writing to it.
    """

    def __init__(self, address: DatabaseAddress, *, only_read: bool = False) -> None:
        self._address, self._only_read = address, only_read
        self._open()

    def _open(self) -> None:
        """Forget what is known of the database, and read its address."""
        self._checked = False
        self._url = _url(self._address if isinstance(self._address, str) else self._address())
        self._engine = _engine(self._url, only_read=self._only_read)

    def __str__(self) -> str:
        return self._url.set(query={}).render_as_string(hide_password=True)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that is committed as a whole or not at all.

        Raises:
            StoreError: the database is not there, locked, damaged, read-only, full, or of a newer version.
        """
        try:
            if not self._checked:
                self._check()
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            self._renew()
            raise StoreError(f"ledger {self}: {_error_text(error)}") from error
        except (ValueError, OverflowError) as error:  # a row that no forecaster wrote
            raise StoreError(f"ledger {self}: malformed ({error}); {DATABASE_REMEDIES['malformed']}") from error

    def insert(self, table: Table) -> Any:
        """An INSERT that knows ON CONFLICT; both dialects spell it alike."""
        return sqlite.insert(table) if self._engine.dialect.name == "sqlite" else postgresql.insert(table)

    def hold(self, connection: Connection) -> None:
        """Let no other process write until this transaction ends; it has read nothing yet."""
        sqlite = self._engine.dialect.name == "sqlite"
        tables = ", ".join(table.name for table in (workloads, decisions, scores))
        connection.execute(text("BEGIN IMMEDIATE" if sqlite else f"LOCK TABLE {tables} IN SHARE MODE"))

    def continue_ids(self, connection: Connection) -> None:
        """Have new workloads get ids after those that were written with theirs; SQLite does so by itself."""
        if self._engine.dialect.name != "sqlite":
            largest = select(func.coalesce(func.max(workloads.c.id), 1)).scalar_subquery()
            connection.execute(select(func.setval(func.pg_get_serial_sequence("workloads", "id"), largest)))

    def close(self) -> None:
        """Give back all connections."""
        self._engine.dispose()

    def _renew(self) -> None:
        """Connect and look at the tables anew at the next use: the database may be another one by then."""
        self._engine.dispose()
        with suppress(StoreError, ConfigError):  # the file of the address is being replaced
            self._open()

    def _check(self) -> None:
        version = self._version()
        if self._only_read and not version:
            raise self.nothing_recorded()
        if version < LATEST_REVISION and not self._only_read:
            with self._engine.begin() as connection:
                version = upgrade(connection)
        if version != LATEST_REVISION:
            other = (
                "name another database" if version > LATEST_REVISION else "wait until its service is of this release"
            )
            raise StoreError(
                f"ledger {self}: it has version {version} of the tables, and this forecaster knows {LATEST_REVISION}; "
                f"install the forecaster that made it, or {other}"
            )
        self._checked = True

    def _version(self) -> int:
        """Return the version of the tables, 0 without tables; SQLite would create a file that is only to be read."""
        file = self._url.get_backend_name() == "sqlite" and self._url.database
        with suppress(OSError):  # SQLite says why
            if self._only_read and file and not Path(file).exists():
                return 0
        with self._engine.begin() as connection:
            return version_of(connection)

    def nothing_recorded(self) -> StoreError:
        """Return the error of a database without decisions."""
        return StoreError(f"no decisions are recorded in {self}; --config names the settings of the service that does")


def _url(address: str) -> URL:
    problem = "(not an address)"
    with suppress(ArgumentError, ValueError):
        url = make_url(address)
        if "@" in (url.host or ""):
            problem = "(an @ in the password, which has to be written as %40)"
        elif url.get_backend_name() == "sqlite" and not url.host:
            return url.set(drivername="sqlite")
        elif url.get_backend_name() in {"postgresql", "postgres"}:
            return url.set(drivername="postgresql+psycopg")
        else:
            problem = url.drivername  # and no more: the address may hold a password
    raise ConfigError("ledger", [Fault("state.database", problem, "sqlite:///FILE or postgresql://USER@HOST/NAME")])


def _engine(url: URL, *, only_read: bool) -> Engine:
    if url.get_backend_name() == "sqlite":
        # Opened for each transaction: what is written into a file that was removed meanwhile is lost without an error.
        engine = create_engine(url, connect_args={"timeout": LOCK_WAIT_SECONDS}, poolclass=NullPool)
        if not only_read:
            event.listen(engine, "connect", prepare_sqlite)
        return engine
    waits = {"connect_timeout": LOCK_WAIT_SECONDS, "options": f"-c lock_timeout={LOCK_WAIT_SECONDS}s -c timezone=UTC"}
    try:
        engine = create_engine(url, connect_args=waits, pool_pre_ping=True, pool_size=1, max_overflow=1)
    except ModuleNotFoundError as error:
        raise StoreError("ledger: psycopg is missing; install kube-forecaster[postgres]") from error
    event.listen(engine, "do_connect", _connect_patiently)
    return engine


def _connect_patiently(_dialect: object, _record: object, arguments: list[Any], parameters: dict[str, Any]) -> object:
    """Return a connection to PostgreSQL that ends if the server is silent: psycopg waits for an answer without end."""
    import psycopg  # noqa: PLC0415  only where there is a PostgreSQL

    class PatientConnection(psycopg.Connection[Any]):
        def wait(self, gen: Any, *rest: Any, **more: Any) -> Any:
            return super().wait(self._within(gen), *rest, **more)

        def _within(self, gen: Any) -> Any:
            """Pass on what happens on the socket; None comes several times a second while nothing does."""
            began = heard = monotonic()
            ready: Any = None
            try:
                while True:
                    ready = yield gen.send(ready)
                    heard = monotonic() if ready else heard
                    if monotonic() > min(heard + SILENT_SECONDS, began + WHOLE_ANSWER_SECONDS):
                        self.close()
                        raise psycopg.OperationalError(f"no answer in {monotonic() - began:.0f} s")
            except StopIteration as end:
                return end.value

    return PatientConnection.connect(*arguments, **parameters)


def prepare_sqlite(connection: Any, _record: object) -> None:
    """Readers do not wait for the writer, and a crash of the machine loses at most the last cycles."""
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous=NORMAL").close()


def _write_ahead(connection: Any) -> None:
    """Asks again while another process creates the file: SQLite answers `locked` at once here, without its timeout."""
    until = monotonic() + LOCK_WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
        except sqlite3.OperationalError:
            if monotonic() > until:
                raise
            sleep(0.02)
        else:
            return


def _error_text(error: SQLAlchemyError) -> str:
    """Return the first line of the driver's message, without statement and parameters, and the remedy."""
    cause = str(getattr(error, "orig", None) or error).strip().split("\n", 1)[0][:200]
    remedy = next((remedy for sign, remedy in DATABASE_REMEDIES.items() if sign in cause.lower()), OTHER_REMEDY)
    return f"{cause}; {remedy}"

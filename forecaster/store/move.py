"""Copies a ledger into another database: some workloads at a time, each part verified before the next one begins.

A part that is there already, row for row, is not copied again; so a move that ended early is gone on with by
beginning it once more, and a second run over a finished one proves it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, func, insert, select, text, union

from forecaster.domain.amounts import counted
from forecaster.errors import StoreError
from forecaster.store.database import Database, decisions, scores, shards, workloads

ROWS_A_STATEMENT = 25
"""Workloads copied in one transaction: some ten thousand rows where decisions change every hour of a month."""
OWNER_COLUMNS = {workloads: workloads.c.id, decisions: decisions.c.workload, scores: scores.c.workload}
"""Tables in the order in which they are copied, and the column that refers to a workload."""


@dataclass(frozen=True, slots=True)
class MovedTable:
    """Contents of a table that both databases have now."""

    table: str
    rows: int
    copied: int
    """Rows copied by this run."""
    checksum: str
    """Checksum of all rows, whatever their order."""


def move(source: Database, target: Database, report_progress: Callable[[str, float], None]) -> list[MovedTable]:
    """Copy every row; `report_progress` is called with the table and the share that is done.

    Nothing writes to the source meanwhile: a service on it goes on, and keeps what it decided once it may write again.

    Raises:
        StoreError: one of the databases cannot be used, the target holds other rows, or came out different.
    """
    with source.transaction() as reading:
        source.hold(reading)
        _refuse_empty(source, reading)
        _refuse_other_rows(source, target, reading)
        moved = [_Move(source, target, table, reading).run(report_progress) for table in OWNER_COLUMNS]
        with target.transaction() as writing:
            _refuse_difference(target, writing, moved)
            target.continue_ids(writing)
            moved += _moved_shards(reading, writing)
    return moved


def _moved_shards(reading: Connection, writing: Connection) -> list[MovedTable]:
    """Copy the state learned in shards, as a whole; nothing where the fleet was never divided."""
    rows = reading.execute(select(shards)).all()
    if not rows:
        return []
    writing.execute(delete(shards))
    writing.execute(insert(shards), [row._asdict() for row in rows])
    return [MovedTable(str(shards.name), len(rows), len(rows), _checksum(rows).hex())]


class _Move:
    """One table while it is copied."""

    def __init__(self, source: Database, target: Database, table: Table, reading: Connection) -> None:
        self._source, self._target, self._table, self._reading = source, target, table, reading
        self._rows = self._copied = 0
        self._checksum = blake2b(digest_size=16)

    def run(self, report_progress: Callable[[str, float], None]) -> MovedTable:
        """Copy the whole table."""
        spans = list(_spans(self._reading))
        for done, (after, last) in enumerate(spans):
            report_progress(self._table.name, done / len(spans))
            owner = OWNER_COLUMNS[self._table]
            self._copy((owner > after) & (owner <= last))
        return MovedTable(str(self._table.name), self._rows, self._copied, self._checksum.hexdigest())

    def _copy(self, part: ColumnElement[bool]) -> None:
        """Copy the rows of some workloads: unchanged where they are equal, else replacing the present ones."""
        query = select(self._table).where(part)
        rows = self._reading.execute(query).all()
        checksum = _checksum(rows)
        with self._target.transaction() as writing:
            if _checksum(writing.execute(query).all()) != checksum:
                writing.execute(delete(self._table).where(part))
                if rows:
                    writing.execute(insert(self._table), [row._asdict() for row in rows])
                self._copied += len(rows)
                if _checksum(writing.execute(query).all()) != checksum:
                    raise StoreError(
                        f"ledger {self._target}: rows of `{self._table.name}` came back other than they were written; "
                        f"nothing was taken from {self._source}: go on with that one, and report this"
                    )
        self._rows += len(rows)
        self._checksum.update(checksum)


def _spans(reading: Connection) -> Iterator[tuple[int, int]]:
    """Ids of workloads, some at a time: the last one before them, and the last of them."""
    ids = reading.scalars(union(*(select(owner) for owner in OWNER_COLUMNS.values())).order_by(text("1"))).all()
    ends = [*ids[ROWS_A_STATEMENT - 1 :: ROWS_A_STATEMENT], *ids[-1:]]
    yield from zip([-1, *ends], dict.fromkeys(ends), strict=False)


def _checksum(rows: Sequence[Row[tuple[object, ...]]]) -> bytes:
    """Compare numbers by value and ignore the order of rows: each database sorts text its own way."""
    digest = blake2b(digest_size=16)
    for line in sorted(repr(tuple(row)) for row in rows):
        digest.update(line.encode())
    return digest.digest()


def _refuse_empty(source: Database, reading: Connection) -> None:
    if not reading.scalar(select(func.count()).select_from(workloads)):
        raise StoreError(f"ledger {source}: it holds no workload; name the database that is to be moved with --from")


def _refuse_other_rows(source: Database, target: Database, reading: Connection) -> None:
    """Refuse to replace rows that a service wrote to the target: other workloads, or anything newer than the source."""
    identity = select(workloads.c.id, workloads.c.namespace, workloads.c.kind, workloads.c.name)
    with target.transaction() as writing:
        foreign = {tuple(row) for row in writing.execute(identity)} - {tuple(row) for row in reading.execute(identity)}
        newer = (_latest_decision_at(writing) or 0) > (_latest_decision_at(reading) or 0)
    if foreign or newer:
        content = (
            f"{counted(len(foreign), 'workload')} not in {source}" if foreign else f"later decisions than {source}"
        )
        raise StoreError(f"ledger {target}: it holds {content}, so a service writes to it; name an empty database")


def _latest_decision_at(connection: Connection) -> int | None:
    instants = [connection.scalar(select(func.max(column))) for column in (workloads.c.seen_at, decisions.c.at)]
    return max((at for at in instants if at is not None), default=None)


def _refuse_difference(target: Database, writing: Connection, moved: list[MovedTable]) -> None:
    for table, expected in zip(OWNER_COLUMNS, moved, strict=True):
        rows = writing.scalar(select(func.count()).select_from(table))
        if rows != expected.rows:
            raise StoreError(
                f"ledger {target}: `{table.name}` has {rows} rows, and {expected.rows} were moved: something else "
                "writes to it; stop that, and move once more"
            )

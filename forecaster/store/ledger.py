"""SqlLedger: decisions when they change and sums of the later errors of forecasts, in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, and_, bindparam, delete, func, or_, select, tuple_, update

from forecaster.domain.decision import Recommendation
from forecaster.domain.report import DecisionChange, ForecastScore, ScoreSums
from forecaster.domain.window import DAY, HOUR
from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.store.database import MODEL_NAME_MAX, SUMS, Database, DatabaseAddress, decisions, scores, workloads
from forecaster.store.past import (
    IDENTITY_COLUMNS,
    DecisionRow,
    changed,
    decision_row,
    faded_scores,
    latest_decisions,
)


@dataclass(slots=True)
class Accuracy:
    """Sums over matured forecasts; two spans are joined by adding. Amounts in the signal's unit."""

    count: int = 0
    covered: int = 0
    quantiles: float = 0.0
    """Sum of the quantiles aimed at: what `covered` should be."""
    absolute_error: float = 0.0
    pinball_loss: float = 0.0
    actual: float = 0.0

    def add(self, score: ForecastScore) -> None:
        """Add one matured score."""
        self.count += 1
        self.covered += score.covered
        self.quantiles += score.quantile
        self.absolute_error += score.absolute_error
        self.pinball_loss += score.pinball_loss
        self.actual += score.actual


AN_HOUR, A_DAY = int(HOUR.total_seconds()), int(DAY.total_seconds())
SCORE_INTERVAL = 600
"""Seconds between writes: a crash loses at most these."""
SCORES_WAITING = 200_000
"""Sums that wait for a database that is away; beyond, the oldest are given up (60 MB)."""
HOURLY_FOR = 2 * A_DAY
"""Hours are joined into days after this: 30,000 series for a month are 2 million rows instead of 20."""


class Key(NamedTuple):
    """One row of `scores`."""

    id: WorkloadId
    signal: str
    model: str
    at: int


class WaitingScores:
    """Scores since the last write, summed by the hour in which they matured."""

    def __init__(self) -> None:
        self._sums: dict[Key, Accuracy] = {}
        self._latest = 0
        self._written_at = 0

    def add(self, matured: Sequence[ForecastScore]) -> None:
        """Add matured scores."""
        for score in matured:
            hour = int(score.matured_at.timestamp()) // AN_HOUR * AN_HOUR
            key = Key(score.id, str(score.signal), score.model[:MODEL_NAME_MAX], hour)
            self._sums.setdefault(key, Accuracy()).add(score)
        self._latest = max((int(score.matured_at.timestamp()) for score in matured), default=self._latest)

    def __bool__(self) -> bool:
        return bool(self._sums)

    @property
    def due(self) -> bool:
        """Is it time to write? Told from the scores, not from a clock; after a jump back in time it is."""
        return not 0 <= self._latest - self._written_at < SCORE_INTERVAL

    @contextmanager
    def written(self) -> Iterator[Mapping[Key, Accuracy]]:
        """Yield the sums to be written; they stay pending if that fails."""
        try:
            yield self._sums
        except StoreError:
            # In the order in which they began, so the last are the latest.
            self._sums = dict(islice(self._sums.items(), max(0, len(self._sums) - SCORES_WAITING), None))
            raise
        self._sums = {}
        self._written_at = self._latest


def write_scores(
    database: Database, connection: Connection, rows: Mapping[Key, int], sums: Mapping[Key, Accuracy]
) -> None:
    """Add the sums to the tables; `rows` says which row of `workloads` each belongs to."""
    values = [
        {"workload": row, "signal": key.signal, "model": key.model, "at": key.at}
        | {name: getattr(sums[key], name) for name in SUMS}
        for key, row in rows.items()
    ]
    if values:
        connection.execute(_adding(database), values)


def join_hours(database: Database, connection: Connection, now: int) -> None:
    """Hours of days that have been over for long become days; the row of midnight takes in the others."""
    hourly = (scores.c.at < (now - HOURLY_FOR) // A_DAY * A_DAY, scores.c.at % A_DAY != 0)
    keys = (scores.c.workload, scores.c.signal, scores.c.model, scores.c.at - scores.c.at % A_DAY)
    days = select(*keys, *(func.sum(scores.c[name]) for name in SUMS)).where(*hourly).group_by(*keys)
    connection.execute(_adding(database).from_select(("workload", "signal", "model", "at", *SUMS), days))
    connection.execute(delete(scores).where(*hourly))


def _adding(database: Database) -> Any:
    """Return an INSERT into `scores` that adds to an existing row."""
    insert = database.insert(scores)
    added = {name: scores.c[name] + insert.excluded[name] for name in SUMS}
    return insert.on_conflict_do_update(index_elements=list(scores.primary_key), set_=added)


IDS_PER_QUERY = 300
"""Workloads whose decisions one question is about: SQLite takes some thousand values in one."""
ROWS_PER_STATEMENT = 2000
"""Decisions that are handed to the database together: it takes kilobytes of memory for each of them."""
DROPPED_SECONDS = 6 * 3600
"""Most seconds of decisions that one cycle deletes; the steady state deletes an hour's."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A change of a decision, as it was written."""

    at: datetime
    decided: DecisionRow
    message: str
    resources_message: str


class KnownWorkload(NamedTuple):
    """A workload in the ledger between cycles: its row and its written decision."""

    row: int
    decided: DecisionRow


class PersistedHistory(NamedTuple):
    """Latest decisions and faded scores of all workloads, for a new process."""

    decisions: list[tuple[WorkloadId, DecisionChange]]
    """Oldest first."""
    scores: list[tuple[WorkloadId, str, ScoreSums]]
    """Sums of each workload and signal."""


class SqlLedger:
    """The ledger on a `Database`. Writing is left to one thread; reading may happen from other processes.

    A cycle writes rows only for the decisions that changed, and once an hour that all others are still there, so the
    steady state costs a comparison for each workload. A decision is known once it is committed: what failed is
    written by the next cycle.
    """

    def __init__(self, address: DatabaseAddress, *, keep: timedelta, only_read: bool = False) -> None:
        self._database = Database(address, only_read=only_read)
        self._keep = int(keep.total_seconds())
        self._known: Mapping[WorkloadId, KnownWorkload] | None = None
        self._waiting = WaitingScores()
        self._tidied_at = 0

    def record(self, at: datetime, records: Sequence[Recommendation], present: Sequence[WorkloadId] = ()) -> None:
        """Write the decisions that differ from the last written ones, and note which workloads are present.

        Raises:
            StoreError: nothing of this cycle was written.
        """
        now = int(at.timestamp())
        tidy = not 0 <= now - self._tidied_at < HOUR.total_seconds()  # after a clock that was ahead, too
        known, self._known = self._known, None  # what becomes of a commit that is not answered is read anew
        with self._database.transaction() as connection:
            known = _read_known(connection) if known is None else known
            rows = ((record, decision_row(record)) for record in records)
            news = [(record, after) for record, after in rows if changed(known.get(record.id, (0, None))[1], after)]
            if news:
                known = self._write(connection, now, known, news)
            if tidy:
                ids = dict.fromkeys((*present, *(record.id for record in records)))
                tidied = self._tidy(connection, now, [known[id_].row for id_ in ids if id_ in known])
        # Read anew after tidying: workloads that have been gone for long are gone from the tables.
        self._known = None if tidy else known
        self._tidied_at = now if tidy and tidied else self._tidied_at

    def score(self, scores: Sequence[ForecastScore]) -> None:
        """Add to the sums of the hour; every ten minutes they are written.

        Raises:
            StoreError: they could not be written; they wait in memory.
        """
        self._waiting.add(scores)
        if self._waiting.due:
            self._write_scores()

    def changes_of(self, ids: Iterable[WorkloadId], since: datetime) -> dict[WorkloadId, list[Decision]]:
        """Return the count in force at `since` and every change after it, oldest first; a query reads some hundreds.

        Raises:
            StoreError: the database cannot be read.
        """
        changes: dict[WorkloadId, list[Decision]] = {id_: [] for id_ in ids}
        columns = [decisions.c[name] for name in DecisionRow._fields]
        begin, other = int(since.timestamp()), decisions.alias()
        counts = (other.c.workload == workloads.c.id, other.c.at <= begin, other.c.replicas.is_not(None))
        in_force = select(func.max(other.c.at)).where(*counts).scalar_subquery()
        query = (
            select(*IDENTITY_COLUMNS, decisions.c.at, decisions.c.message, decisions.c.resources_message, *columns)
            .join(workloads, workloads.c.id == decisions.c.workload)
            .where(decisions.c.at >= func.coalesce(in_force, begin))
            .order_by(decisions.c.workload, decisions.c.at)
        )
        identities = list(changes)
        with self._database.transaction() as connection:
            for first in range(0, len(identities), IDS_PER_QUERY):
                chunk = tuple_(*IDENTITY_COLUMNS).in_(identities[first : first + IDS_PER_QUERY])
                for namespace, kind, name, at, *messages_and_row in connection.execute(query.where(chunk)):
                    message, resources_message, *row = messages_and_row
                    instant = datetime.fromtimestamp(at, UTC)
                    change = Decision(instant, DecisionRow(*row), message, resources_message)
                    changes[WorkloadId(namespace, kind, name)].append(change)
        return changes

    def latest(self) -> dict[WorkloadId, DecisionRow]:
        """The latest decision about every workload.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._database.transaction() as connection:
            return {id_: known.decided for id_, known in _read_known(connection).items()}

    def nothing_recorded(self) -> StoreError:
        """Return the error of a ledger without decisions."""
        return self._database.nothing_recorded()

    def persisted_history(self, now: datetime, *, changes: int, half_life: timedelta) -> PersistedHistory:
        """Return the latest decisions, at most `changes` of each workload, and the faded scores, for a new process.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._database.transaction() as connection:
            scores = list(faded_scores(connection, now, half_life))
            return PersistedHistory(list(latest_decisions(connection, changes)), scores)

    def close(self) -> None:
        """Write the scores that wait, and give back the connections.

        Raises:
            StoreError: they could not be written and are lost.
        """
        try:
            self._write_scores()
        finally:
            self._database.close()

    def _write(
        self,
        connection: Connection,
        now: int,
        known: Mapping[WorkloadId, KnownWorkload],
        news: Sequence[tuple[Recommendation, DecisionRow]],
    ) -> dict[WorkloadId, KnownWorkload]:
        """Write the state of these workloads and their changes, some thousands at a time."""
        parts = [news[first : first + ROWS_PER_STATEMENT] for first in range(0, len(news), ROWS_PER_STATEMENT)]
        for part in parts:
            self._write_states(connection, now, known, {record.id: after for record, after in part})
        if any(record.id not in known for record, _ in news):
            updated = _read_known(connection)
        else:
            updated = {**known, **{record.id: KnownWorkload(known[record.id].row, after) for record, after in news}}
        # The evaluation time is the same for every replica: a decision that is there already is this one.
        insert = self._database.insert(decisions).on_conflict_do_nothing()
        for part in parts:
            connection.execute(insert, [_change(updated[record.id].row, now, record, after) for record, after in part])
        return updated

    def _write_states(
        self,
        connection: Connection,
        now: int,
        known: Mapping[WorkloadId, KnownWorkload],
        news: Mapping[WorkloadId, DecisionRow],
    ) -> None:
        """Insert only new states: PostgreSQL spends an id on each row that it tries to insert."""
        there = [dict(after._asdict(), row=known[id_].row, seen_at=now) for id_, after in news.items() if id_ in known]
        new = [dict(id_._asdict(), seen_at=now, **after._asdict()) for id_, after in news.items() if id_ not in known]
        if there:
            connection.execute(update(workloads).where(workloads.c.id == bindparam("row")), there)
        if new:
            insert = self._database.insert(workloads)
            renewed = {name: insert.excluded[name] for name in ("seen_at", *DecisionRow._fields)}
            connection.execute(insert.on_conflict_do_update(index_elements=WorkloadId._fields, set_=renewed), new)

    def _write_scores(self) -> None:
        if not self._waiting:
            return
        with self._waiting.written() as sums, self._database.transaction() as connection:
            known = self._known if self._known is not None else _read_known(connection)
            write_scores(self._database, connection, {key: known[key.id].row for key in sums if key.id in known}, sums)

    def _tidy(self, connection: Connection, now: int, present: Sequence[int]) -> bool:
        """Note which workloads are present, join old scores into days, delete expired rows.

        Gives whether all that is too old is gone; after a long standstill the cycles share the work.
        """
        statement = update(workloads).where(workloads.c.id == bindparam("row")).values(seen_at=now)
        if present:
            connection.execute(statement, [{"row": row} for row in present])
        join_hours(self._database, connection, now)
        before = now - self._keep
        connection.execute(delete(workloads).where(workloads.c.seen_at < before))
        decided = _dropped(connection, decisions.c.at, before, ~_in_force(before))
        return _dropped(connection, scores.c.at, before) and decided


def _in_force(at: int) -> ColumnElement[bool]:
    """Whether a decision about a known workload was in force at an instant: the last one, and the last with a count."""
    later = decisions.alias()
    after = (later.c.workload == decisions.c.workload, later.c.at > decisions.c.at, later.c.at <= at)
    superseded, counted = select(later.c.at).where(*after), decisions.c.replicas.is_not(None)
    last = or_(~superseded.exists(), and_(counted, ~superseded.where(later.c.replicas.is_not(None)).exists()))
    return and_(decisions.c.workload.in_(select(workloads.c.id)), last)


def _dropped(connection: Connection, column: Column[int], before: int, *expired: ColumnElement[bool]) -> bool:
    """Drop the oldest expired rows before an instant; whether none of them is left."""
    oldest: int | None = connection.scalar(select(func.min(column)).where(column < before, *expired))
    if oldest is None:
        return True
    end = min(before, oldest + DROPPED_SECONDS)
    connection.execute(delete(column.table).where(column < end, *expired))
    return end == before


def _read_known(connection: Connection) -> dict[WorkloadId, KnownWorkload]:
    columns = (workloads.c.id, *(workloads.c[name] for name in (*WorkloadId._fields, *DecisionRow._fields)))
    return {
        WorkloadId(namespace, kind, name): KnownWorkload(row, DecisionRow(*rest))
        for row, namespace, kind, name, *rest in connection.execute(select(*columns))
    }


def _change(row: int, at: int, record: Recommendation, after: DecisionRow) -> dict[str, object]:
    messages = {"message": _plain(record.replicas.message), "resources_message": _plain(record.resources.message)}
    return dict(after._asdict(), workload=row, at=at, **messages)


def _plain(message: str) -> str:
    """A message without NUL, which any owner may write into the name of an event, and PostgreSQL refuses."""
    return message.replace("\0", "")

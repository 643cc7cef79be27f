"""SqlLedger: decisions when they change and the later errors of forecasts, in SQLite or PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Column, Connection, bindparam, delete, func, select, tuple_, update

from forecaster.domain.window import HOUR
from forecaster.domain.workload import WorkloadId
from forecaster.store.database import Database, decisions, scores, workloads
from forecaster.store.past import (
    IDENTITY_COLUMNS,
    DecisionRow,
    FadedScores,
    PastDecision,
    changed,
    decision_row,
    faded_scores,
    latest_decisions,
)
from forecaster.store.scores import WaitingScores, join_hours, write_scores

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import ForecastScore
    from forecaster.ports import Changes

IDENTITY = ("namespace", "name", "kind")
ASKED_AT_ONCE = 300
"""Workloads whose decisions one question is about: SQLite takes some thousand values in one."""
WRITTEN_AT_ONCE = 2000
"""Decisions that are handed to the database together: it takes kilobytes of memory for each of them."""
DROPPED_AT_ONCE = 6 * 3600
"""Seconds of decisions that one cycle deletes at most; an hour's worth is what the steady state has."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A change of a decision, as it was kept."""

    at: datetime
    decided: DecisionRow
    message: str
    resources_message: str


class KnownWorkload(NamedTuple):
    """What the ledger remembers of a workload between cycles: its row and what is written there."""

    row: int
    decided: DecisionRow


class Recalled(NamedTuple):
    """What is remembered of all workloads."""

    decisions: list[PastDecision]
    scores: list[FadedScores]


class SqlLedger:
    """The ledger on a `Database`. Writing is left to one thread; reading may happen from other processes.

    A cycle writes rows only for the decisions that changed, and once an hour that all others are still there, so the
    steady state costs a comparison for each workload. Nothing is remembered before it is committed: what failed is
    written by the next cycle.
    """

    def __init__(self, address: str, *, keep: timedelta) -> None:
        self._database = Database(address)
        self._keep = int(keep.total_seconds())
        self._known: Mapping[WorkloadId, KnownWorkload] | None = None
        self._waiting = WaitingScores()
        self._tidied_at = 0

    def record(self, at: datetime, recommendations: Sequence[Recommendation], changes: Changes | None = None) -> None:
        """Keep the decisions that differ from the last ones kept, and that these workloads are there.

        Raises:
            StoreError: nothing of this cycle was kept.
        """
        now = int(at.timestamp())
        tidy = not 0 <= now - self._tidied_at < HOUR.total_seconds()  # after a clock that was ahead, too
        known, self._known = self._known, None  # what becomes of a commit that is not answered is read anew
        with self._database.transaction() as connection:
            known = _read_known(connection) if known is None else known
            looked_at = recommendations if changes is None else changes.summaries
            news = [(one, after) for one in looked_at if changed(_before(known, one.id), after := decision_row(one))]
            if news:
                known = self._write(connection, now, known, news)
            if tidy:
                present = [one.id for one in recommendations] if changes is None else changes.present
                tidied = self._tidy(connection, now, [known[id_].row for id_ in present if id_ in known])
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
        """Every change of the decisions about these workloads, oldest first; some hundreds are asked for at once.

        Raises:
            StoreError: the database cannot be read.
        """
        found: dict[WorkloadId, list[Decision]] = {id_: [] for id_ in ids}
        columns = [decisions.c[name] for name in DecisionRow._fields]
        asked = (
            select(*IDENTITY_COLUMNS, decisions.c.at, decisions.c.message, decisions.c.resources_message, *columns)
            .join(workloads, workloads.c.id == decisions.c.workload)
            .where(decisions.c.at >= int(since.timestamp()))
            .order_by(decisions.c.at)
        )
        every = list(found)
        with self._database.transaction() as connection:
            for first in range(0, len(every), ASKED_AT_ONCE):
                some = tuple_(*IDENTITY_COLUMNS).in_(every[first : first + ASKED_AT_ONCE])
                for namespace, kind, name, at, one, other, *rest in connection.execute(asked.where(some)):
                    change = Decision(_instant(at), DecisionRow(*rest), one, other)
                    found[WorkloadId(namespace, kind, name)].append(change)
        return found

    def newest(self) -> dict[WorkloadId, DecisionRow]:
        """The latest decision about every workload.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._database.transaction() as connection:
            return {id_: known.decided for id_, known in _read_known(connection).items()}

    def recalled(self, now: datetime, *, changes: int, half_life: timedelta) -> Recalled:
        """What a new process wants to know: the latest so many decisions of all workloads, and their faded scores.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._database.transaction() as connection:
            return Recalled(list(latest_decisions(connection, changes)), list(faded_scores(connection, now, half_life)))

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
        """The state of these workloads and the change that led to it, some thousands at a time."""
        parts = [news[first : first + WRITTEN_AT_ONCE] for first in range(0, len(news), WRITTEN_AT_ONCE)]
        for part in parts:
            self._write_states(connection, now, known, {one.id: after for one, after in part})
        if any(one.id not in known for one, _ in news):
            found = _read_known(connection)
        else:
            found = {**known, **{one.id: KnownWorkload(known[one.id].row, after) for one, after in news}}
        # The evaluation time is the same for every replica: a decision that is there already is this one.
        insert = self._database.insert(decisions).on_conflict_do_nothing()
        for part in parts:
            connection.execute(insert, [_change(found[one.id].row, now, one, after) for one, after in part])
        return found

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
            connection.execute(insert.on_conflict_do_update(index_elements=IDENTITY, set_=renewed), new)

    def _write_scores(self) -> None:
        if not self._waiting:
            return
        with self._waiting.written() as sums, self._database.transaction() as connection:
            known = self._known if self._known is not None else _read_known(connection)
            write_scores(self._database, connection, {key: known[key.id].row for key in sums if key.id in known}, sums)

    def _tidy(self, connection: Connection, now: int, present: Sequence[int]) -> bool:
        """Note which workloads are present, join old scores into days, drop what is older than it is kept.

        Gives whether all that is too old is gone; after a long standstill the cycles share the work.
        """
        seen = update(workloads).where(workloads.c.id == bindparam("row")).values(seen_at=now)
        if present:
            connection.execute(seen, [{"row": row} for row in present])
        join_hours(self._database, connection, now)
        before = now - self._keep
        connection.execute(delete(workloads).where(workloads.c.seen_at < before))
        decided, scored = (_dropped(connection, column, before) for column in (decisions.c.at, scores.c.at))
        return decided and scored


def _dropped(connection: Connection, column: Column[int], before: int) -> bool:
    """Drop the oldest rows before an instant; whether none of them is left."""
    oldest: int | None = connection.scalar(select(func.min(column)))
    if oldest is None or oldest >= before:
        return True
    end = min(before, oldest + DROPPED_AT_ONCE)
    connection.execute(delete(column.table).where(column < end))
    return end == before


def _read_known(connection: Connection) -> dict[WorkloadId, KnownWorkload]:
    columns = (workloads.c.id, *(workloads.c[name] for name in (*WorkloadId._fields, *DecisionRow._fields)))
    return {
        WorkloadId(namespace, kind, name): KnownWorkload(row, DecisionRow(*rest))
        for row, namespace, kind, name, *rest in connection.execute(select(*columns))
    }


def _before(known: Mapping[WorkloadId, KnownWorkload], workload: WorkloadId) -> DecisionRow | None:
    found = known.get(workload)
    return None if found is None else found.decided


def _change(row: int, at: int, one: Recommendation, after: DecisionRow) -> dict[str, object]:
    messages = {"message": _plain(one.replicas.message), "resources_message": _plain(one.resources.message)}
    return dict(after._asdict(), workload=row, at=at, **messages)


def _plain(message: str) -> str:
    """A message without NUL, which any owner may write into the name of an event, and PostgreSQL refuses."""
    return message.replace("\0", "")


def _instant(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

"""Outcome of forecasts of one kind over a span of time, as sums."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, delete, func, select

from forecaster.domain.window import DAY, HOUR
from forecaster.errors import StoreError
from forecaster.store.database import MODEL_NAME_MAX, SUMS, Database, scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from forecaster.domain.report import ForecastScore
    from forecaster.domain.workload import WorkloadId


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
        {"workload": row, "signal": key.signal, "model": key.model, "at": key.at, **_columns(sums[key])}
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


def _columns(sums: Accuracy) -> dict[str, float]:
    return {name: getattr(sums, name) for name in SUMS}

"""Decisions and accuracy of workloads before a start."""

from __future__ import annotations

from datetime import timedelta

from forecaster.app.restored import read_past
from forecaster.domain.report import DecisionChange, ScoreSums
from forecaster.errors import StoreError
from forecaster.store.ledger import PersistedHistory
from tests.support.recommendations import NOON, workload_id

WEB = workload_id("web")


class Kept:
    """A ledger with one decision and some scores."""

    def persisted_history(self, now: object, **_asked: object) -> PersistedHistory:
        before = NOON - timedelta(hours=1)
        return PersistedHistory(
            [(WEB, DecisionChange(before, 4, "scale", "forecast", "peak at 11:10"))],
            [(WEB, "cpu", ScoreSums(2.0, 1.0, 1.8, 1.0, 4.0))],
        )


class Away:
    """A ledger whose database is away."""

    def persisted_history(self, now: object, **_asked: object) -> PersistedHistory:
        raise StoreError("the database is away")


class Log:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def warning(self, event: str, **facts: str) -> None:
        self.told.append(f"{event}: {facts['error']}")


def test_it_goes_on_where_the_last_process_stopped() -> None:
    past = read_past(Kept(), NOON, Log()).of(WEB)  # type: ignore[arg-type]
    assert [(decision.replicas, decision.message) for decision in past.decisions] == [(4, "peak at 11:10")]
    assert [(score.signal, score.forecasts, score.coverage, score.error_ratio) for score in past.accuracy] == [
        ("cpu", 2.0, 0.5, 0.25)
    ]


def test_a_database_that_is_away_leaves_the_past_unknown_and_is_told() -> None:
    log = Log()
    assert read_past(Away(), NOON, log).of(WEB).decisions == ()  # type: ignore[arg-type]
    assert log.told == ["past_not_recalled: the database is away"]

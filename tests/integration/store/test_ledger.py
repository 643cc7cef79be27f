"""The ledger on real databases."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, text

from forecaster.app.restored import read_past
from forecaster.app.telemetry import logger
from forecaster.domain.decision import Clamp, Reason
from forecaster.domain.report import ForecastScore
from forecaster.domain.signal import CPU
from forecaster.errors import ConfigError, StoreError
from forecaster.store.database import Database, metadata, workloads
from forecaster.store.ledger import IDS_PER_QUERY, SqlLedger
from tests.support.accuracies import accuracy_of
from tests.support.full_disk import full_disk
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

WEB, API = workload_id("web"), workload_id("api")
EVER = NOON - timedelta(days=1000)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def open_ledger(address: str) -> SqlLedger:
    return SqlLedger(address, keep=timedelta(days=30))


@pytest.fixture
def ledger(address: str) -> Iterator[SqlLedger]:
    ledger = open_ledger(address)
    yield ledger
    ledger.close()


def replicas(ledger: SqlLedger) -> list[int | None]:
    return [change.decided.replicas for change in ledger.changes_of([WEB], EVER)[WEB]]


def score(at: datetime = NOON, actual: float = 4.0, model: str = "ridge") -> ForecastScore:
    return ForecastScore(WEB, CPU, at - HOUR, at, model, 0.9, median=2.0, upper=3.0, actual=actual)


def test_a_decision_is_kept_when_it_changes(ledger: SqlLedger) -> None:
    for minute, count in enumerate([5, 5, 6, 6, 5]):
        at = NOON + minute * MINUTE
        ledger.record(at, [recommendation(WEB, at=at, replicas=count), recommendation(API, at=at)])
    assert replicas(ledger) == [5, 6, 5]
    assert [change.at for change in ledger.changes_of([WEB], NOON + MINUTE)[WEB]] == [
        NOON,
        NOON + 2 * MINUTE,
        NOON + 4 * MINUTE,
    ]


@pytest.mark.parametrize("take_away", ["unlink", "empty"])
def test_a_file_that_is_taken_away_while_the_service_runs_is_made_anew(tmp_path: Path, take_away: str) -> None:
    """The first write afterwards fails and says so; into the old file it would be lost in silence."""
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db")) as ledger:
        ledger.record(NOON, [recommendation(WEB)])
        for file in tmp_path.glob("ledger.db*"):
            file.unlink() if take_away == "unlink" else file.write_bytes(b"")
        with pytest.raises(StoreError):
            ledger.record(NOON + MINUTE, [recommendation(WEB, replicas=6)])
        ledger.record(NOON + 2 * MINUTE, [recommendation(WEB, replicas=6)])
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db")) as ledger:
        assert replicas(ledger) == [6]


def test_many_are_asked_for_together(ledger: SqlLedger) -> None:
    """Hundreds are asked for at a time; a workload that was never decided about has no changes."""
    ids = [workload_id(f"web-{number}", f"team-{number % 7}") for number in range(2 * IDS_PER_QUERY + 1)]
    for minute, count in enumerate([5, 6]):
        at = NOON + minute * MINUTE
        ledger.record(at, [recommendation(id_, at=at, replicas=count) for id_ in ids])
    changes = ledger.changes_of([*ids, API], NOON)
    assert changes.pop(API) == []
    assert list(changes) == ids
    assert {tuple(change.decided.replicas for change in of_workload) for of_workload in changes.values()} == {(5, 6)}


def test_a_decision_is_kept_with_its_reason_and_what_was_unknown(ledger: SqlLedger) -> None:
    ledger.record(NOON, [recommendation(WEB, replicas=None, reason=Reason.NO_DATA)])
    (change,) = ledger.changes_of([WEB], EVER)[WEB]
    assert (change.decided.verdict, change.decided.reason, change.decided.replicas) == ("hold", "no-data", None)
    assert (change.decided.cpu_request, change.decided.cpu_limit) == (0.5, None)
    assert change.message == "no samples for 20 min"


def test_the_spare_pods_of_a_decision_are_kept_and_another_number_of_them_is_a_change(ledger: SqlLedger) -> None:
    """Eight pods with two to spare, then with three; a hold has no count to have spare pods in."""
    for minute, needed in enumerate([6, 6, 5]):
        spare = Clamp("spare", needed, 8, "")
        ledger.record(NOON + minute * MINUTE, [replace(recommendation(WEB, replicas=8), clamps=(spare,))])
    ledger.record(NOON + 3 * MINUTE, [recommendation(WEB, replicas=None)])
    assert [change.decided.spare for change in ledger.changes_of([WEB], EVER)[WEB]] == [2, 3, None]


def test_another_reason_for_the_same_number_is_a_change(ledger: SqlLedger) -> None:
    for reason in (Reason.REACTIVE, Reason.FORECAST):
        ledger.record(NOON + (reason is Reason.FORECAST) * MINUTE, [recommendation(WEB, reason=reason)])
    assert len(ledger.changes_of([WEB], EVER)[WEB]) == 2


def test_after_a_restart_the_same_decision_is_no_change(ledger: SqlLedger, address: str) -> None:
    ledger.record(NOON, [recommendation(WEB)])
    with closing(open_ledger(address)) as again:
        again.record(NOON + MINUTE, [recommendation(WEB)])
    assert len(ledger.changes_of([WEB], EVER)[WEB]) == 1


def test_two_replicas_that_decide_the_same_keep_it_once(ledger: SqlLedger, address: str) -> None:
    other = open_ledger(address)
    for writer in (ledger, other):
        writer.record(NOON, [recommendation(API)])
    for writer in (ledger, other):
        writer.record(NOON + MINUTE, [recommendation(WEB), recommendation(API)])
    other.close()
    assert len(ledger.changes_of([WEB], EVER)[WEB]) == 1


def test_one_name_of_two_kinds_is_two_workloads(ledger: SqlLedger) -> None:
    ledger.record(NOON, [recommendation(WEB), recommendation(workload_id(kind="StatefulSet"), replicas=9)])
    assert replicas(ledger) == [5]


def test_odd_names_are_kept_as_they_are(ledger: SqlLedger) -> None:
    odd = workload_id("café'); DROP TABLE decisions; --", namespace="ns\\☕")
    ledger.record(NOON, [recommendation(odd)])
    assert len(ledger.changes_of([odd], EVER)[odd]) == 1


def test_a_name_with_nul_in_the_message_of_one_decision_keeps_no_other_from_the_ledger(ledger: SqlLedger) -> None:
    odd = recommendation(API)
    odd = replace(odd, replicas=replace(odd.replicas, message="event sale\0 holds"))
    ledger.record(NOON, [recommendation(WEB), odd])
    assert replicas(ledger) == [5]
    assert [change.message for change in ledger.changes_of([API], EVER)[API]] == ["event sale holds"]


def test_after_a_clock_that_was_ahead_scores_are_written_again(ledger: SqlLedger, address: str) -> None:
    ledger.record(NOON, [recommendation(WEB)])
    ledger.score([score(NOON + 300 * DAY)])
    for minute in range(2):
        ledger.score([score(NOON + minute * MINUTE)])
    assert [row.at for row in accuracy_of(address, WEB, EVER)] == [NOON, NOON + 300 * DAY]


def test_after_a_clock_that_was_ahead_workloads_are_known_to_be_there(ledger: SqlLedger, address: str) -> None:
    ledger.record(NOON, [recommendation(WEB)])
    ledger.record(NOON + 10 * DAY, [recommendation(WEB), recommendation(API)])
    ledger.record(NOON + HOUR, [recommendation(WEB, replicas=7), recommendation(API)])
    with closing(Database(address)) as database, database.transaction() as connection:
        times = connection.scalars(select(workloads.c.seen_at)).all()
    assert set(times) == {int((NOON + HOUR).timestamp())}


def test_scores_of_an_hour_are_one_row_however_they_arrive(ledger: SqlLedger, address: str) -> None:
    ledger.record(NOON, [recommendation(WEB)])
    for minute in (0, 20, 40, 60):
        ledger.score([score(NOON + minute * MINUTE, actual=2.5), score(NOON + minute * MINUTE)])
    hour, next_hour = accuracy_of(address, WEB, EVER)
    assert (hour.at, hour.signal, hour.model) == (NOON, "cpu", "ridge")
    assert (hour.accuracy.count, hour.accuracy.covered, hour.accuracy.quantiles) == (6, 3, pytest.approx(5.4))
    assert (hour.accuracy.absolute_error, hour.accuracy.actual) == (pytest.approx(7.5), pytest.approx(19.5))
    assert next_hour.accuracy.count == 2


def test_a_model_of_ones_own_with_a_long_name_is_scored(ledger: SqlLedger, address: str) -> None:
    name = f"own:{'x' * 200}"
    ledger.record(NOON, [recommendation(WEB)])
    ledger.score([score(model=name)])
    (row,) = accuracy_of(address, WEB, EVER)
    assert (row.model, row.accuracy.count) == (name[:64], 1)


def test_scores_that_wait_are_written_at_the_end(ledger: SqlLedger, address: str) -> None:
    ledger.record(NOON, [recommendation(WEB)])
    ledger.score([score()])
    ledger.score([score(NOON + MINUTE)])
    assert accuracy_of(address, WEB, EVER)[0].accuracy.count == 1
    ledger.close()
    assert accuracy_of(address, WEB, EVER)[0].accuracy.count == 2


def test_old_hours_become_days_without_losing_a_score(ledger: SqlLedger, address: str) -> None:
    ledger.record(NOON, [recommendation(WEB)])
    for hour in range(48):
        ledger.score([score(NOON + hour * HOUR)])
    for later in (4 * DAY, 5 * DAY):
        ledger.record(NOON + later, [recommendation(WEB)])
    days = accuracy_of(address, WEB, EVER)
    assert [(row.at, row.accuracy.count) for row in days] == [
        (NOON - 12 * HOUR, 12),
        (NOON + 12 * HOUR, 24),
        (NOON + 36 * HOUR, 12),
    ]


def test_what_is_older_than_it_is_kept_is_dropped(ledger: SqlLedger, address: str) -> None:
    ledger.record(NOON, [recommendation(WEB, replicas=4), recommendation(API)])
    ledger.score([score()])
    ledger.record(NOON + 20 * DAY, [recommendation(WEB, replicas=7)])
    ledger.record(NOON + 51 * DAY, [recommendation(WEB, replicas=7)])
    assert replicas(ledger) == [7]
    assert accuracy_of(address, WEB, EVER) == []
    assert ledger.changes_of([API], EVER)[API] == []


def test_after_a_long_standstill_the_cycles_share_the_work_of_dropping(ledger: SqlLedger) -> None:
    for hour in range(24):
        ledger.record(NOON + hour * HOUR, [recommendation(WEB, replicas=hour + 1)])
    left = []
    for minute in range(5):
        ledger.record(NOON + 40 * DAY + minute * MINUTE, [recommendation(WEB, replicas=24)])
        left.append(len(replicas(ledger)))
    assert left == [18, 12, 6, 1, 1]


def test_a_decision_that_never_changes_is_kept_as_long_as_it_is_in_force(ledger: SqlLedger, address: str) -> None:
    for day in range(0, 100, 10):
        ledger.record(NOON + day * DAY, [recommendation(WEB, replicas=4)])
    assert replicas(ledger) == [4]
    with closing(open_ledger(address)) as again:
        again.record(NOON + 100 * DAY, [recommendation(WEB, replicas=4)])
        assert replicas(again) == [4]


def test_of_old_holds_the_last_is_kept_and_the_count_that_it_leaves_in_force(ledger: SqlLedger) -> None:
    for hour, count in enumerate([3, 4, None, None]):
        reason = (Reason.NO_DATA, Reason.STALE)[hour % 2] if count is None else Reason.FORECAST
        ledger.record(NOON + hour * HOUR, [recommendation(WEB, replicas=count, reason=reason)])
    ledger.record(NOON + 40 * DAY, [recommendation(WEB, replicas=None, reason=Reason.STALE)])
    assert replicas(ledger) == [4, None]
    assert [change.decided.replicas for change in ledger.changes_of([WEB], NOON + 39 * DAY)[WEB]] == [4, None]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def failure(ledger: SqlLedger) -> str:
    with pytest.raises(StoreError) as caught:
        ledger.record(NOON + MINUTE, [recommendation(WEB), recommendation(API)])
    return str(caught.value)


def test_a_file_that_is_no_database_says_so(file: Path) -> None:
    file.write_bytes(b"garbage" * 1000)
    assert "file is not a database; move the file away" in failure(open_ledger(f"sqlite:///{file}"))


def test_a_damaged_file_that_is_moved_away_is_replaced_while_the_service_runs(file: Path) -> None:
    ledger = open_ledger(f"sqlite:///{file}")
    ledger.record(NOON, [recommendation(WEB, replicas=4)])
    ledger._database.close()  # noqa: SLF001  pages that SQLite holds would hide the damage for a while
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    assert "malformed; move the file away; a new one is made" in failure(ledger)
    file.rename(file.with_suffix(".damaged"))
    ledger.record(NOON + 2 * MINUTE, [recommendation(WEB)])
    assert replicas(ledger) == [5]
    ledger.close()


def test_tables_that_are_gone_are_made_anew(ledger: SqlLedger, address: str) -> None:
    ledger.record(NOON, [recommendation(WEB, replicas=4)])
    with closing(Database(address)) as database, database.transaction() as connection:
        metadata.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
    failure(ledger)
    ledger.record(NOON + 2 * MINUTE, [recommendation(WEB)])
    assert replicas(ledger) == [5]


def test_a_directory_that_is_missing_says_so(tmp_path: Path) -> None:
    assert "unable to open database file; make its directory" in failure(open_ledger(f"sqlite:///{tmp_path}/no/file"))


def test_a_locked_database_loses_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forecaster.store.database.LOCK_WAIT_SECONDS", 0)
    ledger = open_ledger(f"sqlite:///{file}")
    ledger.record(NOON, [recommendation(WEB, replicas=4)])
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "database is locked; another process holds it" in failure(ledger)
        other.execute("ROLLBACK")
    ledger.record(NOON + 2 * MINUTE, [recommendation(WEB), recommendation(API)])
    assert replicas(ledger) == [4, 5]
    ledger.close()


def test_on_a_full_disk_nothing_of_the_cycle_is_kept_and_the_next_one_makes_up_for_it(file: Path) -> None:
    ledger = open_ledger(f"sqlite:///{file}")
    ledger.record(NOON, [recommendation(WEB, replicas=4)])
    with full_disk():
        assert "free some space" in failure(ledger)
    ledger.record(NOON + 2 * MINUTE, [recommendation(WEB), recommendation(API)])
    assert replicas(ledger) == [4, 5]
    ledger.close()


def test_scores_wait_for_a_database_that_is_away(file: Path) -> None:
    file.mkdir()
    ledger = open_ledger(f"sqlite:///{file}")
    for minute in (0, 1):
        with pytest.raises(StoreError):
            ledger.score([score(NOON + minute * MINUTE)])
    file.rmdir()
    ledger.record(NOON, [recommendation(WEB)])
    ledger.score([score(NOON + 2 * MINUTE)])
    assert accuracy_of(f"sqlite:///{file}", WEB, EVER)[0].accuracy.count == 3
    ledger.close()


def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    message = failure(open_ledger("postgresql://me:secret@127.0.0.1:1/ledger?password=secret"))
    assert "postgresql+psycopg://me:***@127.0.0.1:1/ledger" in message
    assert "secret" not in message
    assert "see whether the database answers" in message


@pytest.mark.parametrize("address", ["mysql://me:secret@host/ledger", "secret", ""])
def test_another_kind_of_database_is_a_fault_of_the_configuration(address: str) -> None:
    with pytest.raises(ConfigError, match=r"state\.database") as caught:
        open_ledger(address)
    assert "secret@" not in str(caught.value)


def test_a_new_process_recalls_the_newest_decisions_of_all(ledger: SqlLedger) -> None:
    for minute in range(6):
        at = NOON + minute * MINUTE
        ledger.record(at, [recommendation(WEB, at=at, replicas=minute + 1), recommendation(API, at=at)])
    decisions = ledger.persisted_history(NOON + HOUR, changes=2, half_life=DAY).decisions
    assert [(decision.replicas, decision.at.minute) for id_, decision in decisions if id_ == WEB] == [(5, 4), (6, 5)]
    assert [(decision.replicas, decision.verdict, decision.message) for id_, decision in decisions if id_ == API] == [
        (5, "scale", "the forecast asks for 5, the measured demand for 4")
    ]


def test_and_how_forecasts_turned_out_the_older_the_less(ledger: SqlLedger) -> None:
    ledger.record(NOON, [recommendation(WEB)])
    ledger.score([score(NOON), score(NOON + HOUR, model="seasonal")])
    ledger.score([score(NOON + DAY, actual=2.5)])
    ((id_, signal, total),) = ledger.persisted_history(NOON + DAY + MINUTE, changes=2, half_life=DAY).scores
    assert (id_, signal) == (WEB, "cpu")
    assert total.forecasts == pytest.approx(2 * 0.5 + 1, rel=0.1)
    assert total.covered == pytest.approx(1, rel=0.1)
    assert ledger.persisted_history(NOON + 30 * DAY, changes=2, half_life=DAY).scores == []


def test_the_chronicle_of_a_new_process_goes_on(ledger: SqlLedger) -> None:
    ledger.record(NOON, [recommendation(WEB, replicas=4)])
    ledger.record(NOON + MINUTE, [recommendation(WEB, at=NOON + MINUTE, replicas=5, cpu_request=0.9)])
    ledger.record(NOON + HOUR, [recommendation(WEB, at=NOON + HOUR, replicas=5, cpu_request=0.2)])
    chronicle = read_past(ledger, NOON + HOUR, logger())
    assert [(change.replicas, change.at.minute) for change in chronicle.of(WEB).decisions] == [(5, 1), (4, 0)]

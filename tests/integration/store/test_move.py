"""`forecaster store move` between real databases."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from forecaster.cli import app
from forecaster.cli.catalogue import schema_of
from forecaster.domain.report import ForecastScore
from forecaster.domain.signal import CPU, MEMORY
from forecaster.errors import StoreError
from forecaster.store.database import Database
from forecaster.store.ledger import SqlLedger
from forecaster.store.move import ROWS_A_STATEMENT, MovedTable, move
from tests.support.accuracies import accuracy_of
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from forecaster.domain.workload import WorkloadId

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
FLEET = [workload_id(f"café-{number}") for number in range(2 * ROWS_A_STATEMENT + 3)]
EVER = NOON - timedelta(days=30)


def open_ledger(address: str) -> SqlLedger:
    return SqlLedger(address, keep=timedelta(days=30))


def decide(address: str, ids: Iterable[WorkloadId], *, minute: int, replicas: int | None) -> None:
    at = NOON + minute * MINUTE
    with closing(open_ledger(address)) as ledger:
        ledger.record(at, [recommendation(id_, at=at, replicas=replicas, cpu_request=0.1 + minute / 3) for id_ in ids])
        ledger.score(
            [ForecastScore(id_, signal, at, at, "ridge", 0.9, 2.0, 3.1, 0.7) for id_ in ids for signal in (MEMORY, CPU)]
        )


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A ledger of some workloads, each with two decisions and scores of two signals."""
    address = f"sqlite:///{tmp_path}/source.db"
    decide(address, FLEET, minute=0, replicas=4)
    decide(address, FLEET, minute=7, replicas=None)
    return address


@pytest.fixture
def target(address: str) -> str:
    return address


def moved(source: str, target: str, stop_after: int | None = None) -> dict[str, MovedTable]:
    """Move a ledger and return its tables; with `stop_after` the move is interrupted before that part."""
    parts = iter(range(1_000))

    def progress(_table: str, _share: float) -> None:
        if next(parts) == stop_after:
            raise KeyboardInterrupt

    with closing(Database(source, only_read=True)) as old, closing(Database(target)) as new:
        return {table.table: table for table in move(old, new, progress)}


def content(address: str) -> list[object]:
    with closing(open_ledger(address)) as ledger:
        by_workload = [(ledger.changes_of([id_], EVER)[id_], accuracy_of(address, id_, EVER)) for id_ in FLEET]
        return [ledger.latest(), *by_workload]


def refusal(source: str, target: str) -> str:
    with pytest.raises(StoreError) as caught:
        moved(source, target)
    return str(caught.value)


def test_everything_is_there_afterwards_and_a_second_run_proves_it(source: str, target: str) -> None:
    first = moved(source, target)
    assert content(target) == content(source)
    assert {name: (table.rows, table.copied) for name, table in first.items()} == {
        "workloads": (53, 53),
        "decisions": (106, 106),
        "scores": (106, 106),
    }
    again = moved(source, target)
    assert {name: table.copied for name, table in again.items()} == dict.fromkeys(first, 0)
    assert {name: table.checksum for name, table in again.items()} == {
        name: table.checksum for name, table in first.items()
    }


def test_the_service_goes_on_in_the_new_database(source: str, target: str) -> None:
    moved(source, target)
    newcomer = workload_id("newcomer")
    decide(target, [*FLEET, newcomer], minute=9, replicas=6)
    with closing(open_ledger(target)) as ledger:
        assert [change.decided.replicas for change in ledger.changes_of([FLEET[0]], EVER)[FLEET[0]]] == [4, None, 6]
        assert [change.decided.replicas for change in ledger.changes_of([newcomer], EVER)[newcomer]] == [6]
        assert len(ledger.latest()) == len(FLEET) + 1


def test_a_move_that_ended_early_is_gone_on_with(source: str, target: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        moved(source, target, stop_after=5)
    rest = moved(source, target)
    assert (rest["workloads"].copied, rest["decisions"].copied) == (0, 106 - 2 * 2 * ROWS_A_STATEMENT)
    assert content(target) == content(source)


def test_what_was_decided_between_two_runs_comes_too(source: str, target: str) -> None:
    moved(source, target)
    decide(source, FLEET[:1], minute=30, replicas=9)
    assert moved(source, target)["decisions"].copied == 2 * ROWS_A_STATEMENT + 1
    assert content(target) == content(source)


def test_a_service_that_runs_meanwhile_loses_nothing(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forecaster.store.database.LOCK_WAIT_SECONDS", 0)
    refused = []

    def cycle(_table: str, _share: float) -> None:
        with pytest.raises(StoreError, match="locked") as caught:
            decide(source, FLEET, minute=8, replicas=5)
        refused.append(caught.value)

    with closing(Database(source)) as old, closing(Database(target)) as new:
        move(old, new, cycle)
    assert refused
    decide(source, FLEET, minute=8, replicas=5)
    with closing(open_ledger(source)) as ledger:
        assert len(ledger.changes_of([FLEET[0]], EVER)[FLEET[0]]) == 3


def test_a_database_that_a_service_writes_to_is_left_alone(source: str, target: str) -> None:
    decide(target, [workload_id("other")], minute=0, replicas=1)
    assert "it holds 1 workload not in sqlite://" in refusal(source, target)


def test_so_is_one_that_has_gone_on_since_it_was_moved(source: str, target: str) -> None:
    moved(source, target)
    decide(target, FLEET, minute=40, replicas=8)
    before = content(target)
    assert "it holds later decisions than sqlite://" in refusal(source, target)
    assert content(target) == before


def test_an_empty_source_is_a_mistake(target: str, tmp_path: Path) -> None:
    decide(empty := f"sqlite:///{tmp_path}/empty.db", [], minute=0, replicas=1)
    assert "it holds no workload; name the database" in refusal(empty, target)


def test_a_source_that_is_not_there_is_not_made(target: str, tmp_path: Path) -> None:
    assert "no decisions are recorded in" in refusal(f"sqlite:///{tmp_path}/nothing.db", target)
    assert not list(tmp_path.iterdir())


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["store", "move", *arguments])
    return done.exit_code, done.output


def test_the_command_reads_both_addresses_and_prints_what_is_there(source: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "address").write_text(target + "\n")
    (tmp_path / "settings.yaml").write_text(f"state: {{database: '{source}'}}\n")
    options = ("--config", str(tmp_path / "settings.yaml"), "--to-file", str(tmp_path / "address"))
    code, printed = run(*options, "-o", "json")
    assert code == 0, printed
    document = json.loads(printed)
    assert not list(Draft202012Validator(schema_of("store move")).iter_errors(document))
    tables = document["tables"]
    assert [(table["table"], table["rows"]) for table in tables] == [
        ("workloads", 53),
        ("decisions", 106),
        ("scores", 106),
    ]
    code, printed = run(*options)
    assert "every row is in both." in printed
    assert "decisions" in printed


def test_the_command_wants_two_databases(source: str) -> None:
    assert run("--from", source)[0] == 2
    assert run("--from", source, "--to", source)[0] == 2

"""`history` on a ledger, and times of day; the page of the command line runs `why-not` and `diff`."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from forecaster.app.clock import current, instant
from forecaster.cli import app
from forecaster.cli.catalogue import schema_of
from forecaster.cli.decisions import largest_between, why_lines
from forecaster.domain.decision import Reason
from forecaster.domain.event import ScheduledEvent
from forecaster.domain.signal import BUILT_IN, Signal, Signals
from forecaster.domain.window import MINUTE
from forecaster.errors import ConfigError, StoreError, UnknownName
from forecaster.store.ledger import SqlLedger
from tests.support.builders import NOON, after, outlooks, policy, workload
from tests.support.fakes import FakeSource, Load
from tests.support.horizontal import decided
from tests.support.recommendations import recommendation, workload_id

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

WEB = workload_id("web")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Settings of a service whose ledger has three decisions of the last hour."""
    ledger = SqlLedger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", keep=timedelta(days=1))
    now = current().replace(microsecond=0)
    for ago, replicas in ((50, 5), (40, 5), (10, None)):
        at = now - timedelta(minutes=ago)
        reason = Reason.FORECAST if replicas else Reason.NO_DATA
        ledger.record(at, [recommendation(WEB, at=at, replicas=replicas, reason=reason)])
    ledger.close()
    file = tmp_path / "settings.yaml"
    file.write_text(f"state: {{directory: {tmp_path}}}")
    return file


def history(config: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["history", *words, "--config", str(config)])


def test_lists_the_changes_oldest_first(config: Path) -> None:
    decisions = json.loads(history(config, "shop/web", "-o", "json").stdout)["decisions"]
    assert [(decision["replicas"], decision["verdict"], decision["reason"]) for decision in decisions] == [
        (5, "up", "forecast"),
        (None, "hold", "no-data"),
    ]


def test_a_workload_that_goes_to_nothing_has_a_count_in_the_table(config: Path) -> None:
    ledger = SqlLedger(f"sqlite:///{config.parent / 'ledger.sqlite'}", keep=timedelta(days=1))
    at = current().replace(microsecond=0)
    ledger.record(at, [recommendation(WEB, at=at, now=3, replicas=0, reason=Reason.REACTIVE)])
    ledger.close()
    assert "3 → 0" in history(config).stdout


def test_its_document_is_of_its_schema(config: Path) -> None:
    document = json.loads(history(config, "-o", "json").stdout)
    assert list(Draft202012Validator(schema_of("history")).iter_errors(document)) == []
    assert document["decisions"]


def test_says_when_nothing_changed(config: Path) -> None:
    assert history(config, "--length", "5m").stdout == "Nothing changed within 5m.\n"
    assert history(config, "--length", "5m", "-o", "csv").stdout == ""


def test_a_decision_in_force_is_listed_however_old_it_is(tmp_path: Path, config: Path) -> None:
    with closing(SqlLedger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", keep=timedelta(days=1))) as ledger:
        for days in (-9, 0):
            at = current() + timedelta(days=days)
            ledger.record(at, [recommendation(workload_id("steady"), at=at, replicas=7)])
    assert "3 → 7" in history(config, "shop/steady", "--length", "30d").stdout
    assert history(config, "shop/steady").stdout == "Nothing changed within 1d.\n"


def refusal(folder: Path, state: Path) -> str:
    """Return the error of `history` with settings in a folder that state where the ledger lies."""
    file = folder / "settings.yaml"
    file.write_text(f"state: {{directory: {state}}}")
    error = history(file).exception
    assert isinstance(error, StoreError)
    return str(error)


def test_where_nothing_was_recorded_nothing_is_made(tmp_path: Path) -> None:
    assert "no decisions are recorded in" in refusal(tmp_path, tmp_path / "state")
    assert list(tmp_path.iterdir()) == [tmp_path / "settings.yaml"]


def test_a_file_that_cannot_be_looked_at_is_an_error_with_its_remedy(tmp_path: Path) -> None:
    assert "unable to open database file" in refusal(tmp_path, tmp_path / ("n" * 300))


def test_a_service_that_has_decided_nothing_yet_is_no_missing_workload(tmp_path: Path) -> None:
    SqlLedger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", keep=timedelta(days=1)).latest()
    assert "no decisions are recorded in" in refusal(tmp_path, tmp_path)


def test_a_table_has_a_line_for_each(config: Path) -> None:
    assert "3 → hold" in history(config).stdout


def test_a_name_that_was_never_decided_about_is_answered(config: Path) -> None:
    error = history(config, "shop/wbe").exception
    assert isinstance(error, UnknownName)
    assert "did you mean shop/web?" in str(error)


def test_a_time_of_day_is_the_last_one_utc() -> None:
    now = datetime.now(UTC)
    at = instant("09:02")
    assert timedelta() <= now - at < timedelta(days=1, minutes=1)
    assert (at.hour, at.minute, at.second) == (9, 2, 0)


@pytest.mark.parametrize("length", ["90x", "-5m", "0", "99999999d"])
def test_a_length_that_is_none_is_refused(config: Path, length: str) -> None:
    error = history(config, f"--length={length}").exception
    assert isinstance(error, ConfigError)
    assert f"--length: {length!r}: " in str(error)


def test_why_not_reads_a_signal_of_ones_own_like_a_built_in_one() -> None:
    jobs = Signal("jobs", unit="jobs")
    source = FakeSource([Load(workload("web"), {jobs: lambda at: 7.0 if at == NOON + 5 * MINUTE else 1.0})])
    table = Signals((*BUILT_IN.demand, jobs))
    assert largest_between(source, table, NOON, NOON + 10 * MINUTE, "jobs") == {WEB: 7.0}


def test_a_name_with_a_line_break_makes_no_line_of_its_own_in_why_not() -> None:
    event = ScheduledEvent(name="sale\n  - forecast: 4 → 9", replicas=12, start=after(-2), end=after(60))
    under = policy(events=(event,))
    lines = why_lines(workload(), decided(outlooks(cpu=2.0), under=under), under)
    assert "event: 4 → 12, sale   - forecast: 4 → 9 until 13:00 UTC" in "".join(lines)
    assert not [line for line in lines if "\n" in line]

"""The worth of the decisions in a ledger, measured at an endpoint."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from forecaster.app.clock import current
from forecaster.cli import app
from forecaster.report.week import DECIDED_NOTE
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from forecaster.store.ledger import SqlLedger
from tests.support.recommendations import recommendation

if TYPE_CHECKING:
    from pathlib import Path


def test_the_outcome_of_two_hours_of_kept_decisions(tmp_path: Path) -> None:
    recording = load_recording()
    end = recording.end - timedelta(minutes=recording.end.minute % 5)
    search = next(workload.id for workload in recording.workloads if workload.id.name == "search")
    database = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    ledger = SqlLedger(database, keep=timedelta(days=3650))
    ledger.record(end - timedelta(hours=3), [recommendation(search, at=end - timedelta(hours=3), replicas=12)])
    ledger.close()
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"state: {{database: '{database}', keep: 3650d}}", encoding="utf-8")
    with EmbeddedPrometheus(recording, Queries(), recording.fleet(recording.end)) as server:
        named = ("report", "shop/*", "--prometheus", server.url, "--config", str(settings))
        span = ("--until", end.isoformat(), "--length", "2h")
        done = CliRunner().invoke(app, [*named, *span, "-o", "json"])
        printed = CliRunner().invoke(app, [*named, *span]).stdout.partition(DECIDED_NOTE)[2]
    assert done.exit_code == 0, done.output
    decided = json.loads(done.stdout)["decided"]
    (workload,) = decided["workloads"]
    assert workload["name"] == "search"
    assert workload["strategies"]["decided"]["own"]["pod_hours"] >= 2 * 12 - 1
    assert "shop/search" in printed
    assert {left["name"] for left in decided["left_out"]} == {"checkout", "recommendations", "storefront"}


def test_a_ledger_that_cannot_be_read_is_said_and_leaves_the_rest_of_the_report(tmp_path: Path) -> None:
    recording, settings = load_recording(), tmp_path / "settings.yaml"
    (tmp_path / "ledger.sqlite").write_text("no database at all, and long enough for its header\n")
    settings.write_text(f"state: {{directory: {tmp_path}}}", encoding="utf-8")
    options = ("--config", str(settings), "--until", recording.end.isoformat(), "--length", "1h", "--every", "60")
    with EmbeddedPrometheus(recording, Queries(), recording.fleet(recording.end)) as server:
        done = CliRunner().invoke(app, ["report", "shop/search", "--prometheus", server.url, *options, "-o", "json"])
    assert done.exit_code == 0, done.output
    assert "! the recorded decisions are left out: ledger sqlite" in done.stderr
    assert json.loads(done.stdout)["decided"] is None


def test_hours_to_come_are_in_no_report_and_a_ledger_without_these_hours_is_said(tmp_path: Path) -> None:
    recording = load_recording()
    now = current().replace(second=0, microsecond=0)
    recording = replace(recording, start=now - (recording.end - recording.start))
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"state: {{directory: {tmp_path}}}", encoding="utf-8")
    ledger = SqlLedger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", keep=timedelta(days=30))
    ledger.record(now, [recommendation(recording.workloads[0].id, at=now)])
    ledger.close()
    begin, end = now - timedelta(minutes=50), now + timedelta(days=1)
    span = ("--from", begin.isoformat(), "--to", end.isoformat(), "--every", "60")
    with EmbeddedPrometheus(recording, Queries(), recording.fleet(now)) as server:
        named = ("report", "shop/search", "--prometheus", server.url, "--config", str(settings))
        done = CliRunner().invoke(app, [*named, *span])
    assert done.exit_code == 0, done.output
    assert re.search(r"over 0\.\d\d? h, ", done.stdout)
    assert "! the ledger has no decision of this time" in done.stderr

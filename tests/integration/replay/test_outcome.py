"""What kept decisions were worth, from a ledger and an endpoint, and a tape from the command line."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from forecaster.app.tape_replay import beginning
from forecaster.cli import app
from forecaster.config.settings import parse
from forecaster.report.week import DECIDED_NOTE
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from forecaster.sources.tape import Tape, TapedLedger, TapedSource
from forecaster.store.ledger import SqlLedger
from tests.support.builders import NOON
from tests.support.fakes import SHORT, CycleOnFakes, load
from tests.support.recommendations import recommendation

if TYPE_CHECKING:
    from pathlib import Path


def test_the_outcome_of_two_hours_of_kept_decisions(tmp_path: Path) -> None:
    recording = load_recording()
    end = recording.end - timedelta(minutes=recording.end.minute % 5)
    search = next(one.id for one in recording.workloads if one.id.name == "search")
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
        told = CliRunner().invoke(app, [*named, *span]).stdout.partition(DECIDED_NOTE)[2]
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["decided"]
    (one,) = found["workloads"]
    assert one["name"] == "search"
    assert one["strategies"]["decided"]["own"]["pod_hours"] >= 2 * 12 - 1
    assert "shop/search" in told
    assert {left["name"] for left in found["left_out"]} == {"checkout", "recommendations", "storefront"}


def test_a_tape_is_played_from_the_command_line(tmp_path: Path) -> None:
    settings = parse({"history": SHORT.model_dump(mode="json"), "forecast": {"model": "last-value"}}, "test")
    service = CycleOnFakes(load("web"), policies=settings.policies, learns_first=False)
    tape = Tape(tmp_path / "tape", beginning(settings, service.history, NOON))
    service.cycle.source = TapedSource(service.source, tape)
    service.cycle.effects.ledger = TapedLedger(service.ledger, tape)
    service.run_minutes(0, 3)
    tape.close()
    done = CliRunner().invoke(app, ["replay", "--tape", str(tmp_path / "tape")])
    assert done.exit_code == 0, done.output
    assert "4 cycles with 4 decisions played again; 0 of them" in done.output

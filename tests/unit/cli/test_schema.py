"""The published schemas hold what commands print, and every command's help fits a terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from jsonschema import Draft202012Validator
from typer.main import get_command
from typer.testing import CliRunner

from forecaster.cli import app
from forecaster.errors import UnknownName
from forecaster.replay import Assumptions
from forecaster.replay.weekly import WeekOutcome, adoptions_of
from forecaster.report.replay_view import comparison_view
from forecaster.report.schemas import DOCUMENTS, schema_of
from forecaster.report.week_view import week_view
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from tests.support.replays import looked_back, small_comparison

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click import Command

WIDTH = 80


def faults(command: str, document: object) -> list[str]:
    schema = schema_of(command)
    Draft202012Validator.check_schema(schema)
    return [error.message for error in Draft202012Validator(schema).iter_errors(document)]


@pytest.mark.parametrize(("command", "names"), [("once", ()), ("explain", ("shop/search",))])
def test_what_a_command_prints_is_of_its_schema(command: str, names: tuple[str, ...]) -> None:
    recording = load_recording()
    with EmbeddedPrometheus(recording, Queries(), recording.fleet(recording.end)) as server:
        given = [command, *names, "--prometheus", server.url, "--at", recording.end.isoformat(), "-o", "json"]
        done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    assert faults(command, json.loads(done.stdout)) == []


def test_what_replay_and_report_print_is_of_their_schemas() -> None:
    one = looked_back()
    week = week_view(WeekOutcome(one, adoptions_of(one), []))
    assert faults("report", json.loads(msgspec.json.encode(week))) == []
    assert (
        faults("replay", json.loads(msgspec.json.encode(comparison_view(small_comparison(), Assumptions(), "")))) == []
    )


def test_a_document_of_another_form_is_told_apart() -> None:
    assert faults("once", {"recommendation": []}) != []


def test_schemas_are_listed_and_printed() -> None:
    assert CliRunner().invoke(app, ["schema"]).stdout.split() == sorted(DOCUMENTS)
    printed = json.loads(CliRunner().invoke(app, ["schema", "once"]).stdout)
    assert printed["title"] == "forecaster once -o json"
    refused = CliRunner().invoke(app, ["schema", "onse"], catch_exceptions=True).exception
    assert isinstance(refused, UnknownName)
    assert "did you mean once?" in str(refused)


def commands(command: Command, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield names
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, (*names, name))


@pytest.mark.parametrize("names", list(commands(get_command(app))), ids=" ".join)
def test_help_fits_a_terminal(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    shown = CliRunner().invoke(app, [*names, "-h"]).stdout
    assert [line for line in shown.splitlines() if len(line) > WIDTH] == []

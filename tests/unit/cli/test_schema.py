"""The published schemas hold what commands print, and every command's help fits a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from jsonschema import Draft202012Validator
from typer.main import get_command
from typer.testing import CliRunner

from forecaster.cli import app
from forecaster.cli.catalogue import DOCUMENTS, schema_of
from forecaster.errors import UnknownName
from forecaster.replay.weekly import WeekOutcome, adoptions_of
from forecaster.report.comparison_view import comparison_view
from forecaster.report.week import week_view
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


@pytest.fixture(scope="module")
def measured() -> Iterator[list[str]]:
    """The options of a Prometheus with the demo's load."""
    recording = load_recording()
    with EmbeddedPrometheus(recording, Queries(), recording.fleet(recording.end)) as server:
        yield ["--prometheus", server.url, "--at", recording.end.isoformat()]


def printed(*words: str) -> object:
    done = CliRunner().invoke(app, [*words, "-o", "json"])
    assert done.exit_code in {0, 1}, done.output
    return json.loads(done.stdout)


MEASURED = {
    "explain": ("explain", "shop/search"),
    "once": ("once",),
    "recommend": ("recommend", "--joint", "--price-core-hour", "0.03", "--price-gib-hour", "0.004"),
}
"""Commands that read a Prometheus at an instant."""
ALONE = {
    "demo": ("demo", "--once"),
    "models": ("models",),
    "settings": ("settings",),
}
"""Commands that need no Prometheus and no file."""


@pytest.mark.parametrize("command", MEASURED)
def test_documents_about_a_prometheus_have_their_schema(command: str, measured: list[str]) -> None:
    assert faults(command, printed(*MEASURED[command], *measured)) == []


@pytest.mark.parametrize("command", ALONE)
def test_documents_of_commands_that_need_nothing_have_their_schema(command: str) -> None:
    document = printed(*ALONE[command])
    assert faults(command, document) == []
    assert all(document.values())  # type: ignore[attr-defined]  # printed() returns an object


def test_what_doctor_and_diff_print_is_of_their_schemas(measured: list[str], tmp_path: Path) -> None:
    assert faults("doctor", printed("doctor", *measured[:2])) == []
    before, after = tmp_path / "before.yaml", tmp_path / "after.yaml"
    before.write_text("{}")
    after.write_text("policy: {horizontal: {max_replicas: 2}}")
    document = printed("diff", str(before), str(after), *measured)
    assert faults("diff", document) == []
    assert all(difference["replicas_to"] <= 2 for difference in document["differences"])  # type: ignore[index]


def test_documents_about_the_past_have_their_schema() -> None:
    week = looked_back()
    views = {
        "replay": comparison_view(small_comparison()),
        "report": week_view(WeekOutcome(week, adoptions_of(week), [])),
    }
    for command, view in views.items():
        assert faults(command, json.loads(msgspec.json.encode(view))) == []


ELSEWHERE = {"backtest vertical", "history", "hpa simulate", "nodes", "store move", "tune"}
"""Commands whose documents are checked in their own tests."""


def test_every_document_has_a_schema_that_a_test_holds() -> None:
    speaking = {" ".join(names) for names in leaves(get_command(app)) if writes_json(names)}
    held = {*MEASURED, *ALONE, *ELSEWHERE, "diff", "doctor", "replay", "report"}
    assert speaking == set(DOCUMENTS) == held


def writes_json(names: tuple[str, ...]) -> bool:
    text = CliRunner().invoke(app, [*names, "-h"]).stdout
    return re.search(r"-o, --output\s+<[a-z|]*\bjson\b", text) is not None


def test_a_document_of_another_form_is_a_fault() -> None:
    assert faults("once", {"recommendation": []}) != []


def test_schemas_are_listed_and_printed() -> None:
    assert CliRunner().invoke(app, ["schema"]).stdout.splitlines() == sorted(DOCUMENTS)
    schema = json.loads(CliRunner().invoke(app, ["schema", "once"]).stdout)
    assert schema["title"] == "forecaster once -o json"
    refused = CliRunner().invoke(app, ["schema", "onse"], catch_exceptions=True).exception
    assert isinstance(refused, UnknownName)
    assert "did you mean once?" in str(refused)


def leaves(command: Command, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield names
    for name, subcommand in getattr(command, "commands", {}).items():
        yield from leaves(subcommand, (*names, name))


@pytest.mark.parametrize("names", list(leaves(get_command(app))), ids=" ".join)
def test_help_fits_a_terminal(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    shown = CliRunner().invoke(app, [*names, "-h"]).stdout
    assert [line for line in shown.splitlines() if len(line) > WIDTH] == []


PUBLISHED = Path(__file__).parents[3] / "docs" / "schemas"


def test_the_schema_that_others_build_on_is_published_under_its_version() -> None:
    """A new field keeps the version: write `forecaster schema recommend >docs/schemas/recommend-N.json`."""
    schema = schema_of("recommend")
    (version,) = schema["$defs"]["AdvicesView"]["properties"]["schema_version"]["enum"]
    assert json.loads((PUBLISHED / f"recommend-{version}.json").read_text(encoding="utf-8")) == schema

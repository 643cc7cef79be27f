"""Every block of code in the documents is tried, or its marker says by which test, or why not.

A line of the command line is read by the command line itself, YAML of settings by their validation, Python runs. What
is more than that has a test of its own, which the marker `<!-- run by PATH -->` names; what cannot run says so:
`<!-- not run: WHY -->`.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import click
import pytest
import typer.main
import yaml

from forecaster.cli import app
from forecaster.config.settings import Settings, parse
from tests.support.panels import daily_waves
from tests.support.snippets import ROOT, Snippet, snippets

if TYPE_CHECKING:
    from pathlib import Path

OWN_TESTS = {
    "command-line.md": "tests/unit/cli/test_documented_commands.py",
    "integrate.md": "tests/cluster/test_integrate.py",
    "external-metrics.md": "tests/cluster/test_external_metrics.py",
    "api.md": "tests/unit/serving/test_documentation.py",
    "CONTRIBUTING.md": "tests/unit/sources/test_factory.py",
}
"""Pages whose blocks are tried as a whole, with the things that they are about."""
ALL = list(snippets())
OURS = [snippet for snippet in ALL if snippet.page.name not in OWN_TESTS and snippet.marker is None]
COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:kubectl )?forecaster (.+?)(?:\s+#.*|\s+[>|].*)?$")
IN_PROSE = re.compile(r"`(?:kubectl )?forecaster ((?!--)[^`\n{]+?) ?…?`")
"""A command within a sentence; those that only show a version or install completion are options."""
FILES = ("cluster.json", "demand.csv", "hpa.yaml", "settings.yaml", "tuned.yaml", "week.zip")
"""Files that commands of the documents name; the command line asks whether they are there."""


def is_settings(snippet: Snippet) -> bool:
    if snippet.language not in {"", "yaml"}:
        return False
    try:
        value = yaml.safe_load(snippet.text)
    except yaml.YAMLError:
        return False
    return isinstance(value, dict) and set(value) <= set(Settings.model_fields)


def commands(snippet: Snippet) -> list[str]:
    text = re.sub(r"\\\n\s*", " ", snippet.text)
    lines = [line for line in text.splitlines() if line.strip()]
    shown = [line for line in lines if line.startswith("$ ")] if snippet.language == "console" else lines
    return (
        [match[1] for line in shown if (match := COMMAND.match(line))]
        if snippet.language in {"", "sh", "console"}
        else []
    )


def tried_as(snippet: Snippet) -> str:
    if snippet.language == "python":
        return "python"
    return "settings" if is_settings(snippet) else "commands" if commands(snippet) else "nothing"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in FILES:
        (tmp_path / name).write_text("{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("snippet", OURS, ids=lambda snippet: snippet.name)
def test_every_block_is_of_a_kind_that_is_tried_or_says_why_not(snippet: Snippet) -> None:
    assert tried_as(snippet) != "nothing", f"{snippet.name}: put <!-- run by PATH --> or <!-- not run: WHY --> above it"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "snippet", [snippet for snippet in OURS if tried_as(snippet) == "commands"], ids=lambda snippet: snippet.name
)
def test_the_command_line_takes_every_command(snippet: Snippet) -> None:
    root = typer.main.get_command(app)
    for line in commands(snippet):
        _parsed(root, shlex.split(line))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("where", [ROOT / "docs", ROOT / "deploy", ROOT / "forecaster"], ids=lambda where: where.name)
def test_the_command_line_takes_what_sentences_alerts_and_messages_name(where: Path) -> None:
    texts = [
        file.read_text(encoding="utf-8") for end in ("md", "yaml", "txt", "py") for file in where.rglob(f"*.{end}")
    ]
    named = {line for text in texts for line in IN_PROSE.findall(text)}
    assert len(named) > 2
    for line in sorted(named):
        with suppress(click.MissingParameter):  # a sentence names a command without its arguments
            _parsed(typer.main.get_command(app), shlex.split(line))


def _parsed(command: click.Command, words: list[str]) -> None:
    """Names and options are there; nothing runs."""
    if isinstance(command, click.Group) and words:
        name, subcommand, rest = command.resolve_command(click.Context(command), words)
        assert subcommand is not None, name
        _parsed(subcommand, rest)
    elif not isinstance(command, click.Group):
        command.make_context(command.name, words)


@pytest.mark.parametrize(
    "snippet", [snippet for snippet in OURS if tried_as(snippet) == "settings"], ids=lambda snippet: snippet.name
)
def test_settings_are_valid(snippet: Snippet) -> None:
    parse(yaml.safe_load(snippet.text), snippet.name)


@pytest.mark.parametrize(
    "snippet", [snippet for snippet in OURS if tried_as(snippet) == "python"], ids=lambda snippet: snippet.name
)
def test_python_runs(snippet: Snippet) -> None:
    whole = daily_waves(3, days=10, step=timedelta(minutes=30))
    panel = whole.until(whole.end - timedelta(hours=2))
    names = {"panel": panel, "newer": whole}
    prelude = (
        "from dataclasses import dataclass\nimport numpy as np\nfrom models.fitted import FittedRule\n"
        "from models import Panel, StepWindow, create\n"
    )
    exec(compile(prelude + snippet.text, snippet.name, "exec"), names)  # noqa: S102  our own documents


@pytest.mark.parametrize("snippet", [snippet for snippet in ALL if snippet.marker], ids=lambda snippet: snippet.name)
def test_a_marker_names_a_test_or_a_reason(snippet: Snippet) -> None:
    kind, argument = snippet.marker or ("", "")
    assert (ROOT / argument).exists() if kind == "run by" else len(argument.split()) > 2


@pytest.mark.parametrize("page", OWN_TESTS)
def test_a_page_with_a_test_of_its_own_is_read_by_it(page: str) -> None:
    test = ROOT / OWN_TESTS[page]
    texts = [test.read_text(), (ROOT / "tests/support/integrate_page.py").read_text()]
    assert any(page in text for text in texts)

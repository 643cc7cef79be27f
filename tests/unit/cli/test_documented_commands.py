"""The page of the command line shows what the commands print, at 80 columns, on the recorded load.

`WRITE_DOCS=1 pytest tests/unit/cli/test_documented_commands.py` writes it anew.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forecaster.__main__ import main
from forecaster.app.demo import DEMO_HISTORY
from forecaster.config.settings import Settings
from forecaster.domain.window import MINUTE
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.recorded import load_recording

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"
BLOCK = re.compile(r"```console\n\$ (.+)\n(?:(?!```).*\n)*```")
FILES = {
    "settings.yaml": "policy: {horizontal: {requests_metric: http_requests_per_second}}\nstate: {directory: state}\n",
    "critical.yaml": "policy:\n  horizontal: {requests_metric: http_requests_per_second, lead_time: 8m}\n",
    "mistakes.yaml": "policy:\n  horizontal: {lead_tme: 3m, lead_time: 3}\n  vertical: {min_memory: 64MB}\n",
}
MEASURED = {"once", "explain", "recommend", "why-not"}
"""Commands that read a Prometheus."""


@pytest.fixture(scope="module")
def measured() -> Iterator[list[str]]:
    """The options of a Prometheus with the demo's load, at the demo's beginning."""
    recording = load_recording()
    begin = recording.start - MINUTE + DEMO_HISTORY
    with EmbeddedPrometheus(recording, Settings().queries, recording.fleet(begin)) as served:
        yield ["--prometheus", served.url, "--config", "settings.yaml", "--at", begin.isoformat()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


DEMONSTRATED = (
    "once",
    "once shop/chekout",
    "explain shop/recommendations",
    "why-not shop/recommendations",
    "diff settings.yaml critical.yaml",
)
"""Commands of the page that `--demo` runs without a Prometheus."""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("line", DEMONSTRATED)
def test_a_reader_without_a_prometheus_sees_the_same(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--demo` prints the blocks of the page; its settings name the request rate of the recorded load."""
    config = [] if line.startswith("diff") else ["--config", "settings.yaml"]
    monkeypatch.setattr("sys.argv", ["forecaster", *line.split(), "--demo", *config])
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr()
    printed = [text.rstrip() for text in (shown.out + shown.err).splitlines()]
    page = PAGE.read_text(encoding="utf-8").splitlines()
    first = page.index(f"$ forecaster {line}") + 1
    assert printed[:9] == page[first : first + len(printed[:9])]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("line", BLOCK.findall(PAGE.read_text(encoding="utf-8")))
def test_the_page_shows_what_the_command_prints(
    line: str, measured: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(line)
    monkeypatch.setattr(
        "sys.argv",
        [*words, *(measured if words[1] in MEASURED else [])]
        + ([*measured[:2], *measured[4:]] if words[1] == "diff" else []),
    )
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr()
    printed = "\n".join(text.rstrip() for text in (shown.out + shown.err).splitlines())
    printed = re.sub(r"http://127[^ ]+?:\d+|http://127\.0\.0\.1:\d+", "http://prometheus:9090", printed)
    printed = re.sub(r"\n?! the cluster is not known.*(\n  .*)*", "", printed)
    block = f"```console\n$ {line}\n{printed}\n```"
    if os.environ.get("WRITE_DOCS"):
        page = PAGE.read_text(encoding="utf-8")
        (old,) = (match[0] for match in BLOCK.finditer(page) if match[1] == line)
        PAGE.write_text(page.replace(old, block), encoding="utf-8")
    assert block in PAGE.read_text(encoding="utf-8")
    if not line.endswith("mistakes.yaml"):
        assert max(map(len, shown.out.splitlines()), default=0) <= 80

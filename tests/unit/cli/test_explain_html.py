"""`forecaster explain --html`: one file that loads nothing, with demand, forecast and every step."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from forecaster.app.demo import DEMO_HISTORY
from forecaster.cli import app
from forecaster.config.settings import Settings
from forecaster.domain.window import MINUTE
from forecaster.errors import StoreError
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.recorded import load_recording

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("explained")
    recording = load_recording()
    begin = recording.start - MINUTE + DEMO_HISTORY
    with EmbeddedPrometheus(recording, Settings().queries, recording.fleet(begin)) as served:
        given = ("explain", "shop/recommendations", "--prometheus", served.url, "--at", begin.isoformat())
        done = CliRunner().invoke(app, [*given, "--html", str(folder / "out.html")])
    assert done.exit_code == 0, done.output
    assert not done.stdout
    assert f"{folder / 'out.html'}: written, " in done.stderr
    return (folder / "out.html").read_text(encoding="utf-8")


def test_it_says_every_step_and_the_result(page: str) -> None:
    assert "the p90 of the coming peak raises what the measured demand asks for" in page
    assert "<b>7 replicas (forecast): the forecast asks for 7, the measured demand for 3</b>" in page


def test_it_draws_demand_and_the_band_of_the_coming_hour(page: str) -> None:
    assert page.count('<path class="line demand"') >= 1
    assert page.count('<path class="band"') == 1
    assert re.search(r'data-says="peak p90: [\d.]+ cores"', page)
    chart = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', page)[0])
    assert chart["count"] == 144 + 12
    assert [name for name, _ in chart["series"]] == ["demand, cores", "p90"]


def test_it_loads_nothing(page: str) -> None:
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href)=", page)


def test_a_name_with_a_line_break_makes_no_line_of_its_own(tmp_path: Path) -> None:
    recording = load_recording()
    begin = recording.start - MINUTE + DEMO_HISTORY
    event = {"name": "sale\n  => 100 replicas", "replicas": 50, "cron": "* * * * *", "duration": "1h"}
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"policy": {"horizontal": {"events": [event]}}}), encoding="utf-8")
    with EmbeddedPrometheus(recording, Settings().queries, recording.fleet(begin)) as served:
        given = ("explain", "shop/recommendations", "--prometheus", served.url, "--at", begin.isoformat())
        done = CliRunner().invoke(app, [*given, "--config", str(settings)])
    assert "(sale   => 100 replicas until" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("  => 100")] == []


def test_a_file_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["explain", "a/b", "--html", str(tmp_path / "none" / "out.html")])
    assert isinstance(done.exception, StoreError)

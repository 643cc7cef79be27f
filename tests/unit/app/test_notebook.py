"""Panels for notebooks: those of the recording equal those of a Prometheus that serves it."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from forecaster.app import notebook
from forecaster.domain.window import FIVE_MINUTES
from forecaster.errors import SourceRefused, UnknownName
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from forecaster.sources.settings import PrometheusSettings
from models import PanelError


def test_the_recording_has_the_workloads_that_have_the_signal() -> None:
    cpu, memory = notebook.recorded("cpu"), notebook.recorded("memory", days=2)
    assert (len(cpu), cpu.length) == (11, 13 * 288)
    assert (len(memory), memory.length) == (6, 2 * 288)


def test_a_prometheus_that_serves_the_recording_gives_the_same_panel() -> None:
    recording, queries = load_recording(), Queries()
    with EmbeddedPrometheus(recording, queries, recording.fleet(recording.end)) as prometheus:
        settings = PrometheusSettings(url=prometheus.url)
        panel = notebook.of_prometheus(settings, queries, "cpu", 1, FIVE_MINUTES, recording.end)
    expected = notebook.recorded("cpu").until(panel.end).last(timedelta(days=1)).select(panel.keys)
    assert (panel.start, panel.step, len(panel)) == (expected.start, expected.step, 11)
    np.testing.assert_allclose(panel.values, expected.values, rtol=1e-5)


def test_a_signal_that_nobody_has_is_refused() -> None:
    recording, queries = load_recording(), Queries()
    with EmbeddedPrometheus(recording, queries, recording.fleet(recording.end)) as prometheus:
        settings, much_later = PrometheusSettings(url=prometheus.url), recording.end + timedelta(days=400)
        with pytest.raises(PanelError, match="no workload has a sample of cpu"):
            notebook.of_prometheus(settings, queries, "cpu", 1, FIVE_MINUTES, much_later)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", r"own\.csv: not a readable CSV"),
        (
            "timestamp,value,signal\n1772366400,1,memory\n",
            r"own\.csv holds no sample of 'cpu'; its signals are: memory",
        ),
    ],
)
def test_a_file_without_demand_is_named_with_what_it_has(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "own.csv").write_text(text)
    with pytest.raises((SourceRefused, PanelError), match=fault):
        notebook.load("cpu", tmp_path / "own.csv")


def test_a_signal_that_is_misspelt_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(UnknownName, match="no signal matches 'cpuu'; did you mean cpu"):
        notebook.load("cpuu")


def minutes_of(workload: str, *instants: str) -> str:
    rows = "".join(f"{instant},{workload},{i}\n" for i, instant in enumerate(instants, 1))
    return "timestamp,workload,value\n" + rows


def test_a_table_by_the_minute_says_what_was_done_and_names_workloads_as_every_source_does(tmp_path: Path) -> None:
    instants = [f"2026-03-01 12:{minute:02}:00" for minute in range(10)]
    (tmp_path / "own.csv").write_text(minutes_of("shop/web", *instants) + "2026-03-01 12:10:00,shop/web,-1\n")
    panel = notebook.load("cpu", tmp_path / "own.csv")
    assert (panel.keys, panel.step, panel.values.tolist()) == (("shop/Deployment/web",), FIVE_MINUTES, [[3.0, 8.0]])
    assert panel.notes[0] == "timestamps name no time zone and were read as UTC"
    assert panel.notes[1] == "1 of 11 rows hold no demand (empty, negative, no number)"


@pytest.mark.parametrize(
    "instants",
    [
        ["2026-03-29T01:55:00+01:00", "2026-03-29T03:00:00+02:00"],
        ["2026-03-29T00:55:00Z", "2026-03-29T00:56:02Z", "2026-03-29T00:57:04Z", "2026-03-29T01:00:00Z"],
    ],
    ids=["clocks change", "every 62 s"],
)
def test_a_table_needs_no_even_clock(tmp_path: Path, instants: list[str]) -> None:
    (tmp_path / "own.csv").write_text(minutes_of("web", *instants))
    panel = notebook.load("cpu", tmp_path / "own.csv")
    assert (panel.start.isoformat(), panel.length) == ("2026-03-29T00:55:00+00:00", 2)

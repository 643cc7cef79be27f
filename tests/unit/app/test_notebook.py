"""Panels for notebooks: from the recording, and the same from a Prometheus that serves it."""

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
        ours = notebook.of_prometheus(settings, queries, "cpu", 1, FIVE_MINUTES, recording.end)
    expected = notebook.recorded("cpu").until(ours.end).last(timedelta(days=1)).select(ours.keys)
    assert (ours.start, ours.step, len(ours)) == (expected.start, expected.step, 11)
    np.testing.assert_allclose(ours.values, expected.values, rtol=1e-5)


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

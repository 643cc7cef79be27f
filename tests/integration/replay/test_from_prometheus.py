"""A cluster's last hours, asked of an endpoint, are the hours that were recorded."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
from typer.testing import CliRunner

from forecaster.app import traces
from forecaster.cli import app
from forecaster.domain.signal import CPU, PODS
from forecaster.errors import SourceRefused
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from forecaster.sources.settings import PrometheusSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

LENGTH, HISTORY = timedelta(hours=2), timedelta(hours=30)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddedPrometheus]:
    recording = load_recording()
    with EmbeddedPrometheus(recording, Queries(), recording.fleet(recording.end)) as server:
        yield server


def test_what_is_measured_is_what_was_recorded_over_the_two_minutes_of_its_rate(endpoint: EmbeddedPrometheus) -> None:
    recorded = traces.recorded()
    until = recorded.end - timedelta(minutes=recorded.end.minute % 5)
    measured = traces.measured(PrometheusSettings(url=endpoint.url), length=LENGTH, history=HISTORY, until=until)
    row = {workload.id: i for i, workload in enumerate(recorded.workloads)}
    order = [row[workload.id] for workload in measured.workloads]
    fine = slice(measured.column(until - LENGTH), measured.column(until) + 1)
    same = slice(recorded.column(until - LENGTH), recorded.column(until) + 1)
    before = slice(same.start - 1, same.stop - 1)
    cores = recorded.of(CPU)[order]
    assert np.allclose(measured.of(CPU)[:, fine], (cores[:, same] + cores[:, before]) / 2, rtol=1e-4)
    assert np.isfinite(measured.of(CPU)[:, : fine.start]).all()
    assert PODS in measured.values


def test_nobody_of_that_name_is_said(endpoint: EmbeddedPrometheus) -> None:
    with pytest.raises(SourceRefused, match="none of 11 workloads"):
        traces.measured(
            PrometheusSettings(url=endpoint.url), length=LENGTH, until=load_recording().end, chosen=lambda _: ()
        )


def test_the_command_replays_a_cluster(endpoint: EmbeddedPrometheus) -> None:
    end = load_recording().end.isoformat()
    named = ("replay", "shop/search", "--from-prometheus", "--prometheus", endpoint.url)
    done = CliRunner().invoke(app, [*named, "--until", end, "--length", "1h", "--no-cache", "--every", "10"])
    assert done.exit_code == 0, done.output
    assert "1 workload over 1 h" in done.output

"""`forecaster replay --from-prometheus` on a real Prometheus says what a replay of the same series from a file says."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
from typer.testing import CliRunner

from forecaster.app import traces
from forecaster.cli import app
from forecaster.domain.workload import TargetType
from forecaster.sources.settings import PrometheusSettings
from tests.support.prometheus import RealPrometheus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from forecaster.domain.workload import Workload
    from forecaster.replay.traces import Traces
    from tests.integration.conftest import FilledWeek
    from tests.support.prometheus import Binaries

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]

LENGTH, HISTORY = timedelta(hours=2), timedelta(days=14)
MANIFEST = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {hpa.name}, namespace: {id.namespace}}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: {id.kind}, name: {id.name}}}
  minReplicas: {hpa.min_replicas}
  maxReplicas: {hpa.max_replicas}
  metrics:
  - {{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: {percent}}}}}}}
"""


@pytest.fixture(scope="module")
def server(filled_week: FilledWeek, prometheus_binaries: Binaries) -> Iterator[RealPrometheus]:
    with RealPrometheus(prometheus_binaries, filled_week.data) as running:
        yield running


def replayed(path: Path, *given: str) -> dict[str, object]:
    """Return the report for machines, without its run time and its origin."""
    done = CliRunner().invoke(app, ["replay", *given, "--no-cache", "--every", "30", "--json", str(path)])
    assert done.exit_code == 0, done.output
    report: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return {name: value for name, value in report.items() if name not in {"seconds", "origin"}}


def test_a_cluster_and_a_file_of_its_series_have_one_outcome(
    server: RealPrometheus, filled_week: FilledWeek, tmp_path: Path
) -> None:
    until = filled_week.week.now - timedelta(minutes=10)
    measured = traces.measured(PrometheusSettings(url=server.url), length=LENGTH, history=HISTORY, until=until)
    row = next(i for i, workload in enumerate(measured.workloads) if goes_by_cpu(workload))
    workload = measured.workloads[row]
    export, hpa = tmp_path / "demand.csv", tmp_path / "hpa.yaml"
    export.write_text(exported(measured, row), encoding="utf-8")
    hpa.write_text(manifest(workload), encoding="utf-8")
    span = ("--length", "2h", "--until", until.isoformat())
    of_file = ("--export", str(export), "--hpa", str(hpa), "--request", f"cpu={workload.resources.cpu_request}", *span)
    from_server = replayed(tmp_path / "asked", str(workload.id), "--from-prometheus", "--prometheus", server.url, *span)
    assert from_server == replayed(tmp_path / "read", str(workload.id), *of_file)
    assert from_server["total"]["hpa"]["own"]["pod_hours"] > 0  # type: ignore[index]


def goes_by_cpu(workload: Workload) -> bool:
    """Whether an HPA on the share of the CPU request scales it, and nothing else."""
    targets = workload.autoscaler.targets if workload.autoscaler else ()
    return [(target.metric, target.type) for target in targets] == [("cpu", TargetType.UTILIZATION)]


def manifest(workload: Workload) -> str:
    assert workload.autoscaler
    percent = round(workload.autoscaler.targets[0].value * 100)
    return MANIFEST.format(id=workload.id, hpa=workload.autoscaler, percent=percent)


def exported(measured: Traces, row: int) -> str:
    """Write every sample to the last digit."""
    id_ = measured.workloads[row].id
    lines = [
        f"{began(measured, int(column)):%Y-%m-%dT%H:%M:%SZ},{id_},{signal},{float(values[row, column])!r}"
        for signal, values in measured.values.items()
        for column in np.flatnonzero(~np.isnan(values[row]))
    ]
    return "\n".join(["timestamp,workload,signal,value", *lines])


def began(measured: Traces, column: int) -> datetime:
    """A column is the minute that ends there; an export names its beginning."""
    return measured.start + (column - 1) * timedelta(minutes=1)

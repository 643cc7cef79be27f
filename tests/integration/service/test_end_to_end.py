"""The main job against a real Prometheus with a week of thirty-three workloads."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from forecaster.app import telemetry
from forecaster.app.serve import build_service, state_directory, table_path
from forecaster.config.settings import parse
from forecaster.domain.signal import DEMAND
from forecaster.domain.window import MINUTE
from forecaster.publish.reader import TableReader
from tests.support.prometheus import RealPrometheus
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from forecaster.app.service import Service
    from tests.integration.conftest import FilledWeek
    from tests.support.prometheus import Binaries

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]

FORECASTER = [sys.executable, "-m", "forecaster"]


@pytest.fixture
def server(filled_week: FilledWeek, prometheus_binaries: Binaries) -> Iterator[RealPrometheus]:
    with RealPrometheus(prometheus_binaries, filled_week.data) as running:
        yield running


def forecaster(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FORECASTER, *arguments], capture_output=True, text=True, check=False, timeout=5 * PATIENCE)


def test_once_recommends_for_every_workload_from_three_signals(server: RealPrometheus, filled_week: FilledWeek) -> None:
    at = filled_week.week.now.isoformat()
    done = forecaster("once", "--prometheus", server.url, "--at", at, "-o", "json")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    recommendations = json.loads(done.stdout)["recommendations"]
    assert len(recommendations) == len(filled_week.week.workloads) >= 30
    assert not [
        recommendation["replicas"]
        for recommendation in recommendations
        if recommendation["replicas"]["verdict"] == "hold"
    ]
    assert {recommendation["resources"]["reason"] for recommendation in recommendations} <= {
        "sized",
        "fits",
        "scaled-by-size",
    }
    assert sum(recommendation["resources"]["verdict"] == "resize" for recommendation in recommendations) >= 10
    assert {view["signal"] for recommendation in recommendations for view in recommendation["signals"]} == {"cpu"}
    assert all(view["forecast"]["peak"] > 0 for recommendation in recommendations for view in recommendation["signals"])


def test_explain_tells_inputs_model_and_number(server: RealPrometheus) -> None:
    done = forecaster("explain", "shop/checkout", "--prometheus", server.url)
    assert done.returncode == 0, done.stderr
    for piece in ("measured", "forecast p90 of the peak", "asks for", "=> ", "At the next sync your HPA"):
        assert piece in done.stdout


def test_the_service_answers_stops_in_order_and_starts_where_it_was(server: RealPrometheus, tmp_path: Path) -> None:
    first = run_until_ready(server.url, tmp_path, with_metrics=True)
    assert first["workloads"] >= 30
    assert first["recommendation"]["recommendation"]["replicas"]["verdict"] in {"keep", "up", "down"}
    assert 'forecaster_workloads{reason="' in first["metrics"]
    assert 'forecaster_cycle_step_seconds_count{step="observations"}' in first["metrics"]
    assert first["exit"] == 0
    assert (tmp_path / "history.snapshot").stat().st_size > 1_000_000
    assert drawn(first, "cpu") > 100
    assert drawn(first, "recommended") in {1, 2}, "the five minutes of the run, or both where it lasts into the next"
    again = run_until_ready(server.url, tmp_path)
    assert "snapshot_restored" in again["log"]
    assert drawn(again, "recommended") >= 1
    assert again["exit"] == 0


def drawn(answers: dict[str, Any], name: str) -> int:
    """Count the intervals of five minutes that the dashboard draws of a workload's series in half a day."""
    series = answers["page"]["series"]
    values = np.frombuffer(base64.b64decode(series["values"]), np.float32).reshape(len(series["names"]), -1)
    return int(np.isfinite(values[series["names"].index(name)]).sum())


def run_until_ready(url: str, directory: Path, *, with_metrics: bool = False) -> dict[str, Any]:
    """Start `forecaster run`, read what it serves, stop it with SIGTERM."""
    settings = {
        "prometheus": {"url": url},
        "serving": {"host": "127.0.0.1", "port": 0},
        "state": {"directory": str(directory)},
    }
    config = directory / "settings.yaml"
    config.write_text(json.dumps(settings))
    log = directory / "log"
    with log.open("w") as errors:
        process = subprocess.Popen([*FORECASTER, "run", "--config", str(config)], stderr=errors)
    try:
        wait_until(lambda: '"started"' in log.read_text(), goal="the start")
        answers = served(address_in(log.read_text()), with_metrics=with_metrics)
        process.send_signal(signal.SIGTERM)
        return {**answers, "exit": process.wait(PATIENCE), "log": log.read_text()}
    finally:
        process.kill()
        process.wait()


def address_in(log: str) -> str:
    events = [json.loads(line) for line in log.splitlines()]
    return "http://" + next(event["address"] for event in events if event["event"] == "started")


def served(base: str, *, with_metrics: bool) -> dict[str, Any]:
    wait_until(lambda: reads(f"{base}/readyz"), timeout=5 * PATIENCE, goal="a first table")
    answer = json.loads(read(f"{base}/api/v1/recommendations?limit=500"))
    # The metrics of a cycle travel with the table of the next one; its steps are known when it has ended.
    if with_metrics:
        wait_until(
            lambda: "forecaster_workloads{" in read(f"{base}/metrics"), timeout=5 * PATIENCE, goal="the next table"
        )
    return {
        "workloads": len(answer["items"]),
        "recommendation": json.loads(read(f"{base}/api/v1/recommendations/shop/checkout")),
        "metrics": read(f"{base}/metrics"),
        "page": page_of(f"{base}/dashboard/workloads/shop/Deployment/checkout"),
    }


def page_of(url: str) -> Any:
    """Return the dashboard's page of a workload, once its pictures, which come after the table, are there, too."""
    wait_until(lambda: json.loads(read(url))["series"] is not None, goal="the first pictures")
    return json.loads(read(url))


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310  our own address
        body: bytes = answer.read()
    return body.decode()


def reads(url: str) -> bool:
    try:
        read(url)
    except OSError:
        return False
    return True


def test_an_outage_holds_with_its_reason_and_loses_no_point(
    server: RealPrometheus, filled_week: FilledWeek, tmp_path: Path
) -> None:
    # Half an hour after pods come and go: one that has just left would hold its workload, whatever the outage does.
    start = filled_week.week.now - timedelta(minutes=90)
    with ExitStack() as parts:
        service = service_at(start, server.url, tmp_path, parts)
        assert play(service, start, minutes=3) == {"scale"}
        server.stop()
        assert play(service, start + 3 * MINUTE, minutes=4) == {"hold"}
        assert reasons(tmp_path) == {"source-down"}
        server.start()
        assert play(service, start + 7 * MINUTE, minutes=2) == {"scale"}
        for kind in DEMAND:
            newest = service.cycle.history.window(kind, MINUTE).values[:, -9:]
            assert not np.isnan(newest).any(), f"{kind} lost points of the outage"


def service_at(now: datetime, url: str, directory: Path, parts: ExitStack) -> Service:
    given = {"prometheus": {"url": url, "retries": 0}, "state": {"directory": str(directory)}}
    settings = parse(given, "test")
    state = state_directory(settings.state)
    return build_service(settings, state, telemetry.logger(), parts, clock=lambda: now)


def play(service: Service, start: datetime, *, minutes: int) -> set[str]:
    """Let the service run once a minute; return the verdicts of the last cycle."""
    for minute in range(minutes):
        at = start + minute * MINUTE
        service.clock = lambda at=at: at + service.settings.delay  # type: ignore[misc]
        service.tick()
    assert service.report
    return {verdict for verdict, _ in service.report.verdicts}


def reasons(directory: Path) -> set[str]:
    reader = TableReader(table_path(directory))
    reader.refresh()
    assert reader.table
    return {entry.reason for entry in reader.table.entries}

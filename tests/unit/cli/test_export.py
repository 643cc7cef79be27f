"""`forecaster export` writes a Prometheus' history to a file, which replay, panels and traces read."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from typer.testing import CliRunner

from forecaster.app import notebook, traces
from forecaster.cli import app
from forecaster.cli.replay import ReplayOptions
from forecaster.cli.replay_inputs import inputs_of
from forecaster.config.settings import Settings
from forecaster.domain.workload import Resources
from forecaster.errors import StoreError
from forecaster.sources.bundle import read_bundle, write_bundle
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.recorded import load_recording

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

TWO_DAYS = timedelta(days=2)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=True)


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of one namespace, exported with settings of their own."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "settings.yaml").write_text(
        "policy: {horizontal: {quantile: 0.93, requests_metric: http_requests_per_second}}\n"
        f"state: {{directory: {folder / 'state'}}}\n"
    )
    recording = load_recording()
    with EmbeddedPrometheus(recording, Settings().queries, recording.fleet(recording.end)) as served:
        done = run(
            *("export", str(folder / "week.zip"), "shop/*", "--prometheus", served.url, "--length", "2d"),
            *("--minutes", "6h", "--config", str(folder / "settings.yaml"), "--at", recording.end.isoformat()),
        )
    assert done.exit_code == 0, done.output
    assert "4 workloads, cpu, memory, requests, " in done.output
    return folder / "week.zip"


def test_a_bundle_takes_the_place_of_no_device_and_no_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused = run("export", str(pipe), "--demo")
    assert isinstance(refused.exception, StoreError)
    assert "is no regular file, and the bundle would take its place" in str(refused.exception)
    assert pipe.is_fifo()


def test_an_export_of_the_demo_takes_only_the_named_workloads(tmp_path: Path) -> None:
    done = run("export", str(tmp_path / "demo.zip"), "s*", "--demo", "-n", "shop,web")
    assert done.exit_code == 0, done.output
    assert {str(workload.id) for workload in read_bundle(tmp_path / "demo.zip").workloads} == {
        "shop/search",
        "shop/storefront",
        "web/space-center",
    }


@pytest.mark.parametrize("option", ["--length=2d", "--minutes=1h", "--at=2026-01-01T00:00:00Z"])
def test_a_part_of_the_demo_is_refused_and_not_taken_for_all_of_it(tmp_path: Path, option: str) -> None:
    done = run("export", str(tmp_path / "demo.zip"), "--demo", option)
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "has all recorded days; leave --at, --length and --minutes" in " ".join(done.output.split())


def test_a_bundle_holds_demand_hpas_settings_and_decisions_and_no_address(week: Path) -> None:
    bundle = read_bundle(week)
    assert str(bundle.workloads[0].id) == "shop/checkout"
    assert bundle.workloads[0].autoscaler is not None
    assert bundle.manifest.settings["policy"]["horizontal"]["quantile"] == 0.93
    assert set(bundle.manifest.settings) <= {"policy", "overrides", "history", "signals", "cycle", "forecast", "floor"}
    assert {decision["name"] for decision in bundle.decisions} == {
        "checkout",
        "recommendations",
        "search",
        "storefront",
    }


def test_it_is_a_panel_in_one_line_and_agrees_with_what_was_recorded(week: Path) -> None:
    panel = notebook.exported(week)["shop/search"]
    expected = notebook.recorded("cpu")["shop/search"].until(panel.end).last(panel.length * panel.step)
    np.testing.assert_allclose(
        panel.values[:, -60:], expected.values[:, -60:], rtol=0.05
    )  # a minute of CPU is a rate over two


def test_a_replay_of_a_bundle_has_its_hpas_and_policies(week: Path) -> None:
    assert traces.bundled(week).workloads[0].autoscaler is not None
    done = run("replay", "--export", str(week), "shop/search", "--length", "2h", "--every", "30", "--no-cache")
    assert done.exit_code == 0, done.output
    assert "1 workload over 2 h" in done.output


def test_a_request_that_a_bundle_has_not_is_the_stated_one(week: Path, tmp_path: Path) -> None:
    bundle, bare = read_bundle(week), tmp_path / "bare.zip"
    unsized = tuple(replace(row, resources=Resources(memory_request=7e9)) for row in bundle.workloads)
    write_bundle(bare, replace(bundle, manifest=structs.replace(bundle.manifest, workloads=unsized)))
    inputs = inputs_of(ReplayOptions(export=bare, request=["cpu=250m", "memory=1Gi"]))
    assert {workload.resources for workload in inputs.traces.workloads} == {Resources(0.25, memory_request=7e9)}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_is_a_panel_in_one_line(tmp_path: Path, suffix: str) -> None:
    when = pd.date_range("2026-03-01", periods=120, freq="1min", tz="UTC")
    rows = [
        pd.DataFrame({"timestamp": when, "workload": "shop/web", "signal": signal, "value": 2.0})
        for signal in ("cpu", "memory")
    ]
    frame, path = pd.concat(rows), tmp_path / f"demand{suffix}"
    frame.to_csv(path) if suffix == ".csv" else frame.to_parquet(path)
    panel = notebook.exported(path, "memory")
    assert (panel.keys, panel.length, panel.step) == (("shop/Deployment/web",), 24, timedelta(minutes=5))


def test_a_name_that_matches_nothing_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    recording = load_recording()
    with EmbeddedPrometheus(recording, Settings().queries, recording.fleet(recording.end)) as served:
        done = run("export", str(tmp_path / "x.zip"), "shop/chekout", "--prometheus", served.url, "--length", "6h")
    assert done.exit_code == 1
    assert not (tmp_path / "x.zip").exists()


def test_a_bundle_of_a_stranger_names_no_code_that_is_run(week: Path, tmp_path: Path) -> None:
    bundle, ran = read_bundle(week), tmp_path / "ran"
    (tmp_path / "their_models.py").write_text(f"open({str(ran)!r}, 'w')\n")
    settings = {**bundle.manifest.settings, "forecast": {"model": "their_models:Any"}}
    write_bundle(tmp_path / "x.zip", replace(bundle, manifest=structs.replace(bundle.manifest, settings=settings)))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        done = run("replay", "--export", str(tmp_path / "x.zip"), "--length", "2h", "--no-cache")
    assert "a bundle may not name code to import" in str(done.exception)
    assert not ran.exists()


def test_a_bundle_without_a_signal_that_is_known_here_says_so(week: Path, tmp_path: Path) -> None:
    bundle = read_bundle(week)
    bare = replace(bundle, manifest=structs.replace(bundle.manifest, signals=()), values={})
    write_bundle(tmp_path / "x.zip", bare)
    assert "holds no signal" in str(run("replay", "--export", str(tmp_path / "x.zip")).exception)

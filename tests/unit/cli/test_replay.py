"""`forecaster replay` from the options to the files."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from forecaster.cli import app
from forecaster.errors import ConfigError, SourceError, UnknownName

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

MANIFEST = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 20
  metrics:
  - type: Pods
    pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: 50}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 60}}
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["replay", *arguments], catch_exceptions=True)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "demand.csv"
    rows = [f"2026-03-01T{m // 60:02}:{m % 60:02}:00Z,shop/web,requests,{100 + 80 * (m % 40 > 20)}" for m in range(400)]
    path.write_text("timestamp,workload,signal,value\n" + "\n".join(rows), encoding="utf-8")
    return path


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "hpa.yaml"
    path.write_text(MANIFEST, encoding="utf-8")
    return path


def test_each_column_of_a_csv_has_a_value_in_some_row(export: Path, manifest: Path) -> None:
    options = ("--pod-capacity", "requests=70", "--length", "2h", "--no-cache", "-o", "csv")
    done = run("--export", str(export), "--hpa", str(manifest), *options)
    head, *rows = csv.reader(io.StringIO(done.stdout))
    empty = [name for name, *column in zip(head, *rows, strict=True) if not any(column)]
    assert not [name for name in empty if "money" not in name], "there are no prices"


def test_an_export_with_a_manifest_becomes_a_report(export: Path, manifest: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    done = run(
        *("--export", str(export), "--hpa", str(manifest), "--pod-capacity", "requests=70", "--length", "2h"),
        *("--start-up", "1m", "--start-up", "3m", "--no-cache", "--json", str(out), "--html", str(page)),
    )
    assert done.exit_code == 0, done.output
    document = json.loads(out.read_text())
    assert list(document["total"]) == ["hpa", "seasonal-naive-day", "policy", "gated", "perfect"]
    assert document["workloads"][0]["fills"] == "requests"
    assert document["assumed"]["start_up_seconds"] == [60.0, 180.0]
    assert "<svg" in page.read_text()
    assert "the HPA alone" in done.output
    assert [f"{path}: written, " in done.stderr for path in (out, page)] == [True, True]


def test_pods_of_a_table_begin_where_the_hpa_rests(export: Path, manifest: Path) -> None:
    options = ("--pod-capacity", "requests=70", "--length", "20m", "--until", "2026-03-01T05:41:00Z", "--no-cache")
    done = run("--export", str(export), "--hpa", str(manifest), *options, "-o", "json")
    hpa = json.loads(done.stdout)["workloads"][0]["strategies"]["hpa"]
    assert hpa["track"]["ready"][0] == 2.0, "100 requests are two pods of 50; nothing says that there was one"
    assert hpa["own"]["short_minutes"] == 0.0


def test_a_document_has_the_demand_of_each_minute_and_null_for_a_gap(tmp_path: Path, manifest: Path) -> None:
    rows = [f"2026-03-01T{m // 60:02}:{m % 60:02}:00Z,shop/web,requests,{100 + m}" for m in range(120) if m != 110]
    (tmp_path / "gap.csv").write_text("timestamp,workload,signal,value\n" + "\n".join(rows))
    options = ("--hpa", str(manifest), "--pod-capacity", "requests=70", "--length", "20m", "--no-cache", "-o", "json")
    done = run("--export", str(tmp_path / "gap.csv"), *options)
    demand = json.loads(done.stdout)["workloads"][0]["demand"]
    assert demand == [None if m == 110 else 100.0 + m for m in range(100, 120)]


def test_a_replay_of_a_whole_table_names_the_length_that_leaves_a_history(export: Path, manifest: Path) -> None:
    done = run("--export", str(export), "--hpa", str(manifest), "--pod-capacity", "requests=70", "--length", "1d")
    assert "0s of history before the replay is less than 1h (min_history)" in done.output
    assert "replay the last 5h40m" in done.output
    assert "--hpa FILE" not in done.output, "it was given"


def test_an_export_of_a_single_sample_is_named_and_no_option_that_was_not_given(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("timestamp,value\n2026-03-01T12:00:00Z,1\n")
    done = run("--export", str(tmp_path / "one.csv"))
    assert isinstance(done.exception, ConfigError)
    assert "one.csv': demand was recorded from 2026-03-01 12:01 to 2026-03-01 12:01 UTC" in str(done.exception)
    assert "--until" not in str(done.exception)


def test_json_on_standard_output_stands_alone(export: Path, manifest: Path) -> None:
    given = ("--export", str(export), "--hpa", str(manifest), "--pod-capacity", "requests=70", "--length", "1h")
    done = run(*given, "--no-cache", "-o", "json")
    assert json.loads(done.stdout)["workloads"][0]["name"] == "web"


def test_forecasts_are_kept_between_runs(export: Path, manifest: Path, tmp_path: Path) -> None:
    given = ("--export", str(export), "--hpa", str(manifest), "--pod-capacity", "requests=70", "--length", "1h")
    first, again = (run(*given, "--cache", str(tmp_path / "kept"), "-o", "json").stdout for _ in range(2))
    assert len(list((tmp_path / "kept").glob("*.npz"))) == 2
    computed, cached = json.loads(first), json.loads(again)
    assert computed["total"] == cached["total"]


def test_a_model_that_fails_during_the_replay_is_named_with_its_error(export: Path, manifest: Path) -> None:
    given = ("--export", str(export), "--hpa", str(manifest), "--pod-capacity", "requests=70", "--length", "1h")
    done = run(*given, "--every", "30", "--model", "tests.support.broken_model:BrokenLater")
    assert done.exit_code == 0, done.output
    assert "! tests.support.broken_model:BrokenLater: forecast of requests: the model failed with" in done.stderr
    assert "RuntimeError: bins of five minutes" in done.stderr


def test_an_export_without_an_hpa_is_left_out_with_the_reason(export: Path) -> None:
    done = run("--export", str(export), "--no-cache")
    assert done.exit_code == 1
    assert "no HPA scales it" in done.output
    assert "State what scales it by --hpa FILE, and its pods by --request cpu=500m" in done.output


def test_what_was_stated_is_not_asked_for_again(tmp_path: Path, manifest: Path) -> None:
    cores = [f"2026-03-01T{m // 60:02}:{m % 60:02}:00Z,shop/web,cpu,2" for m in range(120)]
    (tmp_path / "cores.csv").write_text("timestamp,workload,signal,value\n" + "\n".join(cores))
    done = run("--export", str(tmp_path / "cores.csv"), "--hpa", str(manifest), "--length", "20m", "--no-cache")
    assert "State its pods by --request cpu=500m; see docs/replay.md." in done.output


def test_a_request_that_is_no_amount_is_refused_whatever_is_replayed() -> None:
    done = run("shop/checkout", "--request", "cpu=abc")
    assert "--request: 'cpu=abc': " in str(done.exception)


def test_an_hpa_that_is_used_for_a_workload_it_does_not_name_is_warned_of(tmp_path: Path, manifest: Path) -> None:
    path = tmp_path / "wide.csv"
    rows = [f"2026-03-01 {m // 60:02}:{m % 60:02}:00,100,90" for m in range(400)]
    path.write_text("Time,shop/web,shop/api\n" + "\n".join(rows), encoding="utf-8")
    done = run("--export", str(path), "--hpa", str(manifest), "--no-cache", "--pod-capacity", "requests=70")
    assert "! no HPA names shop/api: HPA web is taken for them" in done.stderr


def test_a_workload_costs_nothing_before_it_was_there_and_the_measured_share_is_said(
    tmp_path: Path, manifest: Path
) -> None:
    path = tmp_path / "new.csv"
    times = [f"2026-03-01T{m // 60:02}:{m % 60:02}:00Z" for m in range(400)]
    rows = [*(f"{at},shop/web,requests,100" for at in times), *(f"{at},shop/api,requests,90" for at in times[380:])]
    path.write_text("timestamp,workload,signal,value\n" + "\n".join(rows), encoding="utf-8")
    options = ("--length", "2h", "--no-cache", "--pod-capacity", "requests=70", "--every", "30", "-o", "json")
    document = json.loads(run("--export", str(path), "--hpa", str(manifest), *options).stdout)
    hours = {each["name"]: each["strategies"]["hpa"]["own"]["pod_hours"] for each in document["workloads"]}
    assert hours["web"] > 3.9
    assert 0.3 < hours["api"] < 0.7
    assert "UTC, 58% of it measured." in document["summary"][1]


def test_an_export_may_have_a_column_a_workload(tmp_path: Path, manifest: Path) -> None:
    path = tmp_path / "wide.csv"
    rows = [f"2026-03-01 {m // 60:02}:{m % 60:02}:00,{100 + 80 * (m % 40 > 20)}" for m in range(400)]
    path.write_text("Time,shop/web\n" + "\n".join(rows), encoding="utf-8")
    done = run("--export", str(path), "--hpa", str(manifest), "--no-cache", "-o", "json")
    assert json.loads(done.stdout)["left_out"][0]["name"] == "web"
    refused = tmp_path / "other.csv"
    refused.write_text("at,shop/web\n1,2\n", encoding="utf-8")
    done = run("--export", str(refused))
    assert "one column a workload beside the time" in str(done.exception)


def test_a_prometheus_that_is_named_is_asked_and_never_left_aside_for_the_bundled_load(export: Path) -> None:
    result = run("--prometheus", "http://127.0.0.1:9", "--length", "1h")
    assert isinstance(result.exception, SourceError)
    both = run("--prometheus", "http://127.0.0.1:9", "--export", str(export))
    assert "demand comes from one of them" in str(both.exception)


@pytest.mark.parametrize(
    ("arguments", "error", "fault"),
    [
        (("--length", "soon"), ConfigError, "--length"),
        (("--sync", "7s"), ConfigError, "does not divide a minute"),
        (("--metrics-delay", "5m"), ConfigError, "'15s, 5m': metrics_delay 0:05:00 must be 0s or more"),
        (("--pod-capacity", "cpu"), ConfigError, "--pod-capacity"),
        (("shop/nobody",), UnknownName, "no workload matches"),
        (("--until", "yesterday"), ConfigError, "--until: 'yesterday'"),
        (("--until", "2020-01-01T00:00:00Z"), ConfigError, "demand was recorded from 2021"),
        (("--length", "0s"), ConfigError, "--length"),
        (("--model", "adaptiv"), UnknownName, "did you mean adaptive?"),
        (("--model", "tests.support.broken_model:Broken"), ConfigError, "breaks the contract: it raises IndexError"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(arguments: tuple[str, ...], error: type, fault: str) -> None:
    done = run(*arguments)
    assert isinstance(done.exception, error)
    assert fault in str(done.exception)

"""`forecaster hpa`, end to end on files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from forecaster.cli.catalogue import schema_of
from forecaster.cli.hpa import app
from forecaster.cli.hpa_inputs import InputError
from forecaster.errors import ConfigError, ForecasterError

if TYPE_CHECKING:
    from click.testing import Result

PAGE = Path(__file__).parents[3] / "docs" / "hpa.md"
STAMP = "2026-01-01T00:00:00Z"
HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: shop, namespace: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  minReplicas: 1
  maxReplicas: 20
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}
  behavior: {}
"""


@pytest.fixture
def hpa(tmp_path: Path) -> Path:
    return write(tmp_path / "hpa.yaml", HPA)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


def pod(name: str) -> dict[str, Any]:
    container = {"name": "app", "resources": {"requests": {"cpu": "500m"}}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2025-12-31T00:00:00Z"}
    status = {"phase": "Running", "startTime": "2025-12-31T00:00:00Z", "conditions": [ready]}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}, "status": status}


def files(folder: Path, count: int, usage: str) -> tuple[Path, Path]:
    names = [f"shop-{number}" for number in range(count)]
    pods = {"kind": "PodList", "items": [pod(name) for name in names]}
    used = [{"name": "app", "usage": {"cpu": usage}}]
    items = [{"metadata": {"name": n}, "timestamp": STAMP, "window": "30s", "containers": used} for n in names]
    metrics = {"kind": "PodMetricsList", "items": items}
    return write(folder / "pods.json", json.dumps(pods)), write(folder / "metrics.json", json.dumps(metrics))


def test_explain_answers_from_totals(hpa: Path) -> None:
    result = run("explain", "--hpa", hpa, "--replicas", 4, "--usage", "cpu=5.2", "--request", "cpu=500m")
    assert result.exit_code == 0
    assert result.output.splitlines()[:2] == [
        "Aims: cpu is about 500m for each pod. The largest proposal wins.",
        (
            "At the next sync your HPA will see 5.2 cores / 500m = 11 pods; tolerance 0.1 does not apply; "
            "scale-up policy allows 8; it will go from 4 to 8 and say ScaleUpLimit."
        ),
    ]


def test_explain_answers_from_files(hpa: Path, tmp_path: Path) -> None:
    pods, metrics = files(tmp_path, 4, "1300m")
    result = run("explain", "--hpa", hpa, "--pods", pods, "--metrics", metrics)
    assert "5.2 cores / 500m = 11 pods" in result.output
    assert "it will go from 4 to 8 and say ScaleUpLimit" in result.output


def test_pods_that_have_ended_are_no_replicas(hpa: Path, tmp_path: Path) -> None:
    """Evicted pods stay listed for days; the ReplicaSet counts none of them."""
    pods, metrics = files(tmp_path, 4, "1300m")
    listed = json.loads(pods.read_text())
    listed["items"] += [pod(f"old-{number}") | {"status": {"phase": "Failed"}} for number in range(6)]
    write(pods, json.dumps(listed))
    result = run("explain", "--hpa", hpa, "--pods", pods, "--metrics", metrics)
    assert "it will go from 4 to 8 and say ScaleUpLimit" in result.output


def test_explain_warns(hpa: Path, tmp_path: Path) -> None:
    twin = write(tmp_path / "twin.yaml", HPA.replace("name: shop, namespace", "name: twin, namespace"))
    result = run("explain", "--hpa", hpa, "--replicas", 10, "--usage", "cpu=5", "--other", twin, "--vertical", "cpu")
    assert "! out-of-reach: at 10 replicas" in result.output
    assert "! shared-target: twin scales Deployment shop too" in result.output


def test_explain_without_samples_says_so(hpa: Path, tmp_path: Path) -> None:
    pods, _ = files(tmp_path, 2, "1")
    result = run("explain", "--hpa", hpa, "--pods", pods, "--at", STAMP)
    assert "it will say FailedGetResourceMetric" in result.output


def test_simulate_prints_a_line_a_pass(hpa: Path) -> None:
    words = ("simulate", "--hpa", hpa, "--replicas", 1, "--usage", "cpu=5.2", "--passes", 3, "--at", STAMP)
    result = run(*words, "--server-version", "1.36")
    assert result.output.splitlines() == [
        "PASS  REPLICAS  RECOMMENDED  STABILIZED  DESIRED  CONDITIONS",
        "   1         1           11          11        5  SucceededRescale ValidMetricFound ScaleUpLimit",
        "   2         5           11          11       10  SucceededRescale ValidMetricFound ScaleUpLimit",
        "   3        10           10          10       10  ReadyForNewScale ValidMetricFound DesiredWithinRange",
    ]
    assert run(*words).output.splitlines()[-1].endswith("ValidMetricFound DesiredWithinRange NotScaledToZero")


@pytest.mark.parametrize("command", ["explain", "simulate"])
def test_the_page_shows_what_the_command_prints(hpa: Path, command: str) -> None:
    block = re.search(rf"^\$ forecaster hpa {command} (.+)\n((?:[^`$.].*\n)+)", PAGE.read_text(), re.MULTILINE)
    assert block is not None
    printed = run(command, *block[1].replace("hpa.yaml", str(hpa)).split()).output
    assert printed.startswith(block[2])


def test_simulate_fits_a_terminal(hpa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("simulate", "--hpa", hpa, "--replicas", 1, "--usage", "cpu=5.2", "--passes", 3).output.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].strip() == "ValidMetricFound ScaleUpLimit"


def test_simulate_prints_documents_too(hpa: Path, tmp_path: Path) -> None:
    pods, metrics = files(tmp_path, 4, "1300m")
    words = ("simulate", "--hpa", hpa, "--pods", pods, "--metrics", metrics, "--passes", 2)
    document = json.loads(run(*words, "-o", "json").output)
    assert list(Draft202012Validator(schema_of("hpa simulate")).iter_errors(document)) == []
    first, second = document["passes"]
    first_pass = first["at"], first["pass"], first["replicas"], first["recommendation"], first["desired"]
    assert first_pass == ("2026-01-01T00:00:00Z", 1, 4, 11, 8)
    assert first["conditions"][2]["reason"] == "ScaleUpLimit"
    assert (second["at"], second["replicas"]) == ("2026-01-01T00:00:15Z", 8)
    assert yaml.safe_load(run(*words, "-o", "yaml").output)["passes"][0]["desired"] == 8
    assert run(*words, "-o", "csv").output.splitlines()[1].endswith("ScaleUpLimit NotScaledToZero")


def test_a_pass_that_stops_early_shows_dashes(hpa: Path) -> None:
    result = run("simulate", "--hpa", hpa, "--replicas", 30, "--usage", "cpu=5.2", "--server-version", "1.36")
    assert result.output.splitlines()[1] == "   1        30            -           -       20  SucceededRescale"


def test_a_pass_without_an_answer_desires_no_count(tmp_path: Path) -> None:
    share = write(
        tmp_path / "share.yaml", HPA.replace("AverageValue, averageValue: 500m", "Utilization, averageUtilization: 50")
    )
    result = run("simulate", "--hpa", share, "--replicas", 3, "--usage", "cpu=610m", "--server-version", "1.36")
    assert result.output.splitlines()[1].split() == [
        "1",
        "3",
        "-",
        "-",
        "-",
        "SucceededGetScale",
        "FailedGetResourceMetric",
    ]


def test_a_minimum_of_zero_is_taken_from_kubernetes_1_37_on_or_where_the_gate_is_on(tmp_path: Path) -> None:
    queue = """
  - type: External
    external: {metric: {name: queue}, target: {type: AverageValue, averageValue: "30"}}
"""
    text = HPA.replace("minReplicas: 1", "minReplicas: 0").replace("\n  behavior", f"{queue}  behavior")
    zero = write(tmp_path / "zero.yaml", text)
    explain = ("explain", "--hpa", zero, "--replicas", 1)
    assert run(*explain).exit_code == 0
    assert isinstance(run(*explain, "--server-version", "1.36").exception, InputError)
    assert run(*explain, "--server-version", "1.36", "--scale-to-zero").exit_code == 0
    assert isinstance(run(*explain, "--no-scale-to-zero").exception, InputError)


def test_a_version_that_is_none_is_refused_by_its_option(hpa: Path) -> None:
    message = str(run("explain", "--hpa", hpa, "--server-version", "latest").exception)
    assert message == "command line:\n  --server-version: 'latest': a server version is written like 1.36 or v1.36.3"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            HPA.replace("maxReplicas: 20", "maxReplicas: 0"),
            "spec.maxReplicas: Required value",
        ),
        (HPA.replace("behavior: {}", "behaviour: {}"), 'unknown field "spec.behaviour"'),
        ("{", "is no YAML"),
        ("\x00", "is no YAML"),
        ("", "no HorizontalPodAutoscaler and no ScaledObject is in it"),
        ("[1, 2]", "a manifest is a mapping"),
        ("{kind: List, items: [null, 5]}", "a manifest is a mapping"),
        ("{kind: List, items: 5}", "a manifest is a mapping"),
        ("{kind: [a]}", "kind: Unsupported value"),
        ("[" * 2000, "is no YAML"),
        ("created: 2026-02-31", "is no YAML: day is out of range"),
        ("{kind: ScaledObject, metadata: 5}", "ScaledObject: metadata is 5; dict is expected"),
        ("{kind: ScaledObject, spec: {triggers: 5}}", "triggers is 5; list is expected"),
        ("{kind: ScaledObject, spec: {triggers: [cpu]}}", "metadata is 'cpu'; dict is expected"),
        ("{kind: ScaledObject, spec: {minReplicaCount: few}}", "minReplicaCount is 'few'; int is expected"),
        ("{kind: ScaledObject, spec: {triggers: [{type: cpu}]}}", "ScaledObject: metadata.name is missing"),
        ("{kind: ScaledObject, metadata: {name: 5}}", "ScaledObject: name is 5; str is expected"),
        (
            '{kind: ScaledObject, metadata: {name: a}, spec: {triggers: [{type: cpu, metadata: {value: "50.5"}}]}}',
            "a whole number",
        ),
    ],
)
def test_a_manifest_that_cannot_be_used_says_why(tmp_path: Path, text: str, reason: str) -> None:
    error = run("explain", "--hpa", write(tmp_path / "bad.yaml", text), "--replicas", 1).exception
    assert isinstance(error, InputError)
    assert reason in str(error)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--usage", "cpu=1"], "give --pods FILE, or --replicas N"),
        (["--replicas", 1, "--usage", "cpu"], "--usage: 'cpu': '': quantities are"),
        (["--replicas", 1, "--request", "cpu=x"], "--request: 'cpu=x': 'x'"),
        (["--replicas", 1, "--usage", "cpu=-5"], "--usage: 'cpu=-5': write an amount of 0 or more"),
        (["--replicas", 1, "--at", "0001-01-01T00:00:00Z"], "an RFC 3339 instant like"),
        (["--replicas", 1, "--at", "noon"], "an RFC 3339 instant like"),
    ],
)
def test_an_option_that_cannot_be_used_says_why(hpa: Path, options: list[object], reason: str) -> None:
    error = run("explain", "--hpa", hpa, *options).exception
    assert isinstance(error, ForecasterError)
    assert reason in str(error)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"kind": "Node"}', "expected Pod or a list of them, got 'Node'"),
        ('{"kind": "Pod", "metadata": 5}', "metadata must be a mapping, got a int"),
        ('{"kind": "Pod", "spec": {"containers": [{"resources": "little"}]}}', "resources must be a mapping"),
    ],
)
def test_pods_that_are_no_pods_say_why(hpa: Path, tmp_path: Path, text: str, reason: str) -> None:
    error = run("explain", "--hpa", hpa, "--pods", write(tmp_path / "p.json", text)).exception
    assert isinstance(error, InputError)
    assert reason in str(error)


def test_a_file_that_is_not_there_is_an_error_of_usage(tmp_path: Path) -> None:
    assert run("explain", "--hpa", tmp_path / "nowhere.yaml", "--replicas", 1).exit_code == 2


@pytest.mark.parametrize(
    "options", [["explain"], ["explain", "hpa.yaml", "--usage", "cpu=1"], ["simulate", "--hpa", "hpa.yaml"]]
)
def test_options_that_are_missing_are_an_error_of_usage(hpa: Path, options: list[str]) -> None:
    error = run(*(hpa if option == hpa.name else option for option in options)).exception
    assert isinstance(error, ConfigError)
    assert error.origin == "command line"


def test_usage_of_a_metric_that_the_hpa_does_not_have_is_named(hpa: Path) -> None:
    result = run("simulate", "--hpa", hpa, "--replicas", 4, "--usage", "cpus=1", "--usage", "cpu=2")
    assert "! --usage cpus: HPA shop has no such metric; its metrics: cpu" in result.stderr


SCALED = """
# Source: chart/templates/scaled.yaml
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: orders, namespace: web}
spec:
  scaleTargetRef: {name: orders}
  maxReplicaCount: 30
  triggers:
  - {type: prometheus, metadata: {serverAddress: "http://p", query: q, threshold: "50"}}
  - {type: cpu, metricType: Utilization, metadata: {value: "60"}}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: shop}\n"


def typed(text: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", "-", *arguments], input=text, catch_exceptions=True)


class TestStreams:
    def test_every_hpa_of_a_stream_is_explained_and_other_kinds_are_passed_over(self) -> None:
        output = typed(f"{SERVICE}---{HPA}---{SCALED}").stdout
        assert "HPA web/shop:" in output
        assert "HPA web/keda-hpa-orders, which KEDA makes of ScaledObject orders:" in output
        assert "s0-prometheus" in output

    def test_a_list_is_what_kubectl_prints(self) -> None:
        items = [yaml.safe_load(HPA)]
        assert "Aims: " in typed(yaml.safe_dump({"kind": "List", "apiVersion": "v1", "items": items})).stdout

    def test_of_a_helm_run_only_the_manifests_are_read(self) -> None:
        result = typed(f"NAME: x\nSTATUS: {{pending\nMANIFEST:\n---{HPA}\nNOTES:\n: not {{yaml")
        assert "Aims: " in result.stdout

    def test_a_scaled_object_does_what_its_hpa_would(self) -> None:
        usage = ("--usage", "s0-prometheus=400", "--usage", "cpu=1", "--request", "cpu=500m", "--replicas", "4")
        assert "8 pods" in typed(SCALED, *usage).stdout

    def test_a_stream_without_any_says_what_there_is(self) -> None:
        assert "there are Service" in str(typed(SERVICE).exception)

    def test_a_bad_quantity_is_an_error_before_anything_is_printed(self) -> None:
        result = typed(f"{HPA}---{SCALED}", "--usage", "cpu=5,2", "--replicas", "4")
        assert (result.stdout, str(result.exception)) == ("", "command line:\n  --usage: 'cpu=5,2': write 5.2")

    def test_text_that_is_no_manifest_is_called_standard_input(self) -> None:
        refused = str(typed("kind: [").exception)
        assert refused.startswith("standard input is no YAML: ")
        assert "<unicode string>" not in refused

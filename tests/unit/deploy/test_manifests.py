"""Tests of deploy/ that need no cluster; tests/cluster applies it to a real API server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.main import get_command

from forecaster.cli import app
from forecaster.config.settings import parse
from forecaster.domain.policies import merged
from forecaster.sources.live import LiveCluster

DEPLOY = Path(__file__).parents[3] / "deploy"
VERSIONS = ("1.31", "1.37")
"""Lowest and highest promised version; tests/integration/test_chart.py has all between."""
BUILTIN = re.compile(r"^(v1|(apps|batch|autoscaling)/v\d|[a-z.]+\.k8s\.io/v1)$")


def documents(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Whole objects of a folder, without kustomize's own files, settings and patches."""
    whole = []
    for file in sorted(folder.rglob("*.yaml")):
        if file.name in {"kustomization.yaml", "settings.yaml"}:
            continue
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            whole += [
                (file.name, each) for each in (document["items"] if document.get("kind") == "List" else [document])
            ]
    return whole


BASE = [each for _, each in documents(DEPLOY / "base")]
FLOOR = [each for _, each in documents(DEPLOY / "components" / "floor")]
SCALE = [each for _, each in documents(DEPLOY / "components" / "scale")]
REPORT = [each for name, each in documents(DEPLOY / "components" / "report") if name != "deployment.yaml"]
"""Objects of the report without the patch of the service, which is no manifest by itself."""
SHARDS = [each for _, each in documents(DEPLOY / "components" / "dask") if each["metadata"]["name"] != "forecaster"]
RUNS = [each for each in BASE + FLOOR + REPORT if each["kind"] == "CronJob"]
VERTICAL = [each for _, each in documents(DEPLOY / "components" / "vertical")]
PODS = [each["spec"]["template"]["spec"] for each in BASE if each["kind"] in {"Deployment", "Job"}] + [
    each["spec"]["jobTemplate"]["spec"]["template"]["spec"] for each in RUNS
]
SHARD_PODS = [each["spec"]["template"]["spec"] for each in SHARDS if each["kind"] == "Deployment"]


# The aggregator's own kind is in no published schema; the cluster tests apply it.
IN_A_SCHEMA = [each for each in BASE + FLOOR + SCALE + VERTICAL + REPORT + SHARDS if each["kind"] != "APIService"]


def test_the_base_needs_nothing_that_not_every_cluster_has() -> None:
    assert [each["kind"] for each in BASE if not BUILTIN.match(each["apiVersion"])] == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", IN_A_SCHEMA, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_each_manifest_of_the_base_fits_the_schema(manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("pod", PODS + SHARD_PODS, ids=lambda each: each["containers"][0]["name"])
def test_pods_are_restricted_and_write_nowhere_but_into_their_volumes(pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]


def test_nothing_may_be_changed_but_the_certificate_and_our_own_state() -> None:
    """Verbs that write are those on named objects of ours, and the pause that people ask for."""
    for role in (each for each in BASE if each["kind"] in {"Role", "ClusterRole"}):
        for rule in role["rules"]:
            if rule.get("nonResourceURLs") == ["/dashboard/pause"]:
                assert role["metadata"]["name"] == "forecaster-operator"
            elif not set(rule["verbs"]) <= {"get", "list", "watch"}:
                assert set(rule["verbs"]) == {"get", "patch"}
                if role["metadata"]["name"] == "forecaster":
                    assert rule["resourceNames"] == ["forecaster-state"]
                assert role["metadata"]["name"] in {"forecaster", "forecaster-certificates"}
                assert rule["resourceNames"]


def test_what_is_watched_may_be_listed_and_watched_and_no_more() -> None:
    (role,) = [
        document
        for document in BASE
        if document["kind"] == "ClusterRole" and document["metadata"]["name"] == "forecaster"
    ]
    granted = {
        (group, resource)
        for rule in role["rules"]
        if "watch" in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    paths = [watch.path.split("/") for watch in LiveCluster().watches]
    assert granted == {(parts[2] if parts[1] == "apis" else "", parts[-1]) for parts in paths}


def test_mode_floor_adds_these_rights() -> None:
    rules = [rule for role in FLOOR if role["kind"] in {"Role", "ClusterRole"} for rule in role["rules"]]
    granted = {(*rule["resources"], *rule["verbs"]) for rule in rules}
    assert granted == {
        ("leases", "get", "patch"),
        ("leases", "get"),
        ("horizontalpodautoscalers", "get", "list", "patch"),
        ("scaledobjects", "list", "watch"),
        ("limitranges", "resourcequotas", "list", "watch"),
        ("events", "create"),
    }
    assert next(rule for rule in rules if rule["resources"] == ["leases"])["resourceNames"] == ["forecaster"]


def test_mode_scale_adds_the_scale_of_workloads() -> None:
    rules = [rule for role in SCALE if role["kind"] in {"Role", "ClusterRole"} for rule in role["rules"]]
    assert {(*rule["resources"], *rule["verbs"]) for rule in rules} == {
        ("deployments", "statefulsets", "get", "patch"),
        ("deployments/scale", "statefulsets/scale", "patch"),
        ("scaledobjects", "list", "watch"),
        ("limitranges", "resourcequotas", "list", "watch"),
        ("verticalpodautoscalers", "list", "watch"),
        ("events", "create"),
        ("leases", "get", "patch"),
    }


def test_vertical_modes_add_the_resize_of_pods() -> None:
    rules = [rule for role in VERTICAL if role["kind"] in {"Role", "ClusterRole"} for rule in role["rules"]]
    assert {(*rule["resources"], *rule["verbs"]) for rule in rules} == {
        ("pods", "get", "patch"),
        ("pods/resize", "patch"),
        ("limitranges", "resourcequotas", "list", "watch"),
        ("verticalpodautoscalers", "list", "watch"),
        ("events", "create"),
        ("leases", "get", "patch"),
    }


def test_settings_of_base_and_components_are_good() -> None:
    base = yaml.safe_load((DEPLOY / "base" / "settings.yaml").read_text(encoding="utf-8"))
    by_the_environment = {"replicas": {"host": "10.0.0.1"}}
    for file in sorted(DEPLOY.glob("components/*/settings.yaml")):
        over = merged(base, yaml.safe_load(file.read_text(encoding="utf-8")))
        parse(merged(over, by_the_environment), str(file))


def test_the_weekly_report_names_options_that_there_are() -> None:
    (job,) = [each for each in REPORT if each["kind"] == "CronJob"]
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    command, *options = container["args"]
    offered = {name for parameter in get_command(app).commands[command].params for name in parameter.opts}  # type: ignore[attr-defined]
    assert {option.partition("=")[0] for option in options} <= offered


def test_the_probes_ask_ports_that_the_pod_has() -> None:
    (pod, *_) = [each for each in PODS if each["serviceAccountName"] == "forecaster"]
    (container,) = pod["containers"]
    ports = {each["name"] for each in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports


def test_processes_of_shards_are_started_as_the_command_line_knows_them() -> None:
    shards = get_command(app).commands["shards"].commands  # type: ignore[attr-defined]
    assert len(SHARD_PODS) == 2
    for pod in SHARD_PODS:
        (container,) = pod["containers"]
        group, role, *options = container["args"]
        assert group == "shards"
        assert set(options[::2]) <= {name for parameter in shards[role].params for name in parameter.opts}
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        assert options[options.index("--health") + 1] == f":{ports['health']}"
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"] == {"path": "/health", "port": "health"}
        assert not pod["automountServiceAccountToken"]


def test_settings_of_shards_name_the_service_and_the_files_that_are_mounted() -> None:
    settings = yaml.safe_load((DEPLOY / "components" / "dask" / "settings.yaml").read_text(encoding="utf-8"))
    sharding = parse(settings, "settings.yaml").sharding
    (service,) = [each for each in SHARDS if each["kind"] == "Service"]
    assert sharding.scheduler == f"tls://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    mounted = {mount["mountPath"] for pod in SHARD_PODS for mount in pod["containers"][0]["volumeMounts"]}
    assert {str(file.parent) for file in sharding.files if file} <= mounted


@pytest.fixture
def persistent(tmp_path: Path) -> list[dict[str, Any]]:
    """The base with the component `persistent-state`, as kustomize builds it."""
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl")
    parts = {"resources": ["base"], "components": ["components/persistent-state"]}
    relative = {key: [os.path.relpath(DEPLOY / part, tmp_path) for part in value] for key, value in parts.items()}
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(head | relative), encoding="utf-8")
    built = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(built.stdout))


def test_a_claim_holds_the_state_of_one_pod_at_a_time(persistent: list[dict[str, Any]]) -> None:
    (claim,) = [document for document in persistent if document["kind"] == "PersistentVolumeClaim"]
    (deployment,) = [document for document in persistent if document["kind"] == "Deployment"]
    volumes = {volume["name"]: volume for volume in deployment["spec"]["template"]["spec"]["volumes"]}
    assert volumes["state"] == {"name": "state", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    for document in (claim, deployment):
        kubernetes_validate.validate(document, VERSIONS[-1], strict=True)


class TestImage:
    TEXT = (DEPLOY / "image" / "Containerfile").read_text(encoding="utf-8")
    ROOT = DEPLOY.parent

    def test_it_copies_what_is_there_and_what_the_ignore_file_lets_through(self) -> None:
        copied = [word for line in self.lines("COPY") if "--from" not in line for word in line.split()[1:-1]]
        let_through = {
            line[1:] for line in (self.ROOT / ".containerignore").read_text().splitlines() if line[:1] == "!"
        }
        assert set(copied) == let_through
        assert all((self.ROOT / each).exists() for each in copied)

    def test_it_runs_as_nobody_and_starts_the_command(self) -> None:
        assert self.lines("USER") == ["USER 65532:65532"]
        assert self.lines("ENTRYPOINT") == ['ENTRYPOINT ["forecaster"]']
        assert self.TEXT.rindex("\nFROM") < self.TEXT.index("\nUSER")

    def test_everything_is_installed_by_hash_with_all_that_components_need(self) -> None:
        lock = (DEPLOY / "image" / "requirements.lock").read_text(encoding="utf-8")
        pinned = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
        assert {"grpcio", "protobuf", "cramjam", "psycopg-binary", "hatchling"} <= pinned
        assert lock.count("--hash=sha256:") >= len(pinned)
        assert "--require-hashes" in self.TEXT

    def test_what_the_service_does_not_import_stays_out(self) -> None:
        heavy = {"kubernetes", "matplotlib", "pandas", "pip", "pyarrow", "scikit-learn", "scipy", "statsmodels"}
        assert heavy.isdisjoint(self.versions("deploy/image/requirements.lock"))

    def test_it_holds_the_versions_that_are_tested(self) -> None:
        """The lock of the image is the other one's, without what only tests need."""
        image, tested = (self.versions(name) for name in ("deploy/image/requirements.lock", "requirements-dev.lock"))
        assert {name: version for name, version in image.items() if tested.get(name) != version} == {}

    def test_the_icon_of_the_chart_is_where_the_documents_are_published(self) -> None:
        chart = yaml.safe_load((DEPLOY / "chart" / "Chart.yaml").read_text(encoding="utf-8"))
        folder, _, name = chart["icon"].rpartition("/")
        assert folder == "https://forecaster.dev/docs"
        assert f"cp docs/pictures/{name} " in (self.ROOT / ".ci" / "site").read_text(encoding="utf-8")
        assert (self.ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8").startswith("<svg ")

    def versions(self, lock: str) -> dict[str, str]:
        text = (self.ROOT / lock).read_text(encoding="utf-8")
        return dict(re.findall(r"^([a-z0-9-]+)(?:\[[^\]]*\])?==([^ ;]+)", text, re.MULTILINE))

    def lines(self, word: str) -> list[str]:
        return [line for line in self.TEXT.splitlines() if line.startswith(f"{word} ")]

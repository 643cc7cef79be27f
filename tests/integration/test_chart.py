"""The Helm chart: the same objects as the kustomizations, and values that are what they say."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest
import yaml

from deploy.generate.chart import CHART
from deploy.generate.kustomized import DEPLOY, components
from tests.support.packaging import helm, kustomized, namespaces_in, released, rendered, tool

if TYPE_CHECKING:
    from collections.abc import Callable

ALL = components()
VARIANTS = [(), *((component,) for component in ALL), ALL]
NO_SCHEMA = {"APIService", "Certificate", "Issuer", "PrometheusRule", "ServiceMonitor"}
SHARDED = ("forecaster", "forecaster-scheduler", "forecaster-worker")
BUILT_IN = re.compile(r"^(v1|(apps|batch|autoscaling|policy)/v\d|[a-z.]+\.k8s\.io/v1)$")


@pytest.mark.parametrize("chosen", VARIANTS, ids=lambda names: "+".join(names) or "base")
def test_both_ways_give_the_same_objects(chosen: tuple[str, ...]) -> None:
    assert rendered(*chosen) == kustomized(*chosen)


def test_another_namespace_is_named_everywhere() -> None:
    assert namespaces_in(rendered(*ALL), "forecaster"), "nothing is looked for"
    assert namespaces_in(rendered(*ALL, release_in="scaling"), "forecaster") == []


def test_the_namespace_is_left_to_helm_unless_it_is_asked_for() -> None:
    assert "Namespace /forecaster" not in rendered(namespace={"create": False})


def test_a_misspelt_value_is_refused() -> None:
    done = helm("template", "forecaster", str(CHART), "--set=components.flor=true")
    assert done.returncode != 0
    assert "flor" in done.stderr


def test_values_reach_the_objects() -> None:
    settings = {"prometheus": {"url": "http://metrics.example:9090"}, "policy": {"mode": "observe"}}
    resources = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    made = rendered(
        "floor",
        "replicas",
        settings=settings,
        replicas=3,
        resources=resources,
        image={"repository": "registry.example/forecaster", "tag": "1.2"},
        nodeSelector={"disk": "fast"},
    )
    deployment = made["Deployment forecaster/forecaster"]["spec"]
    pod = deployment["template"]["spec"]
    release = made["CronJob forecaster/forecaster-release"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert deployment["replicas"] == 3
    assert pod["containers"][0]["resources"] == resources
    assert {spec["containers"][0]["image"] for spec in (pod, release)} == {"registry.example/forecaster:1.2"}
    assert {spec["nodeSelector"]["disk"] for spec in (pod, release)} == {"fast"}
    assert "metrics.example" in made["ConfigMap forecaster/forecaster-settings-HASH"]["data"]["90-values.yaml"]


SECRET_VOLUME = {"name": "prometheus", "secret": {"secretName": "prometheus-login"}}
SECRET_MOUNT = {"name": "prometheus", "mountPath": "/etc/prometheus-login", "readOnly": True}
SOURCE_READERS = ("Deployment forecaster/forecaster", "CronJob forecaster/forecaster-report")


def test_a_password_and_the_identity_of_a_cloud_reach_everything_that_reads_prometheus() -> None:
    region = {"name": "AWS_REGION", "value": "eu-central-1"}
    made = rendered(
        "report",
        "dask",
        settings={"prometheus": {"url": "https://metrics.example", "username": "reader"}},
        env=[region],
        envFrom=[{"secretRef": {"name": "proxy"}}],
        extraVolumes=[SECRET_VOLUME],
        extraVolumeMounts=[SECRET_MOUNT],
        serviceAccount={"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/reader"}},
        podLabels={"azure.workload.identity/use": "true"},
        podAnnotations={"example.com/inject": "true"},
    )
    assert made["ServiceAccount forecaster/forecaster"]["metadata"]["annotations"].keys() == {
        "eks.amazonaws.com/role-arn"
    }
    for name in (*SOURCE_READERS, *(f"Deployment forecaster/{part}" for part in SHARDED)):
        spec = made[name]["spec"]
        pod = (spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec)["template"]
        (container,) = pod["spec"]["containers"]
        assert region in container["env"], name
        assert container["envFrom"] == [{"secretRef": {"name": "proxy"}}], name
        assert SECRET_VOLUME in pod["spec"]["volumes"], name
        assert SECRET_MOUNT in container["volumeMounts"], name
        if name.startswith("Deployment"):
            assert pod["metadata"]["labels"]["azure.workload.identity/use"] == "true", name
            assert pod["metadata"]["annotations"] == {"example.com/inject": "true"}, name
            assert "azure.workload.identity/use" not in made[name]["metadata"].get("labels", {}), name


def test_by_default_no_metrics_api_is_taken_or_cut_off() -> None:
    done = helm("template", "forecaster", str(CHART))
    kinds = {document["kind"] for document in yaml.safe_load_all(done.stdout) if document}
    assert kinds.isdisjoint({"APIService", "NetworkPolicy", "CustomResourceDefinition"})


REFUSED = {
    "no control plane": ({"networkPolicy": {"enabled": True}}, "kubectl get endpointslices"),
    "an address for examples": (
        {"networkPolicy": {"enabled": True, "controlPlane": ["192.0.2.0/24"]}},
        "192.0.2.0/24 is an address for examples; state what `kubectl get endpointslices",
    ),
    "a name without a password": ({"prometheus": {"username": "reader"}}, "reader has no password"),
    "two identities": ({"prometheus": {"identity": "gcp", "existingSecret": "login"}}, "two identities"),
    "no such identity": ({"prometheus": {"identity": "aws"}}, "aws-sigv4"),
    "a label that is a number": ({"commonLabels": {"team": 7}}, "/commonLabels/team': got number, want string"),
    "a node by a truth": ({"nodeSelector": {"gpu": True}}, "/nodeSelector/gpu': got boolean, want string"),
    "a variable that is a number": ({"env": [{"name": "A", "value": 1}]}, "/env/0/value': got number, want string"),
    "a label of the chart's own": (
        {"podLabels": {"app.kubernetes.io/name": "mine"}},
        "podLabels: app.kubernetes.io/name is the chart's own",
    ),
    "no name of a Service": ({"fullnameOverride": "9to5"}, "9to5 would be the name of a Service"),
    "a name with a tag": ({"image": {"repository": "registry:5000/a:1"}}, "a:1 has more than registry and name"),
    "a port at which no probe looks": (
        {"settings": {"serving": {"port": 9000}}},
        "settings: serving.port: 9000 is not 8080, where probes and Services look",
    ),
    "pods that know nothing of each other": ({"replicas": 2}, "replicas: 2 needs components.replicas: true"),
    "a metrics API that nothing would answer": (
        {"apiService": {"create": True}, "settings": {"serving": {"secure": {"enabled": False}}}},
        "apiService.create registers a port that settings.serving.secure.enabled: false closes",
    ),
    "a mode without its rights": (
        {"settings": {"policy": {"mode": "floor"}}},
        "mode floor needs components.floor: true",
    ),
    "a mode of some workloads without its rights": (
        {"settings": {"overrides": [{"match": {}, "policy": {"vertical": {"mode": "in-place"}}}]}},
        "mode in-place needs components.vertical: true",
    ),
    "leaders of shards that forget": (
        {"components": {"dask": True, "replicas": True}},
        "need components.postgres: true",
    ),
    "a password in the address": ({"prometheus": {"url": "https://me:secret@metrics.example"}}, "/prometheus/url"),
}


@pytest.mark.parametrize(("values", "named"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_remedy(values: dict[str, Any], named: str) -> None:
    done = helm("template", "forecaster", str(CHART), "-f-", given=values)
    assert done.returncode != 0
    assert named in done.stderr


def test_a_release_may_be_named_as_a_truth_is() -> None:
    labels = [
        document["metadata"]["labels"] for document in released(release="true", fullnameOverride="forecaster").values()
    ]
    assert {each["app.kubernetes.io/instance"] for each in labels} == {"true"}


REFUSED_SETTINGS = {
    "misspelt": ({"policy": {"mod": "publish"}}, "mod"),
    "no such mode": ({"policy": {"mode": "publsh"}}, "mode"),
    "no duration": ({"cycle": {"interval": "often"}}, "interval"),
    "neither null nor a duration": ({"policy": {"horizontal": {"lead_time": "5 min"}}}, "'5 min' does not match"),
    "in an override": ({"overrides": [{"match": {"name": "web"}, "policy": {"horizontal": {"prize": 9}}}]}, "prize"),
}


@pytest.mark.parametrize(("settings", "named"), REFUSED_SETTINGS.values(), ids=REFUSED_SETTINGS)
def test_settings_that_the_service_would_refuse_are_refused_by_helm(settings: dict[str, Any], named: str) -> None:
    done = helm("template", "forecaster", str(CHART), "-f-", given={"settings": settings})
    assert done.returncode != 0
    assert named in done.stderr


def test_live_facts_are_off_by_a_bare_word_which_helm_reads_as_false() -> None:
    done = helm("template", "forecaster", str(CHART), "--set=settings.kubernetes.live=false")
    assert "live: false" in done.stdout


def test_the_notes_name_secrets_that_pods_wait_for() -> None:
    done = helm("install", "green", str(CHART), "--dry-run=client", "--set=components.postgres=true")
    assert "the Secret green-forecaster-database with address" in done.stdout


def test_the_examples_of_all_settings_are_taken() -> None:
    example = yaml.safe_load((DEPLOY / "examples" / "settings.yaml").read_text(encoding="utf-8"))
    done = helm("template", "forecaster", str(CHART), "-f-", given={"settings": example})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("way", ["kubectl", "helm"])
def test_the_start_replaces_no_metrics_api_and_cuts_nothing_off(way: str) -> None:
    if way == "helm":
        values = yaml.safe_load((DEPLOY / "start" / "values.yaml").read_text(encoding="utf-8"))
        made = helm("template", "forecaster", str(CHART), "-f-", given=values).stdout
    else:
        command = [tool("kubectl"), "kustomize", str(DEPLOY / "start")]
        made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kinds = {document["kind"] for document in yaml.safe_load_all(made) if document}
    assert "Deployment" in kinds
    assert kinds.isdisjoint({"APIService", "NetworkPolicy"})


def test_the_page_of_the_chart_has_values_that_it_takes() -> None:
    (values,) = re.findall(r"```yaml\n(.*?)```", (CHART / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(values.splitlines()) <= 5
    done = helm("template", "forecaster", str(CHART), "-f-", given=yaml.safe_load(values))
    assert done.returncode == 0, done.stderr
    assert "password_file: /etc/forecaster/prometheus/login/password" in done.stdout


def test_each_revision_runs_a_job_of_its_own_for_the_certificates() -> None:
    """A Job cannot be changed: an upgrade to another image would fail, and another component would have no CA."""
    made = helm("template", "forecaster", str(CHART), "--is-upgrade").stdout
    (job,) = [document for document in yaml.safe_load_all(made) if document and document["kind"] == "Job"]
    assert job["metadata"]["name"] == "forecaster-certificates-1"
    (cron,) = [document for document in yaml.safe_load_all(made) if document and document["kind"] == "CronJob"]
    assert cron["metadata"]["name"] == "forecaster-certificates"


def test_definitions_outlive_the_release() -> None:
    """Deleting a definition deletes the objects of every team."""
    definitions = [
        definition for definition in rendered("resources").values() if definition["kind"] == "CustomResourceDefinition"
    ]
    assert {definition["metadata"]["annotations"]["helm.sh/resource-policy"] for definition in definitions} == {"keep"}
    assert len(definitions) == 2


def test_workers_of_shards_have_a_number_and_sizes_of_their_own() -> None:
    resources = {"requests": {"cpu": "1", "memory": "8Gi"}, "limits": {"memory": "8Gi"}}
    made = rendered(
        "dask", "postgres", "replicas", replicas=3, resources={}, workers={"replicas": 16, "resources": resources}
    )
    counts = {name: made[f"Deployment forecaster/{name}"]["spec"]["replicas"] for name in SHARDED}
    assert counts == {"forecaster": 3, "forecaster-scheduler": 1, "forecaster-worker": 16}
    pods = {name: made[f"Deployment forecaster/{name}"]["spec"]["template"]["spec"] for name in SHARDED}
    assert pods["forecaster-worker"]["containers"][0]["resources"] == resources
    assert pods["forecaster-scheduler"]["containers"][0]["resources"] != resources


def test_other_settings_roll_the_deployment() -> None:
    results = [
        helm(
            "template",
            "forecaster",
            str(CHART),
            "--show-only=templates/deployment.yaml",
            f"--set=settings.prometheus.url=http://{value}",
        )
        for value in ("a", "b")
    ]
    assert results[0].returncode == 0, results[0].stderr
    assert results[0].stdout != results[1].stdout


@pytest.mark.parametrize("made", [rendered, kustomized], ids=["helm", "kustomize"])
def test_the_weekly_report_ends_where_the_service_shows_it(made: Callable[..., dict[str, Any]]) -> None:
    objects = made("report")
    service = objects["Deployment forecaster/forecaster"]["spec"]["template"]
    job = objects["CronJob forecaster/forecaster-report"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    written = next(
        argument for argument in job["containers"][0]["args"] if argument.startswith("--html=")
    ).removeprefix("--html=")
    stated = objects["ConfigMap forecaster/forecaster-settings-HASH"]["data"]["40-report.yaml"]
    shown = yaml.safe_load(stated)["serving"]["report"]
    assert place_of(written, job) == place_of(shown, service["spec"]) == ("forecaster-reports", "report.html")
    (near,) = job["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert near["labelSelector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


def place_of(path: str, pod: dict[str, Any]) -> tuple[str, str]:
    """The claim that a pod's first container has a file in, and where there."""
    mounts = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    folder = next(mount for mount in mounts if path.startswith(f"{mount}/"))
    (volume,) = (volume for volume in pod["volumes"] if volume["name"] == mounts[folder])
    return volume["persistentVolumeClaim"]["claimName"], path.removeprefix(f"{folder}/")


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    """Distinct objects of every variant, as kustomize makes them and as Helm renders them."""
    distinct = {}
    for chosen in VARIANTS:
        for document in (*kustomized(*chosen).values(), *released(*chosen, tests={"enabled": True}).values()):
            distinct[repr(document)] = document
    return list(distinct.values())


@pytest.mark.parametrize("version", [f"1.{minor}" for minor in range(31, 38)])
def test_every_object_fits_the_schemas_of_kubernetes(version: str, objects: list[dict[str, Any]]) -> None:
    """Checks are strict, as those of kubeconform; kinds of the aggregator and of other projects have no schema."""
    assert {document["kind"] for document in objects if not has_schema(document)} == NO_SCHEMA
    for document in filter(has_schema, objects):
        kubernetes_validate.validate(document, version, strict=True)


def has_schema(document: dict[str, Any]) -> bool:
    """Whether the schemas of Kubernetes know the kind of an object."""
    return bool(BUILT_IN.match(document["apiVersion"])) and document["kind"] != "APIService"

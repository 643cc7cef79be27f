"""Each value of the chart does something; releases have names and labels of their own; OpenShift takes every pod."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.generate.chart import CHART
from deploy.generate.kustomized import components
from deploy.generate.values import values
from forecaster.config.settings import parse
from forecaster.domain.policies import merged
from tests.support.packaging import helm, released, tool, values_of
from tests.support.snippets import snippets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ALL = components()
DIGEST = f"sha256:{'ab' * 32}"
WITH_PASSWORD = {"username": "the-reader", "existingSecret": "the-login", "caConfigMap": {"name": "the-ca"}}
STATED: Mapping[str, tuple[Any, str]] = {
    "affinity": ({"nodeAffinity": {"the-affinity": 1}}, "the-affinity"),
    "apiService.create": (True, "name: v1beta1.external.metrics.k8s.io"),
    "claim.size": ("77Gi", "77Gi"),
    "claim.storageClassName": ("the-class", "storageClassName: the-class"),
    "commonLabels": ({"the-team": "platform"}, "the-team: platform"),
    "containerSecurityContext": ({"procMount": "Default"}, "procMount: Default"),
    "crds.install": (False, ""),
    "crds.keep": (False, ""),
    "dnsConfig": ({"searches": ["the.search"]}, "the.search"),
    "env": ([{"name": "THE_VARIABLE", "value": "1"}], "THE_VARIABLE"),
    "envFrom": ([{"secretRef": {"name": "the-variables"}}], "the-variables"),
    "extraVolumeMounts": ([{"name": "the-volume", "mountPath": "/the-mount"}], "/the-mount"),
    "extraVolumes": ([{"name": "the-volume", "emptyDir": {}}], "name: the-volume"),
    "fullnameOverride": ("the-name", "name: the-name-certificates"),
    "hostNetwork": (True, "hostNetwork: true"),
    "image.digest": (DIGEST, f"forecaster@{DIGEST}"),
    "image.pullPolicy": ("Always", "imagePullPolicy: Always"),
    "image.pullSecrets": ([{"name": "the-registry"}], "the-registry"),
    "image.repository": ("the.registry/forecaster", "the.registry/forecaster:"),
    "image.tag": ("the-tag", "forecaster:the-tag"),
    "metrics.labels": ({"the-operator": "ours"}, "the-operator: ours"),
    "metrics.serviceMonitor.interval": ("77s", "interval: 77s"),
    "metrics.serviceMonitor.relabelings": ([{"action": "labeldrop", "regex": "the-label"}], "the-label"),
    "nameOverride": ("the-chart", "app.kubernetes.io/name: the-chart"),
    "namespace.create": (True, "kind: Namespace"),
    "networkPolicy.controlPlane": (["10.7.7.7/32"], "10.7.7.7/32"),
    "networkPolicy.enabled": (True, ""),
    "networkPolicy.kedaNamespace": ("the-keda", "kubernetes.io/metadata.name: the-keda"),
    "networkPolicy.prometheusNamespace": ("the-monitoring", "kubernetes.io/metadata.name: the-monitoring"),
    "nodeSelector": ({"the-disk": "fast"}, "the-disk: fast"),
    "podAnnotations": ({"the-annotation": "1"}, "the-annotation"),
    "podLabels": ({"the-label": "1"}, "the-label"),
    "podSecurityContext": ({"supplementalGroups": [777]}, "777"),
    "priorityClassName": ("the-priority", "priorityClassName: the-priority"),
    "prometheus.caConfigMap.key": ("the.crt", "/etc/forecaster/prometheus/ca/the.crt"),
    "prometheus.caConfigMap.name": ("the-ca", "configMap: {name: the-ca}"),
    "prometheus.existingSecret": ("the-login", "secretName: the-login"),
    "prometheus.identity": ("aws-sigv4", "identity: aws-sigv4"),
    "prometheus.url": ("https://the.prometheus", "url: https://the.prometheus"),
    "prometheus.username": ("the-reader", "username: the-reader"),
    "replicas": (7, "replicas: 7"),
    "resources": ({"limits": {"memory": "777Mi"}}, "memory: 777Mi"),
    "runtimeClassName": ("the-runtime", "runtimeClassName: the-runtime"),
    "serviceAccount.annotations": ({"the-role": "reader"}, "the-role: reader"),
    "serviceAccount.create": (False, ""),
    "serviceAccount.name": ("the-account", "serviceAccountName: the-account"),
    "settings": ({"cycle": {"interval": "2m"}}, "interval: 2m"),
    "tests.enabled": (False, ""),
    "tolerations": ([{"key": "the-taint"}], "the-taint"),
    "topologySpreadConstraints": ([{"topologyKey": "the-topology"}], "the-topology"),
    "workers.replicas": (17, "replicas: 17"),
    "workers.resources": ({"limits": {"memory": "778Mi"}}, "memory: 778Mi"),
}
"""Another value for each, and the text that it makes; a value that only takes away is rendered by itself."""
APART = {
    "image.digest": {},
    "prometheus.identity": {},
    "fullnameOverride": {},
    **{name: {} for name, (value, _) in STATED.items() if value is False},
    "networkPolicy.enabled": {"networkPolicy": {"controlPlane": ["10.7.7.7/32"]}},
}
"""Values that need others of the table to have an effect, with the values that they need."""
EVERYTHING = values_of(*ALL) | {
    "tests": {"enabled": True},
    "networkPolicy": {},
    "apiService": {},
    "namespace": {},
    "image": {},
}


def nested(path: str, value: Any) -> dict[str, Any]:
    head, _, rest = path.partition(".")
    return {head: nested(rest, value) if rest else value}


def render(*layers: Mapping[str, Any], options: tuple[str, ...] = ()) -> str:
    given: dict[str, Any] = {}
    for layer in layers:
        given = merged(given, layer)
    done = helm("template", "forecaster", str(CHART), "-f-", *options, given=given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_value_is_in_the_table() -> None:
    assert STATED.keys() == {".".join(value.path) for value in values() if value.path[0] != "components"}


def test_each_value_reaches_the_objects() -> None:
    before = render(EVERYTHING)
    together = {name: stated for name, stated in STATED.items() if name not in APART}
    made = render(
        EVERYTHING,
        *(nested(name, value) for name, (value, _) in together.items()),
        {"networkPolicy": {"enabled": True}},
    )
    assert {name for name, (_, text) in together.items() if text in before} == set()
    assert {name for name, (_, text) in together.items() if text not in made} == set()


@pytest.mark.parametrize("name", APART)
def test_a_value_that_stands_alone_changes_the_objects(name: str) -> None:
    value, text = STATED[name]
    before, made = render(EVERYTHING, APART[name]), render(EVERYTHING, APART[name], nested(name, value))
    assert made != before
    assert text in made


def test_a_null_takes_a_field_of_a_security_context_away() -> None:
    made = render({"podSecurityContext": {"runAsUser": None}, "containerSecurityContext": None})
    pods = [pod["spec"] for pod in pods_in(yaml.safe_load_all(made))]
    assert pods
    assert all("runAsUser" not in pod["securityContext"] and pod["securityContext"]["fsGroup"] for pod in pods)
    assert all("securityContext" not in container for pod in pods for container in pod["containers"])


class TestReleases:
    def test_every_object_carries_the_standard_labels(self) -> None:
        for name, document in released(*ALL, tests={"enabled": True}, release="green").items():
            labels = document["metadata"]["labels"]
            assert labels["app.kubernetes.io/instance"] == "green", name
            assert labels["app.kubernetes.io/managed-by"] == "Helm", name
            assert labels["helm.sh/chart"].startswith("forecaster-"), name
            assert labels.keys() >= {f"app.kubernetes.io/{label}" for label in ("name", "part-of", "version")}, name

    def test_two_side_by_side_share_no_object(self) -> None:
        """The metrics APIs, of which a cluster has one, and definitions are made by neither of the two."""
        of_clusters = {"apiService": {"create": False}, "crds": {"install": False}, "namespace": {"create": False}}
        chosen = [name for name in ALL if name not in {"custom-metrics", "own-metrics"}]
        green, blue = (released(*chosen, release=name, **of_clusters).keys() for name in ("green", "blue"))
        assert len(green) == len(blue) > 50
        assert green.isdisjoint(blue)

    def test_our_own_metrics_group_needs_no_other_and_cert_manager_trusts_it(self) -> None:
        """Only external.metrics.k8s.io and custom.metrics.k8s.io wait for `apiService.create`."""
        made = released("own-metrics", "cert-manager", apiService={"create": False}, release="green")
        (api_service,) = [document for document in made.values() if document["kind"] == "APIService"]
        assert api_service["metadata"]["name"] == "v1beta1.metrics.forecaster.dev"
        (source,) = api_service["metadata"]["annotations"].values()
        assert source.endswith("/green-forecaster")

    def test_nothing_refers_to_an_object_of_another_release(self) -> None:
        made = released(*ALL, release="green", release_in="scaling", tests={"enabled": True})
        objects = [document for document in made.values() if document["kind"] not in {"PrometheusRule", "ConfigMap"}]
        text = yaml.safe_dump(objects, width=10_000)
        text = re.sub(r"(helm.sh/chart|part-of|app.kubernetes.io/name|message): .*", "", text)
        others = re.findall(
            r"(?<![\w./@-])forecaster-(?!latest)[\w-]+|:scaling:forecaster\b|scaling/forecaster\b", text
        )
        assert others == []
        (settings,) = [
            document["data"] for name, document in made.items() if "-settings-HASH" in name or "-settings-" in name
        ]
        assert "scaling/green-forecaster" in settings["10-base.yaml"]
        assert "tls://green-forecaster-scheduler:" in settings["40-shards.yaml"]

    def test_pods_are_found_by_labels_that_they_have(self) -> None:
        made = released(*ALL, release="green", nameOverride="scaler")
        pods = [pod["metadata"]["labels"] for pod in pods_in(made.values())]
        selectors = [
            selector
            for document in made.values()
            if document["kind"] in {"Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget"}
            for selector in [document["spec"].get("selector") or document["spec"]["podSelector"]]
        ]
        assert len(selectors) >= 8
        for selector in selectors:
            matched = selector.get("matchLabels", selector)
            assert matched["app.kubernetes.io/instance"] == "green"
            assert any(matched.items() <= labels.items() for labels in pods), matched


class TestPrometheus:
    def settings(self, **prometheus: Any) -> tuple[Any, dict[str, Any]]:
        """Settings as the pod reads them, and its specification."""
        made = released("report", "dask", prometheus=prometheus)
        (given,) = [document["data"] for name, document in made.items() if name.startswith("ConfigMap ")]
        layers: dict[str, Any] = {}
        for name in sorted(given):
            layers = merged(layers, yaml.safe_load(given[name]))
        return parse(layers, "the chart").prometheus, made["Deployment forecaster/forecaster"]["spec"]["template"]

    def test_a_password_and_an_authority_are_files_that_are_mounted(self) -> None:
        settings, pod = self.settings(url="https://metrics.example", **WITH_PASSWORD)
        assert (settings.url, settings.username) == ("https://metrics.example", "the-reader")
        mounts = {mount["mountPath"]: mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        assert volumes[mounts[str(settings.password_file.parent)]]["secret"] == {"secretName": "the-login"}
        assert volumes[mounts[str(settings.ca_file.parent)]]["configMap"] == {"name": "the-ca"}

    def test_a_secret_without_a_username_is_a_bearer_token(self) -> None:
        settings, _ = self.settings(existingSecret="the-login")
        assert str(settings.bearer_token_file) == "/etc/forecaster/prometheus/login/token"

    @pytest.mark.parametrize("provider", ["aws-sigv4", "azure", "gcp"])
    def test_the_identity_of_a_cloud(self, provider: str) -> None:
        settings, pod = self.settings(identity=provider)
        assert settings.identity == provider
        assert ("azure.workload.identity/use" in pod["metadata"]["labels"]) == (provider == "azure")

    def test_thanos_of_openshift_is_read_by_the_service_account(self) -> None:
        settings, _ = self.settings(
            url="https://thanos-querier.openshift-monitoring.svc:9091",
            identity="service-account",
            caConfigMap={"name": "openshift-service-ca.crt", "key": "service-ca.crt"},
        )
        assert str(settings.bearer_token_file) == "/var/run/secrets/kubernetes.io/serviceaccount/token"
        assert str(settings.ca_file).endswith("/service-ca.crt")


PAGES = ("cloud-aks.md", "cloud-eks.md", "cloud-gke.md", "cloud-openshift.md")


@pytest.mark.parametrize("page", PAGES)
def test_values_of_the_pages_of_clouds_are_settings_that_the_service_takes(page: str) -> None:
    (values,) = [snippet.text for snippet in snippets() if snippet.page.name == page and snippet.language == "yaml"]
    settings, _ = TestPrometheus().settings(**yaml.safe_load(values)["prometheus"])
    assert settings.url.startswith("https://")
    assert settings.identity or settings.bearer_token_file
    render(yaml.safe_load(values))


OPENSHIFT = ("--api-versions=security.openshift.io/v1",)
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def test_restricted_v2_of_openshift_takes_every_pod() -> None:
    """A pod leaves its user and group to the range of its namespace, and asks for no further rights."""
    made = render(EVERYTHING, {"claim": {"size": "1Gi"}}, options=OPENSHIFT)
    pods = [pod["spec"] for pod in pods_in(yaml.safe_load_all(made))]
    assert len(pods) >= 6
    for pod in pods:
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context.keys().isdisjoint({"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "seLinuxOptions"})
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert {kind for volume in pod.get("volumes", []) for kind in volume if kind != "name"} <= VOLUMES
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            }
            assert not any("hostPort" in port for port in container.get("ports", []))


def test_any_user_may_write_where_the_service_has_to() -> None:
    """A user without a home: state and temporary files lie on volumes that the group of the pod may write."""
    (deployment,) = [document for name, document in released().items() if name.startswith("Deployment ")]
    pod = deployment["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    written = [mount for mount in pod["containers"][0]["volumeMounts"] if not mount.get("readOnly")]
    assert {mount["mountPath"] for mount in written} == {"/tmp", "/var/lib/forecaster"}
    assert all("emptyDir" in volumes[mount["name"]] for mount in written)


def test_a_released_chart_states_its_image_by_digest(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(tool('helm')).parent}:{os.environ['PATH']}"}
    command = ["sh", str(CHART.parents[1] / ".ci" / "chart"), f"ghcr.io/owner/name@{DIGEST}", str(tmp_path)]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    (archive,) = tmp_path.glob("forecaster-*.tgz")
    done = helm("template", "forecaster", str(archive))
    assert f"image: ghcr.io/owner/name@{DIGEST}" in done.stdout
    refused = subprocess.run([*command[:2], "name:latest", str(tmp_path)], capture_output=True, text=True, check=False)
    assert "no image by digest" in refused.stderr


def test_the_test_of_a_release_asks_its_own_service() -> None:
    made = released(release="green", tests={"enabled": True})
    (pod,) = [document for document in made.values() if document["kind"] == "Pod"]
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert "http://green-forecaster:8080/readyz" in pod["spec"]["containers"][0]["args"][0]
    assert "Service forecaster/green-forecaster" in made


def pods_in(documents: Any) -> Iterator[dict[str, Any]]:
    """Templates of pods, wherever objects have them."""
    for document in documents:
        if isinstance(document, dict) and "containers" in document.get("spec", {}):
            yield document
        elif isinstance(document, dict):
            yield from pods_in(document.values())

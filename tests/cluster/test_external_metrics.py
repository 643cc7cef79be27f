"""The external metrics API with the real API server and the real HPA controller (every item of its test checklist)."""

from __future__ import annotations

import json
import ssl
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.cluster_serving import GROUP, LAST_FOR, ClusterServing, autoscaler, known, unknown
from tests.support.control_plane.authority import Authority
from tests.support.control_plane.workloads import deployment, replicas
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.control_plane.plane import ControlPlane

BASE = f"/apis/{GROUP}/v1beta1"
NAME = f"v1beta1.{GROUP}"


@pytest.fixture(scope="module")
def serving(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterServing]:
    with ClusterServing(control_plane, tmp_path_factory.mktemp("serving")) as running:
        yield running


def path(namespace: str, selector: str = "workload=web,signal=cpu", metric: str = "forecaster_demand") -> str:
    quoted = httpx.QueryParams({"labelSelector": selector})
    return f"{BASE}/namespaces/{namespace}/{metric}?{quoted}"


def scaled(serving: ClusterServing, namespace: str, count: int) -> None:
    serving.until(lambda: replicas(serving.plane.api, "web", namespace).desired == count, goal=f"{count} replicas")


def condition(serving: ClusterServing, namespace: str) -> Any:
    return serving.plane.api.condition("HorizontalPodAutoscaler", "web", "ScalingActive", namespace)


def set_up(serving: ClusterServing, namespace: str, count: int, cores: float) -> None:
    serving.publish(known(namespace, "web", cores, count))
    serving.plane.api.create(deployment("web", count), namespace)
    serving.plane.api.create(autoscaler("web"), namespace)


class TestRegistered:
    """Checklist 1: availability, and what takes it away."""

    def test_it_is_available(self, serving: ClusterServing) -> None:
        assert serving.plane.api.condition("APIService", NAME, "Available")["reason"] == "Passed"

    def test_a_port_that_the_service_does_not_have_makes_it_unavailable(self, serving: ClusterServing) -> None:
        api = serving.plane.api
        port = {"name": "https", "port": 443, "targetPort": "https"}
        api.put({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "other-port"}, "spec": {"ports": [port]}})
        with serving.disturbed():
            api.merge("APIService", NAME, {"spec": {"service": {"name": "other-port", "port": 8443}}})
            wait_until(
                lambda: api.condition("APIService", NAME, "Available").get("reason") == "ServicePortError",
                goal="refusal of the port",
            )
            serving.register()

    def test_a_wrong_authority_or_name_makes_it_unavailable_and_it_recovers(
        self, serving: ClusterServing, tmp_path: Path
    ) -> None:
        if int(serving.plane.api.get("/version")["minor"]) < 36:
            pytest.skip("up to Kubernetes 1.35 the API server's own check of an APIService trusts every certificate")

        def reason() -> str:
            return str(serving.plane.api.condition("APIService", NAME, "Available").get("reason"))

        with serving.disturbed():
            serving.register(Authority(tmp_path, "other-ca").bundle)
            wait_until(lambda: reason() == "FailedDiscoveryCheck", goal="refusal of the authority")
            serving.register()
            renewed(serving, "somewhere.else.svc")
            serving.plane.api.merge("APIService", NAME, {"metadata": {"annotations": {"look": "again"}}})
            wait_until(lambda: reason() == "FailedDiscoveryCheck", goal="refusal of the name")
            renewed(serving)
            wait_until(lambda: reason() == "Passed", goal="recovery")
            serving.plane.until_available()


class TestReading:
    """Checklist 2: what people and clients read."""

    def test_a_value_by_every_kind_of_selector(self, serving: ClusterServing, namespace: str) -> None:
        serving.publish(known(namespace, "web", 3.25, 2))
        for selector in (
            "workload=web,signal=cpu",
            "workload in (web,x),signal!=memory,signal!=requests",
            "workload==web,signal notin (memory,requests),kind,!team",
        ):
            answer = json.loads(serving.plane.kubectl("get", "--raw", path(namespace, selector)))
            assert [item["value"] for item in answer["items"]] == ["3250m"]

    @pytest.mark.parametrize(
        ("selector", "metric", "reason"),
        [
            ("workload=none", "forecaster_demand", "NotFound"),
            ("workload=web", "other", "NotFound"),
            ("", "forecaster_demand", "BadRequest"),
            ("workload=web=x", "forecaster_demand", "BadRequest"),
        ],
    )
    def test_refusals_are_status_objects(
        self, serving: ClusterServing, namespace: str, selector: str, metric: str, reason: str
    ) -> None:
        answer = serving.plane.api.ask("GET", path(namespace, selector, metric))
        assert (answer.json()["kind"], answer.json()["reason"]) == ("Status", reason)

    def test_discovery_lists_the_metrics_and_explain_is_unharmed(self, serving: ClusterServing) -> None:
        def listed() -> list[str]:
            return serving.plane.kubectl("api-resources", f"--api-group={GROUP}", "-o", "name").split()

        # The API server collects these documents beside the requests.
        wait_until(lambda: f"forecaster_demand.{GROUP}" in listed(), goal="our metric among the resources")
        assert "replicas" in serving.plane.kubectl("explain", "deployment.spec")

    def test_kubectl_get_prints_a_table(self, serving: ClusterServing, namespace: str) -> None:
        serving.publish(known(namespace, "web", 3.25, 2))
        printed = serving.plane.kubectl(
            "get", f"forecaster_demand.{GROUP}", "-n", namespace, "-l", "workload=web,signal=cpu"
        )
        heading, row = printed.splitlines()
        assert heading.split() == ["METRIC", "WORKLOAD", "SIGNAL", "VALUE", "SOURCE", "AGE"]
        assert row.split()[:5] == ["forecaster_demand", "Deployment/web", "cpu", "3250m", "forecast"]

    def test_the_api_server_has_nothing_to_complain_about(self, serving: ClusterServing) -> None:
        """Checklist 3: neither discovery nor OpenAPI polls fail."""
        complaints = [line for line in serving.complaints if "openapi" in line.lower() or "discovery" in line.lower()]
        # The test of the wrong authority makes it complain once about the certificate.
        assert [line for line in complaints if "x509" not in line and "tls" not in line.lower()] == []


class TestScaling:
    """Checklist 4 and 5: the counts that the HPA makes of our values."""

    def test_the_hpa_scales_up_by_our_value_and_back(self, serving: ClusterServing, namespace: str) -> None:
        set_up(serving, namespace, 2, cores=1.0)
        serving.publish(known(namespace, "web", 5.2, 2))
        scaled(serving, namespace, 11)
        serving.publish(known(namespace, "web", 1.4, 11))
        scaled(serving, namespace, 3)
        serving.until(
            lambda: "467m/500m" in serving.plane.kubectl("get", "hpa", "web", "-n", namespace),
            goal="our value in kubectl get hpa",
        )

    def test_a_step_within_the_tolerance_is_lost_as_documented(self, serving: ClusterServing, namespace: str) -> None:
        set_up(serving, namespace, 2, cores=5.0)
        # The ratio is to the pods there are, not to those asked for.
        serving.until(lambda: replicas(serving.plane.api, "web", namespace) == (10, 10), goal="ten pods")
        serving.publish(known(namespace, "web", 5.5, 10))  # 11 of 10 is a ratio of 1.1, inside the band
        serving.until(lambda: current(serving, namespace) == "550m", goal="the new value")
        assert replicas(serving.plane.api, "web", namespace).desired == 10
        up = {"spec": {"behavior": {"scaleUp": {"tolerance": "0"}}}}
        serving.plane.api.merge("HorizontalPodAutoscaler", "web", up, namespace)
        scaled(serving, namespace, 11)

    def test_no_value_is_an_error_of_the_metric_and_the_count_stays(
        self, serving: ClusterServing, namespace: str
    ) -> None:
        set_up(serving, namespace, 2, cores=2.0)
        scaled(serving, namespace, 4)
        serving.publish()
        serving.until(lambda: condition(serving, namespace).get("reason") == "FailedGetExternalMetric", goal="an error")
        assert replicas(serving.plane.api, "web", namespace).desired == 4


def current(serving: ClusterServing, namespace: str) -> str:
    status = serving.plane.api.read("HorizontalPodAutoscaler", "web", namespace).get("status", {})
    return str(status.get("currentMetrics", [{}])[0].get("external", {}).get("current", {}).get("averageValue"))


class TestAbstaining:
    """Checklist 5: the table of docs/external-metrics.md, word by word."""

    @pytest.fixture(autouse=True)
    def restored(self, serving: ClusterServing) -> Iterator[None]:
        yield
        serving.abstaining("auto")

    def prepared(self, serving: ClusterServing, namespace: str, word: str) -> None:
        set_up(serving, namespace, 2, cores=2.0)
        serving.abstaining(word, known(namespace, "web", 2.0, 4))
        scaled(serving, namespace, 4)

    def test_neutral_keeps_the_count_that_others_have_made(self, serving: ClusterServing, namespace: str) -> None:
        self.prepared(serving, namespace, "neutral")
        serving.plane.api.merge("Deployment", "web", {"spec": {"replicas": 7}}, namespace)
        serving.publish(unknown(namespace, "web", 7))
        serving.until(lambda: source(serving, namespace) == "neutral", goal="neutral")
        scaled(serving, namespace, 7)
        serving.until(lambda: condition(serving, namespace)["status"] == "True", goal="a metric that can be read")

    def test_hold_brings_back_the_count_there_was(self, serving: ClusterServing, namespace: str) -> None:
        self.prepared(serving, namespace, "hold")
        serving.publish(unknown(namespace, "web", 4))
        serving.plane.api.merge("Deployment", "web", {"spec": {"replicas": 7}}, namespace)
        serving.publish(unknown(namespace, "web", 7))
        scaled(serving, namespace, 4)

    def test_last_is_repeated_and_then_an_error(self, serving: ClusterServing, namespace: str) -> None:
        self.prepared(serving, namespace, "last")
        serving.publish(known(namespace, "web", 2.0, 4))
        serving.publish(unknown(namespace, "web", 4))
        serving.until(lambda: source(serving, namespace) == "last", goal="the last value")
        assert value(serving, namespace).json()["items"][0]["value"] == "2"
        serving.publish(known(namespace, "web", 2.0, 4, aged=LAST_FOR - timedelta(seconds=2)))
        serving.publish(unknown(namespace, "web", 4))
        serving.until(lambda: value(serving, namespace).status_code == 503, goal="its end")
        assert replicas(serving.plane.api, "web", namespace).desired == 4

    def test_fail_is_an_error_that_leaves_the_count(self, serving: ClusterServing, namespace: str) -> None:
        self.prepared(serving, namespace, "fail")
        serving.publish(unknown(namespace, "web", 4))
        serving.until(lambda: condition(serving, namespace).get("reason") == "FailedGetExternalMetric", goal="an error")
        assert replicas(serving.plane.api, "web", namespace).desired == 4

    def test_the_death_of_computing_is_survived_and_recovered_from(
        self, serving: ClusterServing, namespace: str
    ) -> None:
        """Nothing is published any more: known, then last, then an error; then there is a table again."""
        self.prepared(serving, namespace, "last")
        serving.publish(known(namespace, "web", 2.0, 4, aged=LAST_FOR - timedelta(seconds=20)))
        wait_until(lambda: source(serving, namespace) == "last", goal="a stale table")
        wait_until(lambda: value(serving, namespace).status_code == 503, goal="its limit")
        assert replicas(serving.plane.api, "web", namespace).desired == 4
        serving.publish(known(namespace, "web", 3.0, 4))
        scaled(serving, namespace, 6)


def value(serving: ClusterServing, namespace: str) -> httpx.Response:
    return serving.plane.api.ask("GET", path(namespace))


def source(serving: ClusterServing, namespace: str) -> str:
    answer = value(serving, namespace)
    return str(answer.json()["items"][0]["metricLabels"]["source"]) if answer.is_success else ""


class TestAccess:
    """Checklist 6 and 7: who may not, and from when on they may."""

    def direct(self, serving: ClusterServing, namespace: str, **request: Any) -> httpx.Response:
        address = serving.process.secure_address
        assert address is not None
        identity = request.pop("identity", None)
        context = ssl.create_default_context(cafile=str(serving.issuer.certificate))
        if identity is not None:
            context.load_cert_chain(identity.certificate, identity.key)
        with httpx.Client(verify=context, timeout=PATIENCE) as client:
            return client.get(f"https://localhost:{address.port}{path(namespace)}", **request)

    def test_spoofed_headers_are_nothing(self, serving: ClusterServing, namespace: str) -> None:
        spoofed = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
        assert self.direct(serving, namespace, headers=spoofed).status_code == 401
        imposter = serving.plane.authority.issue("imposter", common_name="front-proxy-client")
        with pytest.raises(httpx.TransportError):
            self.direct(serving, namespace, headers=spoofed, identity=imposter)

    def test_an_account_may_once_it_is_bound(self, serving: ClusterServing, namespace: str) -> None:
        serving.publish(known(namespace, "web", 1.0, 2))
        bearer = {"Authorization": f"Bearer {serving.plane.token('default', namespace)}"}
        refused = self.direct(serving, namespace, headers=bearer)
        assert refused.status_code == 403
        assert f'User "system:serviceaccount:{namespace}:default" cannot list' in refused.json()["message"]
        serving.plane.api.create(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{namespace}-reads-metrics"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metric-reader"},
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
            }
        )
        serving.until(lambda: self.direct(serving, namespace, headers=bearer).status_code == 200, goal="the right")


def test_a_new_certificate_under_load_loses_no_request(serving: ClusterServing, namespace: str) -> None:
    """Checklist 8: renewal of the serving certificate."""
    serving.publish(known(namespace, "web", 1.0, 2))
    stop, statuses = threading.Event(), []

    def ask() -> None:
        while not stop.is_set():
            statuses.append(value(serving, namespace).status_code)

    load = threading.Thread(target=ask)
    load.start()
    try:
        for _ in range(3):
            renewed(serving)
            before = len(statuses)
            serving.until(lambda before=before: len(statuses) > before + 20, goal="load after it")  # type: ignore[misc]
    finally:
        stop.set()
        load.join()
    assert set(statuses) == {200}


def renewed(serving: ClusterServing, *names: str) -> None:
    """A new serving certificate, which is shown when this returns."""
    before = shown(serving)
    serving.renew(*names)
    serving.until(lambda: shown(serving) != before, goal="the new certificate")


def shown(serving: ClusterServing) -> str:
    address = serving.process.secure_address
    assert address is not None
    return ssl.get_server_certificate((address.host, address.port))


def test_namespaces_can_be_deleted_while_we_are_away_once_the_registration_is(
    serving: ClusterServing, control_plane: ControlPlane
) -> None:
    """Checklist 9: the APIService goes first when we are uninstalled."""
    control_plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}})
    control_plane.api.delete("APIService", NAME)
    control_plane.api.delete("Namespace", "going")
    wait_until(lambda: not control_plane.api.has("Namespace", "going"), goal="deletion")
    serving.register()


def test_the_same_value_as_an_object_metric_scales_as_well(serving: ClusterServing, namespace: str) -> None:
    serving.register(group="custom.metrics.k8s.io", version="v1beta2")
    serving.publish(known(namespace, "web", 3.0, 2))
    hpa = autoscaler("web")
    hpa["spec"]["metrics"] = [
        {
            "type": "Object",
            "object": {
                "describedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "metric": {"name": "forecaster_demand", "selector": {"matchLabels": {"signal": "cpu"}}},
                "target": {"type": "AverageValue", "averageValue": "500m"},
            },
        }
    ]
    serving.plane.api.create(deployment("web", 2), namespace)
    serving.plane.api.create(hpa, namespace)
    scaled(serving, namespace, 6)
    serving.plane.api.delete("APIService", "v1beta2.custom.metrics.k8s.io")

"""Our metrics API beside an adapter that was there before: the adapter is left alone, or stood in front of."""

from __future__ import annotations

import json
import ssl
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.serving.options import UpstreamOptions
from tests.support.cluster_serving import GROUP, OWN_GROUP, ClusterServing, autoscaler, known, unknown
from tests.support.control_plane.authority import Authority
from tests.support.control_plane.workloads import deployment, replicas
from tests.support.http_server import HttpRequest, Reply, Running, answering
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.control_plane.plane import ControlPlane

BASE = f"/apis/{GROUP}/v1beta1"


class OldAdapter(Running):
    """Serves one metric, `queue`, to the API server and to whoever shows the right token."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder, "old-ca")
        self.token = folder / "token"
        self.token.write_text("from-forecaster")
        self.values = ("7",)
        self.asked: list[str] = []
        identity = self.authority.issue("old", "localhost", "aggregated-external.default.svc")
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(identity.certificate, identity.key)
        super().__init__(answering(self._respond), tls, lazy=True)

    @property
    def address(self) -> UpstreamOptions:
        """Options by which the serving process knows this adapter."""
        port = int(self.url.rsplit(":", 1)[1])
        return UpstreamOptions("localhost", port, str(self.authority.certificate), str(self.token))

    def _respond(self, request: HttpRequest) -> Reply:
        self.asked.append(request.path)
        proxied = "X-Remote-User" in request.headers
        if not proxied and request.headers.get("Authorization") != "Bearer from-forecaster":
            return Reply(401, b"{}")
        return Reply(body=json.dumps(self.answer(request.path)).encode())

    def answer(self, path: str) -> dict[str, Any]:
        if path == BASE:
            return {"kind": "APIResourceList", "resources": [{"name": "queue", "namespaced": True, "verbs": ["get"]}]}
        item = {"metricName": "queue", "metricLabels": {}, "timestamp": "2026-01-01T00:00:00Z"}
        items = [{**item, "value": value} for value in self.values]
        return {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/v1beta1", "metadata": {}, "items": items}


QUEUE = {
    "type": "External",
    "external": {
        "metric": {"name": "queue", "selector": {"matchLabels": {"of": "web"}}},
        "target": {"type": "AverageValue", "averageValue": "1"},
    },
}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldAdapter]:
    with OldAdapter(tmp_path_factory.mktemp("old")) as adapter:
        yield adapter


@pytest.fixture(scope="module")
def serving(
    control_plane: ControlPlane, old: OldAdapter, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterServing]:
    folder = tmp_path_factory.mktemp("before")
    with ClusterServing(control_plane, folder, service="default/forecaster", upstream=old.address) as running:
        yield running


def test_an_hpa_on_a_metric_of_the_old_adapter_goes_on(
    serving: ClusterServing, old: OldAdapter, namespace: str
) -> None:
    hpa = autoscaler("web")
    hpa["spec"]["metrics"] = [QUEUE]
    serving.plane.api.create(deployment("web", 2), namespace)
    serving.plane.api.create(hpa, namespace)
    serving.until(lambda: desired(serving, namespace) == 7, goal="the old adapter's count")
    assert f"{BASE}/namespaces/{namespace}/queue?labelSelector=of%3Dweb" in old.asked


def test_items_of_a_list_are_added_up_and_an_empty_list_is_an_error(
    serving: ClusterServing, old: OldAdapter, namespace: str
) -> None:
    """This is why our own lists have exactly one item."""
    hpa = autoscaler("web")
    hpa["spec"]["metrics"] = [QUEUE]
    old.values = ("4", "5")
    serving.plane.api.create(deployment("web", 2), namespace)
    serving.plane.api.create(hpa, namespace)
    serving.until(lambda: desired(serving, namespace) == 9, goal="the sum")
    old.values = ()
    serving.until(lambda: reason(serving, namespace) == "FailedGetExternalMetric", goal="an error")
    assert desired(serving, namespace) == 9
    old.values = ("7",)


def test_while_ours_fails_another_metric_raises_the_count_and_does_not_lower_it(
    serving: ClusterServing, old: OldAdapter, namespace: str
) -> None:
    old.values = ("3",)
    serving.abstaining("fail", unknown(namespace, "web", 2))
    serving.plane.api.create(deployment("web", 2), namespace)
    serving.plane.api.create(autoscaler("web", QUEUE), namespace)
    serving.until(lambda: desired(serving, namespace) == 3, goal="the way up by the other metric")
    old.values = ("8",)
    serving.until(lambda: desired(serving, namespace) == 8, goal="the way up by the other metric")
    before = len(old.asked)
    old.values = ("2",)
    serving.until(lambda: len(old.asked) > before + 5, goal="five more looks")
    assert desired(serving, namespace) == 8
    serving.abstaining("neutral", unknown(namespace, "web", 8))
    serving.until(lambda: reason(serving, namespace) == "ValidMetricFound", goal="neutral")
    assert desired(serving, namespace) == 8
    old.values = ("7",)


def desired(serving: ClusterServing, namespace: str) -> int:
    return replicas(serving.plane.api, "web", namespace).desired


def reason(serving: ClusterServing, namespace: str) -> str:
    return str(serving.plane.api.condition("HorizontalPodAutoscaler", "web", "ScalingActive", namespace).get("reason"))


def test_our_own_metrics_are_answered_here(serving: ClusterServing, old: OldAdapter, namespace: str) -> None:
    serving.publish(known(namespace, "web", 1.5, 2))
    path = f"{BASE}/namespaces/{namespace}/forecaster_demand?labelSelector=workload%3Dweb%2Csignal%3Dcpu"
    assert serving.plane.api.get(path)["items"][0]["value"] == "1500m"
    assert not any("forecaster_demand" in query for query in old.asked)


def test_discovery_lists_both(serving: ClusterServing) -> None:
    def listed() -> set[str]:
        return {resource["name"] for resource in serving.plane.api.get(BASE)["resources"]}

    wait_until(lambda: {"queue", "forecaster_demand"} <= listed(), goal="both")


def test_who_may_not_ask_us_cannot_ask_the_old_adapter_through_us(
    serving: ClusterServing, old: OldAdapter, namespace: str
) -> None:
    path = f"{BASE}/namespaces/{namespace}/queue"
    with closing(serving.plane.client(token=serving.plane.token("default", namespace))) as somebody:
        assert somebody.ask("GET", path).status_code == 403
    # HPAs of earlier tests go on asking in their own namespaces.
    assert not [query for query in old.asked if query.startswith(path)]


def test_a_group_of_another_service_is_noticed_and_left_alone(serving: ClusterServing) -> None:
    """The registration of these tests carries another name than the one we are told is ours."""
    name = f"v1beta1.{GROUP}"
    before = serving.plane.api.read("APIService", name)["spec"]
    line = f'forecaster_serving_group_owner{{group="{name}",owner="other"}} 1.0'
    wait_until(lambda: line in serving.metrics(), goal="the other owner")
    assert serving.plane.api.read("APIService", name)["spec"] == before


def test_our_own_group_answers_while_another_adapter_owns_the_external_metrics(
    serving: ClusterServing, old: OldAdapter, namespace: str
) -> None:
    plane = serving.plane
    serving.publish(known(namespace, "web", 1.5, 2))
    value = f"/v1beta1/namespaces/{namespace}/forecaster_demand?labelSelector=workload%3Dweb%2Csignal%3Dcpu"
    before = plane.api.get(f"/apis/{GROUP}{value}")
    serving.register(group=OWN_GROUP)
    with serving.disturbed():
        plane.aggregate(int(old.url.rsplit(":", 1)[1]), old.authority.bundle)
        wait_until(
            lambda: plane.api.ask("GET", f"/apis/{GROUP}{value}").text.count("queue") == 1, goal="the other adapter"
        )
        answer = json.loads(plane.kubectl("get", "--raw", f"/apis/{OWN_GROUP}{value}"))
        assert answer == {**before, "apiVersion": f"{OWN_GROUP}/v1beta1"}
        assert answer["items"][0]["value"] == "1500m"
        printed = plane.kubectl(
            "get", f"forecaster_demand.{OWN_GROUP}", "-n", namespace, "-l", "workload=web,signal=cpu"
        )
        assert printed.splitlines()[1].split()[:4] == ["forecaster_demand", "Deployment/web", "cpu", "1500m"]
        may_and_may_not(serving, namespace, f"/apis/{OWN_GROUP}{value}")
        plane.api.delete("APIService", f"v1beta1.{OWN_GROUP}")
        serving.register()


def may_and_may_not(serving: ClusterServing, namespace: str, path: str) -> None:
    """The account of the HPA controller may read a value, that of another pod may not."""
    plane = serving.plane
    for account, place, status in (("horizontal-pod-autoscaler", "kube-system", 200), ("default", namespace, 403)):
        with closing(plane.client(token=plane.token(account, place))) as client:
            assert client.ask("GET", path).status_code == status

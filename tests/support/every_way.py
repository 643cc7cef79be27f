"""Answers of every integration about a workload, over the network, and the replicas that its reader would want."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import ssl
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import httpx
from prometheus_client.parser import text_string_to_metric_families

from forecaster.domain.quantity import parse_quantity
from forecaster.publish.reader import TableReader
from forecaster.serving.keda import externalscaler_pb2 as wire
from forecaster.serving.keda.service import ScalerService, TriggerValues
from tests.support.control_plane.deployed import EXTERNAL, NAMESPACE, SERVICE
from tests.support.exporters import NAMESPACE as SHOP
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tests.support.control_plane.deployed import Deployed
    from tests.support.exporters import ScrapedWorkload
    from tests.support.played_time import PlayedTime

DEMAND, REPLICAS, FLOOR = METRICS = ("forecaster_demand", "forecaster_replicas", "forecaster_floor")


class IntegrationAnswer(NamedTuple):
    """Answer of one integration about one workload, in replicas; None and the reason for an error or no answer."""

    way: str
    metric: str
    count: int | None
    why: str


class EveryWay:
    """The integrations of a serving process, read with the rights of an account of its namespace."""

    def __init__(self, deployed: Deployed, clock: PlayedTime, store: str) -> None:
        """`store` is the Prometheus that takes our remote writes."""
        self._cluster, self._clock = deployed.cluster, clock
        self._store = httpx.Client(base_url=store, timeout=PATIENCE)
        self._reader = TableReader(deployed.table, clock)
        self._scaler = ScalerService(TriggerValues(self._reader))
        self._client = httpx.Client(
            base_url=f"https://{deployed.address.host}:{deployed.address.port}",
            headers={"Authorization": f"Bearer {_token(deployed)}"},
            verify=_trust(deployed),
            timeout=PATIENCE,
        )

    def close(self) -> None:
        """The connections."""
        self._client.close()
        self._store.close()

    def published_at(self) -> datetime:
        """The instant of the newest table that may be served."""
        self._reader.refresh()
        assert self._reader.table, self._reader.fault
        return self._reader.table.meta.published_at

    def answers(self, workload: ScrapedWorkload) -> list[IntegrationAnswer]:
        """All of them, now."""
        self._reader.refresh()
        return [*self._read(workload)]

    def _read(self, workload: ScrapedWorkload) -> Iterator[IntegrationAnswer]:
        for metric in METRICS:
            selector = f"workload={workload.name},kind=Deployment" + (",signal=cpu" if metric == DEMAND else "")
            group = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{SHOP}"
            answer = self._cluster.api.ask("GET", f"{group}/{metric}?{httpx.QueryParams(labelSelector=selector)}")
            yield _of_list("external metrics", metric, workload, answer)
            group = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{SHOP}/deployments.apps/{workload.name}"
            selector = "?metricLabelSelector=signal%3Dcpu" if metric == DEMAND else ""
            yield _of_list("custom metrics", metric, workload, self._get(f"{group}/{metric}{selector}"))
            yield self._keda(metric, workload)
            yield self._rest(metric, workload)
            yield self._stored(metric, workload)
        yield from self._gauges(workload)
        yield self._watermark(workload)
        yield self._kapacity(workload)
        yield self._recommendation(workload)

    def _get(self, path: str) -> httpx.Response:
        return self._client.get(path, extensions={"sni_hostname": f"{SERVICE}.{NAMESPACE}.svc"})

    def _keda(self, metric: str, workload: ScrapedWorkload) -> IntegrationAnswer:
        metadata = {"metric": metric.removeprefix("forecaster_"), "workload": workload.name}
        metadata |= {"signal": "cpu", "target": str(workload.target)} if metric == DEMAND else {}
        reference = wire.ScaledObjectRef(name=workload.name, namespace=SHOP, scalerMetadata=metadata)
        context = _Context()
        try:
            answer = asyncio.run(self._scaler.get_metrics(reference, cast("Any", context)))
        except _AbortedError:
            return IntegrationAnswer("KEDA scaler", metric, None, context.message)
        return IntegrationAnswer(
            "KEDA scaler", metric, _replicas(metric, answer.metricValues[0].metricValueFloat, workload), "value"
        )

    def _rest(self, metric: str, workload: ScrapedWorkload) -> IntegrationAnswer:
        signal = "?signal=cpu" if metric == DEMAND else ""
        answer = self._get(f"{_place(workload)}/metrics/{metric}/forecast{signal}")
        if not answer.is_success:
            return IntegrationAnswer("KEDA metrics-api", metric, None, answer.text)
        return IntegrationAnswer(
            "KEDA metrics-api", metric, _replicas(metric, answer.json()["value"], workload), "value"
        )

    def _stored(self, metric: str, workload: ScrapedWorkload) -> IntegrationAnswer:
        """Answer of a store that remote write filled, and which repeats the value for minutes."""
        query = {
            "query": f'{metric}{{namespace="{SHOP}",workload="{workload.name}"}}',
            "time": self._clock().timestamp(),
        }
        answer = self._store.get("/api/v1/query", params=query).raise_for_status()
        values = [float(each["value"][1]) for each in answer.json()["data"]["result"]]
        return IntegrationAnswer(
            "remote write", metric, _replicas(metric, values[0], workload) if values else None, "value"
        )

    def _gauges(self, workload: ScrapedWorkload) -> Iterator[IntegrationAnswer]:
        lines = [line for line in self._get("/metrics").text.splitlines() if line.startswith(METRICS)]
        families = text_string_to_metric_families("\n".join([*lines, ""]))
        samples = [sample for family in families if family.name in METRICS for sample in family.samples]
        for metric in METRICS:
            values = [each.value for each in samples if (each.name, each.labels["workload"]) == (metric, workload.name)]
            yield IntegrationAnswer(
                "gauges", metric, _replicas(metric, values[0], workload) if values else None, "value" if values else ""
            )

    def _watermark(self, workload: ScrapedWorkload) -> IntegrationAnswer:
        request = {"targetRef": {"kind": "Deployment", "name": workload.name, "namespace": SHOP}}
        names = {"sni_hostname": f"{SERVICE}.{NAMESPACE}.svc"}
        answer = self._client.post("/api/v1/recommenders/watermark", json=request, extensions=names).json()
        return IntegrationAnswer(
            "WatermarkPodAutoscaler", REPLICAS, answer.get("targetReplicas"), answer.get("reason", "error")
        )

    def _kapacity(self, workload: ScrapedWorkload) -> IntegrationAnswer:
        answer = self._get(f"{_place(workload)}/kapacity/{workload.name}")
        if not answer.is_success:
            return IntegrationAnswer("Kapacity", REPLICAS, None, answer.text)
        (count,) = json.loads(answer.json()["data"]["timeSeries"]).values()
        return IntegrationAnswer("Kapacity", REPLICAS, count, "value")

    def _recommendation(self, workload: ScrapedWorkload) -> IntegrationAnswer:
        answer = self._get(f"/api/v1/recommendations/{SHOP}/{workload.name}").json()
        replicas = answer["recommendation"]["replicas"] if "recommendation" in answer else {}
        if answer.get("stale"):
            return IntegrationAnswer("REST", REPLICAS, None, "stale")
        return IntegrationAnswer("REST", REPLICAS, replicas.get("recommended"), replicas.get("reason", "error"))


class _AbortedError(Exception):
    """A call that ended with an error."""


class _Context:
    message = ""

    async def abort(self, _code: object, message: str) -> None:
        self.message = message
        raise _AbortedError


def _place(workload: ScrapedWorkload) -> str:
    return f"/api/v1/namespaces/{SHOP}/workloads/Deployment/{workload.name}"


def _replicas(metric: str, value: float, workload: ScrapedWorkload) -> int:
    """Replicas that a reader without tolerance computes from an average value, in milli-units."""
    return math.ceil(round(value / (workload.target if metric == DEMAND else 1.0), 6))


def _of_list(way: str, metric: str, workload: ScrapedWorkload, answer: httpx.Response) -> IntegrationAnswer:
    if not answer.is_success:
        return IntegrationAnswer(way, metric, None, f"{answer.status_code} {answer.json().get('message', '')}")
    (item,) = answer.json()["items"]
    word = item.get("metricLabels", {}).get("source", "value")
    return IntegrationAnswer(way, metric, _replicas(metric, parse_quantity(item["value"]).as_float(), workload), word)


def _trust(deployed: Deployed) -> ssl.SSLContext:
    """Trust in the authority that the certificates' own Job gave to the API server."""
    bundle = deployed.cluster.api.read("APIService", EXTERNAL)["spec"]["caBundle"]
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode())


def _token(deployed: Deployed) -> str:
    """Token of an account that may read everything here."""
    cluster, version = deployed.cluster, "rbac.authorization.k8s.io/v1"
    rules = [
        {"nonResourceURLs": ["/forecaster/api/v1/*", "/metrics"], "verbs": ["get", "post"]},
        {"apiGroups": ["custom.metrics.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]},
    ]
    cluster.api.put({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": "reads-all"}, "rules": rules})
    binding = {
        "apiVersion": version,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reads-all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-all"},
        "subjects": [{"kind": "ServiceAccount", "namespace": SHOP, "name": "default"}],
    }
    cluster.api.put(binding)
    token = cluster.token("default", SHOP)
    cluster.until_allowed(f"{SHOP}/default", "list", "forecaster_demand.custom.metrics.k8s.io", namespace=SHOP)
    return token

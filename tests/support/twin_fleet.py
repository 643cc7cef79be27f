"""Twins on a real control plane: two Deployments with the same recorded demand and the same HPA, one in a trial.

Some of the demands are also those of Deployments without an HPA: one is left for mode scale, one has pods to resize.

Time is played in half-minutes. Pods are those of the API server and scaled by the real HPA controller, which reads
their CPU from `metrics.k8s.io`; a pod is ready so long after it was made as its start-up takes. Samples lie in a real
Prometheus. What the ready pods do not carry is counted.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlparse

import numpy as np

from forecaster.domain.quantity import parse_quantity
from forecaster.domain.signal import CPU
from forecaster.sources.recorded import load_recording
from tests.support.control_plane.authority import Authority
from tests.support.control_plane.workloads import deployment
from tests.support.exporters import NAMESPACE, SCRAPE, Exporters, ScrapedPod, ScrapedWorkload, state_of_pod, usage_of
from tests.support.http_server import HttpRequest, Reply, Running, answering
from tests.support.prometheus import Span, head
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.support.control_plane.api import Document
    from tests.support.control_plane.plane import ControlPlane
    from tests.support.exporters import Labels

ARMS = ("floor", "plain")
"""With an HPA."""
ALONE = ("scale", "sized")
"""Arms whose workloads have no HPA."""
REQUEST = 0.5
"""Cores of a pod: what it carries."""
UTILIZATION = 0.7
MOST = 20
MEMORY_LIMIT = "4Gi"
START_UP = timedelta(minutes=2)
"""Time from the creation of a pod until it serves."""
HISTORY = timedelta(hours=26)
HISTORY_STEP = timedelta(minutes=1)
NEVER_BY_ITSELF = {"pod-ready.stage.kwok.x-k8s.io/delay": "24h"}
AT_ONCE = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 100, "periodSeconds": 1}]}
"""A minute is played in seconds: limits by the clock of the machine would last for hours of the fleet."""
LOWERING = {"stabilizationWindowSeconds": 10, "policies": [{"type": "Percent", "value": 100, "periodSeconds": 1}]}


class Carried(NamedTuple):
    """Demand, unserved demand and pods' time, in core-seconds."""

    demand: float
    unserved: float
    pod_seconds: float


def recorded_demand(pairs: int) -> NDArray[np.float64]:
    """Cores [pair, minute] of recorded workloads, each shifted by another time of the day; one to ten pods for most."""
    values = load_recording().values[CPU]
    known = values[~np.isnan(values).any(axis=1)]
    rows = np.array([np.roll(known[pair % len(known)], -97 * (pair // len(known))) for pair in range(pairs)])
    high = np.quantile(rows, 0.98, axis=1, keepdims=True)
    return np.minimum(rows / high * np.linspace(1.5, 3.5, pairs)[:, None], MOST * REQUEST * UTILIZATION)


def autoscaler(name: str, arm: str) -> Document:
    """An HPA on CPU utilization."""
    target = {"type": "Utilization", "averageUtilization": round(UTILIZATION * 100)}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "labels": {"arm": arm}},
        "spec": {
            "minReplicas": 1,
            "maxReplicas": MOST,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "behavior": {"scaleUp": AT_ONCE, "scaleDown": LOWERING},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


class PodMetrics(Running):
    """`metrics.k8s.io`: the CPU of ready pods, by the label `app`."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder, "metrics-ca")
        self.usage: dict[str, dict[str, float]] = {}
        self.read: set[str] = set()
        """Workloads whose metrics were read since this was emptied."""
        identity = self.authority.issue("metrics", "localhost", "aggregated-metrics.default.svc")
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(identity.certificate, identity.key)
        super().__init__(answering(self._respond), tls, lazy=True)

    def register(self, plane: ControlPlane) -> None:
        """Let the API server fetch it."""
        port = int(self.url.rsplit(":", 1)[1])
        bundle = base64.b64encode(self.authority.certificate.read_bytes()).decode()
        plane.aggregate(port, bundle, group="metrics.k8s.io")
        plane.until_available("metrics.k8s.io")

    def _respond(self, request: HttpRequest) -> Reply:
        address = urlparse(request.path)
        selector = parse_qs(address.query).get("labelSelector", [""])[0]
        body = self._pods(selector.removeprefix("app=")) if selector else DISCOVERY
        return Reply(body=json.dumps(body).encode())

    def _pods(self, app: str) -> Document:
        self.read.add(app)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [
            {
                "metadata": {"name": pod, "namespace": NAMESPACE},
                "timestamp": now,
                "window": "15s",
                "containers": [{"name": "app", "usage": {"cpu": f"{cores * 1000:.0f}m", "memory": "1Gi"}}],
            }
            for pod, cores in self.usage.get(app, {}).items()
        ]
        return {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items}


DISCOVERY = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": "metrics.k8s.io/v1beta1",
    "resources": [{"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["list"]}],
}


class TwinExporters(Exporters):
    """Exporters of the twins with their HPAs, without series that do not matter here."""

    least: dict[str, int]
    """minReplicas of each HPA as it is now."""

    def _series_of(
        self, workloads: Sequence[ScrapedWorkload], pods: list[ScrapedPod]
    ) -> Iterator[tuple[Labels, float]]:
        yield from super()._series_of(workloads, pods)
        for workload in workloads:
            yield from self.hpa_of(workload.name)

    def hpa_of(self, name: str) -> Iterator[tuple[Labels, float]]:
        """Series of kube-state-metrics about an HPA on CPU utilization, where there is one."""
        if arm_of(name) not in ARMS:
            return
        hpa, prefix = {"namespace": NAMESPACE, "horizontalpodautoscaler": name}, "kube_horizontalpodautoscaler"
        reads = {"metric_name": "cpu", "metric_target_type": "utilization"}
        for suffix, value, labels in (
            ("info", 1, {"scaletargetref_kind": "Deployment", "scaletargetref_name": name}),
            ("spec_min_replicas", self.least.get(name, 1), {}),
            ("spec_max_replicas", MOST, {}),
            ("spec_target_metric", UTILIZATION * 100, reads),
        ):
            yield (("__name__", f"{prefix}_{suffix}"), *sorted((hpa | labels).items())), float(value)


@dataclass
class TwinFleet:
    """`at` is the played instant; `minute` the column of the demand that is used until then."""

    plane: ControlPlane
    metrics: PodMetrics
    demand: NDArray[np.float64]
    at: datetime
    minute: int
    exporters: TwinExporters
    alone: int = 0
    """Number of demands that workloads without an HPA have, too."""
    made: dict[str, datetime] = field(default_factory=dict)
    """When each pod was first seen."""
    ready: set[str] = field(default_factory=set)

    @property
    def names(self) -> list[tuple[str, int]]:
        """Each workload with its row of the demand."""
        counts = dict.fromkeys(ARMS, len(self.demand)) | dict.fromkeys(ALONE, self.alone)
        return [(f"{arm}-{pair:03d}", pair) for arm, count in counts.items() for pair in range(count)]

    @property
    def scaled_by_hpas(self) -> list[str]:
        """The workloads with an HPA."""
        return [name for name, _ in self.names if arm_of(name) in ARMS]

    def create(self) -> None:
        """Deployments that fit the demand of now, with their HPAs."""
        api = self.plane.api
        api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        wait_until(lambda: api.has("ServiceAccount", "default", NAMESPACE), goal="the account of the namespace")
        for name, pair in self.names:
            document = deployment(name, self._fits(pair), annotations=NEVER_BY_ITSELF)
            (container,) = document["spec"]["template"]["spec"]["containers"]
            container["resources"]["requests"]["cpu"] = f"{REQUEST * 1000:.0f}m"
            container["resources"]["limits"] = {"memory": MEMORY_LIMIT}
            api.create(document, NAMESPACE)
        pods = self._settled()
        self.made = dict.fromkeys(names_of(pods), self.at - START_UP)
        self._start_pods(pods)
        self._use(pods)
        for name in self.scaled_by_hpas:
            api.create(autoscaler(name, arm_of(name)), NAMESPACE)

    def half_minute(self) -> dict[str, Carried]:
        """The next one: pods become ready, use CPU and are scraped, and the HPA controller has looked; by arm."""
        self.at += SCRAPE
        pods = self._settled()
        for name in names_of(pods):
            self.made.setdefault(name, self.at - SCRAPE)
        self._start_pods(pods)
        shares = self._use(pods)
        self.exporters.least = self._least()
        self.exporters.scrape(self._scraped(pods, shares), self.at)
        self.until_looked_at()
        return {arm: self._carried(arm, pods) for arm in (*ARMS, *ALONE)}

    def until_looked_at(self) -> None:
        """Wait until every HPA has read the present usage of its pods; it acts before the next pods are counted."""
        self.metrics.read.clear()
        wait_until(lambda: len(self.metrics.read) >= len(self.scaled_by_hpas), goal="a round of the HPA controller")

    def until_at_rest(self) -> None:
        """The HPAs change nothing any more while demand stays what it is."""
        before: list[tuple[str, int]] = []
        for _ in range(60):
            pods = self._settled()
            self.made |= {name: self.at - START_UP for name in names_of(pods) if name not in self.ready}
            self._start_pods(pods)
            self._use(pods)
            self.until_looked_at()
            counts = sorted(
                (str(document["metadata"]["name"]), int(document["spec"]["replicas"]))
                for document in self._deployments()
            )
            if counts == before and all(self._is_ready(pod) for pod in names_of(self._pods())):
                return
            before = counts
        raise AssertionError("the HPAs do not come to rest")

    def history(self) -> Iterator[Span]:
        """Series of Prometheus for the hours before: one pod of each workload used all of its demand.

        Where pods are to be resized there were as many as now, and their memory is known.
        """
        steps = int(HISTORY / HISTORY_STEP)
        times = self.at.timestamp() - np.arange(steps, -1, -1) * HISTORY_STEP.total_seconds()
        for name, pair in self.names:
            count = self._fits(pair) if arm_of(name) == "sized" else 1
            used = self.demand[pair, self.minute - steps : self.minute + 1] / count
            pods = [ScrapedPod(f"{name}-before-{number}", f"{name}-before", 0.0) for number in range(count)]
            labelled = [*self.exporters.hpa_of(name), *_owned(name, pods[0].replicaset)]
            for pod in pods:
                (cpu, _), memory = usage_of(pod, 0.0)
                yield Span(_head(cpu), times, np.cumsum(used) * HISTORY_STEP.total_seconds())
                labelled += [*state_of_pod(pod), *([memory] if arm_of(name) == "sized" else [])]
            for labels, value in labelled:
                yield Span(_head(labels), times[::4], np.full(len(times[::4]), value))

    def _fits(self, pair: int) -> int:
        """Pods for the demand of now."""
        return max(1, int(np.ceil(round(self.demand[pair, self.minute] / (REQUEST * UTILIZATION), 6))))

    def _settled(self) -> list[Document]:
        """Wait for as many pods as are desired, and return them."""
        current: list[Document] = []

        def settled() -> bool:
            self.plane.programs.check()
            current[:] = self._pods()
            desired = {document["metadata"]["name"]: document["spec"]["replicas"] for document in self._deployments()}
            there: dict[str, int] = {}
            for pod in current:
                there[app_of(pod)] = there.get(app_of(pod), 0) + ("nodeName" in pod["spec"])
            return desired == there

        wait_until(settled, goal="the pods of all Deployments")
        return current

    def _pods(self) -> list[Document]:
        items = self.plane.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?resourceVersion=0")["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def _deployments(self) -> list[Document]:
        documents: list[Document] = self.plane.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments")["items"]
        return documents

    def _least(self) -> dict[str, int]:
        path = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
        return {hpa["metadata"]["name"]: hpa["spec"]["minReplicas"] for hpa in self.plane.api.get(path)["items"]}

    def _is_ready(self, name: str) -> bool:
        return name in self.ready

    def _start_pods(self, pods: Sequence[Document]) -> None:
        """Make pods ready that were created long enough ago."""
        for name in names_of(pods):
            if name not in self.ready and self.at - self.made[name] >= START_UP:
                self._become_ready(name)

    def _become_ready(self, name: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("Ready", "ContainersReady")
        ]
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/status"
        body = {"status": {"phase": "Running", "startTime": now, "conditions": conditions}}
        answer = self.plane.api.ask("PATCH", path, body, content_type="application/strategic-merge-patch+json")
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return  # an HPA has taken it meanwhile
        assert answer.is_success, answer.text
        self.ready.add(name)

    def _use(self, pods: Sequence[Document]) -> dict[str, float]:
        """Cores of each ready pod: they share the demand."""
        ready: dict[str, list[str]] = {}
        for pod in pods:
            if self._is_ready(pod["metadata"]["name"]):
                ready.setdefault(app_of(pod), []).append(pod["metadata"]["name"])
        now = self._now()
        usage = {
            name: {pod: now[pair] / len(ready[name]) for pod in ready[name]}
            for name, pair in self.names
            if name in ready
        }
        self.metrics.usage = usage
        return {pod: cores for shared in usage.values() for pod, cores in shared.items()}

    def _now(self) -> NDArray[np.float64]:
        """Cores [pair] of the minute that is played."""
        return self.demand[:, self.minute]

    def _scraped(self, pods: Sequence[Document], shares: dict[str, float]) -> list[ScrapedWorkload]:
        by_app: dict[str, list[ScrapedPod]] = {name: [] for name, _ in self.names}
        for pod in pods:
            name = pod["metadata"]["name"]
            owner = pod["metadata"]["ownerReferences"][0]["name"]
            scraped = ScrapedPod(name, owner, shares.get(name, 0.0), self._is_ready(name), requested_by(pod))
            by_app[app_of(pod)].append(scraped)
        return [ScrapedWorkload(name, len(scraped_pods), scraped_pods) for name, scraped_pods in by_app.items()]

    def _carried(self, arm: str, pods: Sequence[Document]) -> Carried:
        """Demand of an arm in the half-minute that was just played."""
        seconds = SCRAPE.total_seconds()
        demand = {name: self.demand[pair, self.minute] for name, pair in self.names if arm_of(name) == arm}
        own = [pod for pod in pods if app_of(pod) in demand]
        ready = Counter(app_of(pod) for pod in own if self._is_ready(pod["metadata"]["name"]))
        unserved = sum(max(0.0, cores - ready[name] * REQUEST) for name, cores in demand.items())
        return Carried(float(sum(demand.values()) * seconds), float(unserved * seconds), len(own) * seconds)


def _owned(name: str, replicaset: str) -> Iterator[tuple[Labels, float]]:
    """A Deployment of one pod."""
    owned = {"owner_kind": "Deployment", "owner_name": name, "owner_is_controller": "true", "replicaset": replicaset}
    for metric, labels in (
        ("kube_replicaset_owner", owned),
        ("kube_deployment_spec_replicas", {"deployment": name}),
        ("kube_deployment_status_replicas_ready", {"deployment": name}),
    ):
        yield (("__name__", metric), *sorted(({"namespace": NAMESPACE} | labels).items())), 1.0


def _head(labels: Labels) -> str:
    (_, name), *rest = labels
    return head(name, dict(rest))


def arm_of(name: str) -> str:
    """Arm that the workload of that name belongs to."""
    return name.partition("-")[0]


def requested_by(pod: Document) -> float:
    """Cores."""
    (container,) = pod["spec"]["containers"]
    return parse_quantity(container["resources"]["requests"]["cpu"]).milli / 1000


def app_of(pod: Document) -> str:
    """The workload of a pod."""
    return str(pod["metadata"]["labels"]["app"])


def names_of(pods: Sequence[Any]) -> list[str]:
    """Name of each pod."""
    return [str(pod["metadata"]["name"]) for pod in pods]

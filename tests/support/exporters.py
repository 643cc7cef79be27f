"""cAdvisor and kube-state-metrics of a played cluster, as a Prometheus that scrapes them would have their samples.

What was scraped last time and is not there any more gets the marker of Prometheus for that, so nothing is looked back
to; the same happens to a target that is away.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import cramjam
import httpx
import numpy as np

from forecaster.publish.remote_write import HEADERS, SeriesSample, write_request
from tests.support.prometheus import Span, head
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

NAMESPACE = "shop"
SCRAPE = timedelta(seconds=30)
(GONE,) = struct.unpack("<d", struct.pack("<Q", 0x7FF0_0000_0000_0002))
"""The value of a series that a scrape did not find again (Prometheus: model/value, StaleNaN)."""
GIB = 2.0**30
REQUEST = 0.5
"""Request in cores of a pod for which a test states no other."""


class ScrapedPod(NamedTuple):
    """One pod as its exporters see it."""

    name: str
    replicaset: str
    cores: float
    ready: bool = True
    request: float = REQUEST
    """Cores."""


class ScrapedWorkload(NamedTuple):
    """A Deployment with its pods, and its HPA on `forecaster_demand` where it has a target."""

    name: str
    replicas: int
    pods: Sequence[ScrapedPod]
    target: float = 0.0
    """Cores of a pod."""
    most: int = 0


Labels = tuple[tuple[str, str], ...]


def state_of(workload: ScrapedWorkload) -> Iterator[tuple[Labels, float]]:
    """Series of kube-state-metrics about a workload."""
    deployed = {"deployment": workload.name}
    yield _series("kube_deployment_spec_replicas", workload.replicas, **deployed)
    yield _series("kube_deployment_status_replicas_ready", sum(pod.ready for pod in workload.pods), **deployed)
    yield from _hpa_of(workload) if workload.target else ()
    for replicaset in {pod.replicaset for pod in workload.pods}:
        owned = {"owner_kind": "Deployment", "owner_name": workload.name, "owner_is_controller": "true"}
        yield _series("kube_replicaset_owner", 1, replicaset=replicaset, **owned)


def _hpa_of(workload: ScrapedWorkload) -> Iterator[tuple[Labels, float]]:
    hpa = {"horizontalpodautoscaler": workload.name}
    scales = {"scaletargetref_kind": "Deployment", "scaletargetref_name": workload.name}
    yield _series("kube_horizontalpodautoscaler_info", 1, **hpa, **scales)
    yield _series("kube_horizontalpodautoscaler_spec_min_replicas", 1, **hpa)
    yield _series("kube_horizontalpodautoscaler_spec_max_replicas", workload.most, **hpa)
    reads = {"metric_name": "forecaster_demand", "metric_target_type": "average"}
    yield _series("kube_horizontalpodautoscaler_spec_target_metric", workload.target, **hpa, **reads)


def state_of_pod(pod: ScrapedPod) -> Iterator[tuple[Labels, float]]:
    """Series of kube-state-metrics about a pod."""
    app = {"pod": pod.name, "container": "app"}
    owned = {"owner_kind": "ReplicaSet", "owner_name": pod.replicaset, "owner_is_controller": "true"}
    yield _series("kube_pod_owner", 1, pod=pod.name, **owned)
    yield _series("kube_pod_status_phase", 1, pod=pod.name, phase="Running")
    yield _series("kube_pod_status_ready", float(pod.ready), pod=pod.name, condition="true")
    yield _series("kube_pod_container_info", 1, image="app", **app)
    yield _series("kube_pod_container_resource_requests", pod.request, resource="cpu", **app)
    yield _series("kube_pod_container_resource_limits", 4 * GIB, resource="memory", **app)


def usage_of(pod: ScrapedPod, used: float) -> Iterator[tuple[Labels, float]]:
    """Series of cAdvisor about a pod that used so many core-seconds."""
    app = {"pod": pod.name, "container": "app", "id": f"/kubepods/{pod.name}/app"}
    yield _series("container_cpu_usage_seconds_total", used, **app)
    yield _series("container_memory_working_set_bytes", GIB, **app)


def _series(name: str, value: float, **labels: str) -> tuple[Labels, float]:
    return (("__name__", name), *sorted({"namespace": NAMESPACE, **labels}.items())), value


def none_of(_pod: str) -> bool:
    """All is well."""
    return False


@dataclass
class Exporters:
    """Scraped into the Prometheus at `url`."""

    url: str
    used: Counter[str] = field(default_factory=Counter)
    """Core-seconds of each pod."""
    state_away: bool = False
    unseen: Callable[[str], bool] = none_of
    """Pods whose node does not answer: cAdvisor says nothing of them."""
    unlisted: Callable[[str], bool] = none_of
    """Pods of a shard of kube-state-metrics that is away."""
    renamed: str = ""
    """A metric that has another name since an upgrade."""
    held: list[SeriesSample] | None = None
    """Samples that an agent keeps while it may not write."""
    _scraped: set[Labels] = field(default_factory=set)
    _client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=PATIENCE, headers=HEADERS))

    def close(self) -> None:
        """The connections."""
        self._client.close()

    def scrape(self, workloads: Sequence[ScrapedWorkload], at: datetime) -> None:
        """One scrape of both, after the pods used what they use until then."""
        pods = [pod for workload in workloads for pod in workload.pods]
        for pod in pods:
            self.used[pod.name] += pod.cores * SCRAPE.total_seconds()
        samples = {self._named(labels): value for labels, value in self._series_of(workloads, pods)}
        gone = dict.fromkeys(self._scraped - samples.keys(), GONE)
        self._scraped = set(samples)
        self._write([SeriesSample(labels, value, at) for labels, value in (samples | gone).items()])

    def _series_of(
        self, workloads: Sequence[ScrapedWorkload], pods: list[ScrapedPod]
    ) -> Iterator[tuple[Labels, float]]:
        for workload in workloads if not self.state_away else ():
            yield from state_of(workload)
        for pod in pods:
            if not self.state_away and not self.unlisted(pod.name):
                yield from state_of_pod(pod)
            if not self.unseen(pod.name):
                yield from usage_of(pod, self.used[pod.name])

    def _named(self, labels: Labels) -> Labels:
        (key, name), *rest = labels
        return ((key, f"{name}_v2"), *rest) if name == self.renamed else labels

    def hold_back(self) -> None:
        """Write nothing until it is written late."""
        self.held = []

    def write_late(self) -> None:
        """Write all samples that were held back, as an agent does whose way to the store was gone."""
        late, self.held = self.held or [], None
        self._write(late)

    def _write(self, samples: list[SeriesSample]) -> None:
        if self.held is not None:
            self.held += samples
            return
        packed = bytes(cramjam.snappy.compress_raw(write_request(samples)))
        self._client.post(f"{self.url}/api/v1/write", content=packed).raise_for_status()

    def history(
        self, workloads: Sequence[ScrapedWorkload], times: NDArray[np.float64], share: dict[str, NDArray[np.float64]]
    ) -> Iterator[Span]:
        """Series of these pods at earlier scrapes; `share` is the usage of each pod of a workload [time], in cores."""
        for workload in workloads:
            for labels, value in state_of(workload):
                yield _constant(labels, times[::4], value)
            for pod in workload.pods:
                for labels, value in state_of_pod(pod):
                    yield _constant(labels, times[::4], value)
                used = np.cumsum(share[workload.name]) * SCRAPE.total_seconds()
                self.used[pod.name] = float(used[-1])
                (cpu, _), (memory, amount) = usage_of(pod, 0.0)
                yield Span(_head(cpu), times, used)
                yield _constant(memory, times, amount)


def _constant(labels: Labels, times: NDArray[np.float64], value: float) -> Span:
    return Span(_head(labels), times, np.full(times.size, float(value)))


def _head(labels: Labels) -> str:
    (_, name), *rest = labels
    return head(name, dict(rest))

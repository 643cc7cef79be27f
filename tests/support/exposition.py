"""Builders of the series that cAdvisor and kube-state-metrics export, for small worlds in the real Prometheus."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tests.support.prometheus import Span, head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SCRAPES = 15
INTERVAL = 60.0


@dataclass
class World:
    """A quarter of an hour of a cluster, scraped every minute from `start` on. Every series carries its name."""

    name: str
    start: float
    spans: list[Span] = field(default_factory=list)
    interval: float = INTERVAL
    scrapes: int = SCRAPES
    away: tuple[float, float] = (0.0, 0.0)
    """Seconds after `start` between which Prometheus scrapes nothing."""

    @property
    def times(self) -> NDArray[np.float64]:
        return self.start + self.interval * np.arange(self.scrapes)

    def gauge(self, metric: str, value: float, **labels: str) -> None:
        self._add(metric, np.full(self.scrapes, float(value)), labels)

    def levels(self, metric: str, values: NDArray[np.float64], **labels: str) -> None:
        """A gauge [scrape]; NaN where it is not scraped."""
        self._add(metric, values, labels)

    def total(self, metric: str, per_second: NDArray[np.float64], **labels: str) -> None:
        """A counter that grows so much a second [scrape]; NaN where it is not scraped."""
        grown = np.nan_to_num(per_second) * self.interval
        self._add(metric, np.where(np.isnan(per_second), np.nan, np.cumsum(grown)), labels)

    def counter(self, metric: str, per_second: float, **labels: str) -> None:
        self._add(metric, per_second * self.interval * np.arange(self.scrapes), labels)

    def pod(self, namespace: str, pod: str, owner_kind: str, owner: str, *, cores: float = 1.0, **extra: str) -> None:
        """A running pod of one container `app` with its cgroup aggregate and its pause container beside it."""
        who = {"namespace": namespace, "pod": pod}
        self.owner(namespace, pod, owner_kind, owner)
        self.container(namespace, pod, "app", cores=cores, **extra)
        for container in ("", "POD"):
            self.container(namespace, pod, container, cores=cores, stated=False, **extra)
        self.gauge("kube_pod_status_phase", 1, phase="Running", **who)
        self.gauge("kube_pod_status_phase", 0, phase="Failed", **who)

    def owner(self, namespace: str, pod: str, kind: str, owner: str, **extra: str) -> None:
        controller = "true" if owner not in {"<none>", ""} else "<none>"
        self.gauge(
            "kube_pod_owner",
            1,
            namespace=namespace,
            pod=pod,
            owner_kind=kind,
            owner_name=owner,
            owner_is_controller=controller,
            **extra,
        )

    def container(
        self, namespace: str, pod: str, container: str, *, cores: float = 1.0, stated: bool = True, **extra: str
    ) -> None:
        who = {"namespace": namespace, "pod": pod, "container": container}
        usage = who | {"id": f"/kubepods/{pod}/{container}"} | extra
        self.counter("container_cpu_usage_seconds_total", cores, **usage)
        self.gauge("container_memory_working_set_bytes", cores * 1000, **usage)
        if stated:
            self.gauge("kube_pod_container_info", 1, image="app", **who)

    def replicaset(self, namespace: str, replicaset: str, kind: str, owner: str) -> None:
        controller = "true" if owner not in {"<none>", ""} else "<none>"
        self.gauge(
            "kube_replicaset_owner",
            1,
            namespace=namespace,
            replicaset=replicaset,
            owner_kind=kind,
            owner_name=owner,
            owner_is_controller=controller,
        )

    def deployment(self, namespace: str, name: str, *, replicas: int = 1, ready: int | None = None) -> None:
        self.gauge("kube_deployment_spec_replicas", replicas, namespace=namespace, deployment=name)
        known = replicas if ready is None else ready
        self.gauge("kube_deployment_status_replicas_ready", known, namespace=namespace, deployment=name)

    def deployed(self, namespace: str, name: str, *, pods: int = 1, cores: float = 1.0) -> None:
        """A Deployment with its ReplicaSet and pods of so many cores each."""
        self.deployment(namespace, name, replicas=pods)
        self.replicaset(namespace, f"{name}-5d8f", "Deployment", name)
        for index in range(pods):
            self.pod(namespace, f"{name}-5d8f-{index}", "ReplicaSet", f"{name}-5d8f", cores=cores)

    def _add(self, metric: str, values: NDArray[np.float64], labels: dict[str, str]) -> None:
        passed = self.times - self.start
        there = ((passed < self.away[0]) | (passed >= self.away[1])) & ~np.isnan(values)
        self.spans.append(Span(head(metric, {"cluster": self.name, **labels}), self.times[there], values[there]))

    def __iter__(self) -> Iterator[Span]:
        return iter(self.spans)

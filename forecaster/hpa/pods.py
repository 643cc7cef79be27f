"""Pods: which of them count, and what they request (HPA rules §6, §7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from forecaster.hpa.numbers import wrap_int64
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.samples import PodSample


class ReadyCondition(NamedTuple):
    """The Ready condition: True, False or Unknown, and since when."""

    status: str
    last_transition: datetime


@dataclass(frozen=True, slots=True)
class PodContainer:
    """A container's requests by resource name, in milli-units; `restarts_always` makes an init container a sidecar."""

    name: str
    requests_milli: Mapping[str, int] = field(default_factory=dict)
    restarts_always: bool = False


@dataclass(frozen=True, slots=True)
class HpaPod:
    """The fields of a pod that the controller reads.

    `pod_requests_milli` are the pod-level requests, None where the pod has none; `overhead_milli` is that of its
    runtime class.
    """

    name: str
    phase: str = "Running"
    deleting: bool = False
    start_time: datetime | None = None
    ready: ReadyCondition | None = None
    containers: Sequence[PodContainer] = ()
    init_containers: Sequence[PodContainer] = ()
    pod_requests_milli: Mapping[str, int] | None = None
    overhead_milli: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether a ReplicaSet counts it in `status.replicas`: it has not ended and is not being deleted."""
        return not self.deleting and self.phase not in {"Failed", "Succeeded"}


class Groups(NamedTuple):
    """The four groups of §6: the number that counts, and the names of the rest."""

    ready: int
    unready: list[str]
    missing: list[str]
    ignored: list[str]


def group_pods(
    pods: Iterable[HpaPod],
    samples: Mapping[str, PodSample],
    resource: str,
    now: datetime,
    cpu_initialization_period: timedelta,
    initial_readiness_delay: timedelta,
) -> Groups:
    """HPA rules §6: the first test that hits decides; missing is tested before readiness.

    `resource` is empty for metrics that have no readiness rule of their own.
    """
    ready, unready, missing, ignored = 0, [], [], []
    looks_at_readiness = resource == "cpu"
    for pod in pods:
        if pod.deleting or pod.phase == "Failed":
            ignored.append(pod.name)
        elif pod.phase == "Pending":
            unready.append(pod.name)
        elif (sample := samples.get(pod.name)) is None:
            missing.append(pod.name)
        elif looks_at_readiness and _warming_up(pod, sample, now, cpu_initialization_period, initial_readiness_delay):
            unready.append(pod.name)
        else:
            ready += 1
    return Groups(ready, unready, missing, ignored)


def running_and_ready(pods: Iterable[HpaPod]) -> int:
    """HPA rules §8.3: the pods that are Running and Ready; deletion and the rules of §6 are not looked at."""
    return sum(1 for pod in pods if pod.phase == "Running" and pod.ready is not None and pod.ready.status == "True")


def _warming_up(
    pod: HpaPod,
    sample: PodSample,
    now: datetime,
    cpu_initialization_period: timedelta,
    initial_readiness_delay: timedelta,
) -> bool:
    """HPA rules §6, test 4: whether a cpu sample of this pod would show its start-up instead of its load."""
    if pod.ready is None or pod.start_time is None:
        return True
    status, last_transition = pod.ready
    if now - pod.start_time < cpu_initialization_period:
        return status == "False" or sample.timestamp - last_transition < sample.window
    return status == "False" and last_transition - pod.start_time < initial_readiness_delay


def requests_by_pod(
    pods: Iterable[HpaPod], resource: str, container: str = "", *, pod_level_resources: bool = True
) -> dict[str, int] | Unmeasured:
    """HPA rules §7: each pod's request in milli-units, ignored pods included; one pod without it fails the metric."""
    requests = {}
    for pod in pods:
        request = pod_request(pod, resource, container, pod_level_resources=pod_level_resources)
        if isinstance(request, Unmeasured):
            return request
        requests[pod.name] = request
    return requests


def pod_request(
    pod: HpaPod, resource: str, container: str = "", *, pod_level_resources: bool = True
) -> int | Unmeasured:
    """HPA rules §7: a named container's request, else the pod-level one, else the sum over long-running containers."""
    if container:
        return _container_request(pod, resource, container)
    if pod_level_resources and any(map(is_pod_level_resource, pod.pod_requests_milli or ())):
        return _pod_level_request(pod, resource)
    total = 0
    for each in _long_running(pod):
        request = each.requests_milli.get(resource)
        if request is None:
            return _missing(resource, each, pod)
        total += request
    return wrap_int64(total)


def _container_request(pod: HpaPod, resource: str, name: str) -> int | Unmeasured:
    for container in _long_running(pod):
        if container.name == name:
            request = container.requests_milli.get(resource)
            return _missing(resource, container, pod) if request is None else request
    return Unmeasured("container_not_found", f"container {name} not found in Pod {pod.name}")


def _pod_level_request(pod: HpaPod, resource: str) -> int | Unmeasured:
    """The pod-level request or, where it lacks this resource, what the containers need; the overhead on top."""
    stated = pod.pod_requests_milli or {}
    request = stated.get(resource) if is_pod_level_resource(resource) else None
    if request is None:
        request = _aggregated_request(pod, resource)
    overhead = pod.overhead_milli.get(resource)
    if request is None and overhead is None:
        return Unmeasured("missing_request", f"missing pod-level request for {resource} in Pod {pod.name}")
    return wrap_int64((request or 0) + (overhead or 0))


def _aggregated_request(pod: HpaPod, resource: str) -> int | None:
    """The larger of the running containers' sum and the peak while init containers run; None where none is stated."""
    running = [c.requests_milli[resource] for c in _long_running(pod) if resource in c.requests_milli]
    peak: int | None = None
    sidecars = 0
    for container in pod.init_containers:
        own = container.requests_milli.get(resource, 0)
        need = sidecars + own
        if container.restarts_always:
            sidecars = need
        if resource in container.requests_milli or sidecars:
            peak = max(peak or 0, need)
    if not running and peak is None:
        return None
    return max(sum(running), peak or 0)


def is_pod_level_resource(resource: str) -> bool:
    """Whether a pod-level request can name this resource: cpu, memory, or a size of hugepages."""
    return resource in {"cpu", "memory"} or resource.startswith("hugepages-")


def _long_running(pod: HpaPod) -> Iterable[PodContainer]:
    """Containers that run as long as the pod: app containers, then init containers that restart always."""
    if not pod.init_containers:
        return pod.containers
    return [*pod.containers, *(c for c in pod.init_containers if c.restarts_always)]


def _missing(resource: str, container: PodContainer, pod: HpaPod) -> Unmeasured:
    return Unmeasured(
        "missing_request", f"missing request for {resource} in container {container.name} of Pod {pod.name}"
    )

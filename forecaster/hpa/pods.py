"""Pods, and which of them count (HPA rules §6)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from forecaster.hpa.samples import Sample


class ReadyCondition(NamedTuple):
    """The Ready condition: True, False or Unknown, and since when."""

    status: str
    last_transition: datetime


@dataclass(frozen=True, slots=True)
class Container:
    """A container's requests by resource name, in milli-units; `restarts_always` makes an init container a sidecar."""

    name: str
    requests_milli: Mapping[str, int] = field(default_factory=dict)
    restarts_always: bool = False


@dataclass(frozen=True, slots=True)
class Pod:
    """What the controller looks at in a pod.

    `pod_requests_milli` are the pod-level requests, None where the pod has none; `overhead_milli` is that of its
    runtime class.
    """

    name: str
    phase: str = "Running"
    deleting: bool = False
    start_time: datetime | None = None
    ready: ReadyCondition | None = None
    containers: Sequence[Container] = ()
    init_containers: Sequence[Container] = ()
    pod_requests_milli: Mapping[str, int] | None = None
    overhead_milli: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


class Groups(NamedTuple):
    """The four groups of §6: the number that counts, and the names of the rest."""

    ready: int
    unready: list[str]
    missing: list[str]
    ignored: list[str]


def group_pods(
    pods: Iterable[Pod],
    samples: Mapping[str, Sample],
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


def running_and_ready(pods: Iterable[Pod]) -> int:
    """HPA rules §8.3: the pods that are Running and Ready; deletion and the rules of §6 are not looked at."""
    return sum(1 for pod in pods if pod.phase == "Running" and pod.ready is not None and pod.ready.status == "True")


def _warming_up(
    pod: Pod, sample: Sample, now: datetime, cpu_initialization_period: timedelta, initial_readiness_delay: timedelta
) -> bool:
    """HPA rules §6, test 4: whether a cpu sample of this pod would tell of its start-up instead of its load."""
    if pod.ready is None or pod.start_time is None:
        return True
    status, last_transition = pod.ready
    if now - pod.start_time < cpu_initialization_period:
        return status == "False" or sample.timestamp - last_transition < sample.window
    return status == "False" and last_transition - pod.start_time < initial_readiness_delay

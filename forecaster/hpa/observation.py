"""Observation of the cluster by one pass of the controller (HPA rules §3, §5): real, or made of totals.

`observe_totals` assumes pods that are alike, with a load spread evenly over the ready ones, for questions such as "what
would this HPA do with 12 pods and 5.2 cores?". Requests and totals come from the caller, and a metric without a total
has no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from forecaster.hpa.pods import HpaPod, PodContainer, ReadyCondition, pod_request
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.samples import Answer, ExternalValues, ObjectMetric, PodSample, SampledPods
from forecaster.hpa.selectors import Selector
from forecaster.hpa.spec import HpaSpec, MetricSpec

WRITE_ATTEMPTS = 5


class ScaleSubresource(NamedTuple):
    """The scale subresource of the target: replicas wanted and replicas there, and the pods' selector as text."""

    spec_replicas: int
    status_replicas: int
    selector: str


class ScaleUnread(NamedTuple):
    """The scale subresource could not be read, and why."""

    message: str


class Observation(NamedTuple):
    """One observation of the cluster.

    `pods` are those of the namespace; the scale's selector picks among them. `answers` belong to the metrics of the
    spec, in order. `other_selectors` are those of the other HPAs in the namespace. The last two fields say how a write
    would fare.
    """

    scale: ScaleSubresource | ScaleUnread
    pods: Sequence[HpaPod]
    answers: Sequence[Answer]
    other_selectors: Sequence[Selector] = ()
    write_conflicts: int = 0
    write_refused: bool = False

    @property
    def write_fails(self) -> bool:
        """HPA rules §3, step 10: a conflict is tried again, five times in all."""
        return self.write_refused or self.write_conflicts >= WRITE_ATTEMPTS


POD_LABELS = {"pod": "alike"}
SELECTOR = "pod=alike"
MAX_PODS = 150_000
"""Pods that the largest clusters have: a Deployment may ask for 2^31."""
_LONG_AGO = timedelta(days=1)


def observe_totals(
    spec: HpaSpec,
    replicas: int,
    totals_milli: Mapping[str, int],
    requests_milli: Mapping[str, int],
    now: datetime,
    *,
    ready: int | None = None,
) -> Observation:
    """The observation of `ready` pods (default: `replicas`) under totals by metric name, in milli-units.

    The pods that lack are starting. `requests_milli` are one pod's requests by resource; a container that the spec
    names holds all of them.
    """
    ready = min(replicas, MAX_PODS) if ready is None else ready
    names = [f"pod-{number}" for number in range(max(ready, min(replicas, MAX_PODS)))]
    answers = [_answer(metric, totals_milli.get(metric.name), names[:ready], now) for metric in spec.metrics]
    pods = [_pod(name, spec, requests_milli, now) for name in names]
    pods[ready:] = [replace(pod, phase="Pending") for pod in pods[ready:]]
    return Observation(ScaleSubresource(replicas, len(names), SELECTOR), pods, answers)


def total_of(answer: Answer) -> int | None:
    """The sum behind an answer in milli-units, None where there is none."""
    match answer:
        case SampledPods(samples):
            return sum(sample.value_milli for sample in samples.values())
        case ObjectMetric(value):
            return value
        case ExternalValues(values):
            return sum(values)
        case Unmeasured():
            return None


def totals_of(spec: HpaSpec, observation: Observation) -> dict[str, int]:
    """The totals in milli-units by metric name; a metric without an answer is left out."""
    totals = zip(spec.metrics, map(total_of, observation.answers), strict=True)
    return {metric.name: total for metric, total in totals if total is not None}


def requests_of(observation: Observation) -> dict[str, int]:
    """The first pod's requests by resource in milli-units, without those that one of its containers lacks."""
    if not observation.pods:
        return {}
    pod = observation.pods[0]
    named = {resource for container in pod.containers for resource in container.requests_milli}
    requests = {resource: pod_request(pod, resource) for resource in sorted(named)}
    return {resource: request for resource, request in requests.items() if isinstance(request, int)}


def _pod(name: str, spec: HpaSpec, requests_milli: Mapping[str, int], now: datetime) -> HpaPod:
    container = next((metric.container for metric in spec.metrics if metric.container), "app")
    ready = ReadyCondition("True", now - _LONG_AGO)
    return HpaPod(
        name,
        start_time=now - _LONG_AGO,
        ready=ready,
        containers=(PodContainer(container, requests_milli),),
        labels=POD_LABELS,
    )


def _answer(metric: MetricSpec, total: int | None, pods: list[str], now: datetime) -> Answer:
    if total is None:
        return Unmeasured("no_samples", f"no total is given for {metric.source} metric {metric.name}")
    if metric.source == "Object":
        return ObjectMetric(total)
    if metric.source == "External":
        return ExternalValues((total,))
    if not pods:
        return Unmeasured("no_samples", "there are no pods to measure")
    return SampledPods({pod: PodSample(value, now) for pod, value in zip(pods, _shares(total, len(pods)), strict=True)})


def _shares(total: int, parts: int) -> list[int]:
    """Whole shares of a total that differ by one at most and sum to it."""
    share, rest = divmod(total, parts)
    return [share + 1] * rest + [share] * (parts - rest)

"""One metric of the spec to one proposal (HPA rules §4): which formula, which pods, which order of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from forecaster.hpa.numbers import truncated_quotient, wrap_int64
from forecaster.hpa.pods import Groups, HpaPod, group_pods, requests_by_pod, running_and_ready
from forecaster.hpa.proposals import (
    MetricProposal,
    Share,
    Tolerance,
    Unmeasured,
    from_average,
    from_total,
    from_utilization,
    per_pod_value,
)
from forecaster.hpa.samples import (
    Answer,
    ExternalValues,
    ObjectMetric,
    PodSample,
    SampledPods,
    external_shared_total,
    external_total,
)
from forecaster.hpa.spec import Controller, MetricSpec

_USAGE = "an average utilization target nor an average value (usage) target"
_AMOUNT = "a value target nor an average value target"
_SOURCES: Mapping[str, tuple[type[NamedTuple], str]] = {
    "Resource": (SampledPods, _USAGE),
    "ContainerResource": (SampledPods, _USAGE),
    "Pods": (SampledPods, "an average value target"),
    "Object": (ObjectMetric, _AMOUNT),
    "External": (ExternalValues, _AMOUNT),
}
"""Type of the answer for each source, and the targets of which it needs one."""
NO_PODS = Unmeasured("no_pods", "no pods returned by selector while calculating replica count")
NO_SAMPLES_LEFT = Unmeasured("no_samples_left", "did not receive metrics for targeted pods (pods might be unready)")


class MetricContext(NamedTuple):
    """Facts shared by all metrics of a pass: sizes, matched pods, tolerance, time, and the controller's settings."""

    current: int
    status_replicas: int
    pods: Sequence[HpaPod]
    tolerance: Tolerance
    now: datetime
    controller: Controller


def evaluate(  # noqa: PLR0911 - a row of §4 each
    metric: MetricSpec, answer: Answer, situation: MetricContext
) -> MetricProposal | Unmeasured:
    """HPA rules §4: the proposal of one metric, or why it has none."""
    if metric.source not in _SOURCES:
        return Unmeasured("invalid_source", f'unknown metric source type "{metric.source}"')
    target, status_replicas, tolerance = metric.target, situation.status_replicas, situation.tolerance
    average, value, percent = target.average_value_milli, target.value_milli, target.average_utilization_percent
    match metric.source, answer:
        case _, Unmeasured() as unmeasured:
            return unmeasured
        case "Resource" | "ContainerResource", SampledPods() as sampled if average is not None:
            return _plain_average(sampled, metric.name, average, situation)
        case "Resource" | "ContainerResource", SampledPods() as sampled if percent is not None:
            return _utilization(sampled, metric, percent, situation)
        case "Pods", SampledPods() as sampled if average is not None:
            return _plain_average(sampled, "", average, situation)
        case "Object", ObjectMetric(usage) if target.type == "Value" and value is not None:
            return _total(usage, value, situation)
        case "Object", ObjectMetric(usage) if target.type == "AverageValue" and average is not None:
            return per_pod_value(usage, average, status_replicas, tolerance)
        case "External", ExternalValues(values) if average is not None:
            shared = external_shared_total(values)
            return per_pod_value(shared, average, status_replicas, tolerance, keep_overflow=True)
        case "External", ExternalValues(values) if value is not None:
            return _total(external_total(values), value, situation)
    return _refused(metric, answer)


def _refused(metric: MetricSpec, answer: Answer) -> Unmeasured:
    """Say why source, target and answer do not fit together."""
    kind, targets = _SOURCES[metric.source]
    if not isinstance(answer, kind):
        message = f"the answer for {metric.source} metric {metric.name} is of another kind of metric"
        return Unmeasured("api_failed", message)
    return Unmeasured("invalid_target", f"invalid {metric.source} metric source: neither {targets} was set")


def _utilization(
    answer: SampledPods, metric: MetricSpec, target_percent: int, situation: MetricContext
) -> MetricProposal | Unmeasured:
    """HPA rules §8.1 over pods. Errors in order: pods, samples, requests."""
    counted = _counted_samples(answer, metric.name, situation)
    if isinstance(counted, Unmeasured):
        return counted
    groups, samples = counted
    gates = situation.controller.gates
    requests = requests_by_pod(
        situation.pods, metric.name, metric.container, pod_level_resources=gates.pod_level_resources
    )
    if isinstance(requests, Unmeasured):
        return requests
    measured = requested_usage(samples, requests)
    return from_utilization(
        measured.usage_milli,
        measured.request_milli,
        target_percent,
        groups.ready,
        situation.current,
        situation.tolerance,
        samples=len(samples),
        missing=missing_share(groups.missing, requests, target_percent),
        unready=unready_share(groups.unready, requests),
    )


def _plain_average(
    answer: SampledPods, resource: str, target_milli: int, situation: MetricContext
) -> MetricProposal | Unmeasured:
    """HPA rules §8.2 over pods."""
    counted = _counted_samples(answer, resource, situation)
    if isinstance(counted, Unmeasured):
        return counted
    groups, samples = counted
    return from_average(
        total_usage(samples),
        len(samples),
        target_milli,
        groups.ready,
        situation.current,
        situation.tolerance,
        missing=len(groups.missing),
        unready=len(groups.unready),
    )


def _counted_samples(
    answer: SampledPods, resource: str, situation: MetricContext
) -> tuple[Groups, Mapping[str, PodSample]] | Unmeasured:
    """HPA rules §6: the groups, and the samples that are left."""
    if not situation.pods:
        return NO_PODS
    controller = situation.controller
    groups = group_pods(
        situation.pods,
        answer.samples,
        resource,
        situation.now,
        controller.cpu_initialization_period,
        controller.initial_readiness_delay,
    )
    samples = remaining_samples(answer.samples, groups)
    return (groups, samples) if samples else NO_SAMPLES_LEFT


def _total(usage_milli: int, target_milli: int, situation: MetricContext) -> MetricProposal | Unmeasured:
    """HPA rules §8.3 over pods; they are needed only outside the tolerance and above zero replicas."""
    ready = running_and_ready(situation.pods) if situation.current else 0
    proposal = from_total(usage_milli, target_milli, ready, situation.current, situation.tolerance)
    if situation.current and proposal.hold is None and not situation.pods:
        return NO_PODS
    return proposal


class RequestedUsage(NamedTuple):
    """HPA rules §8.1: sums over the samples of pods that have a request, and how many those are: the ready pods."""

    usage_milli: int
    request_milli: int
    samples: int


def remaining_samples(samples: Mapping[str, PodSample], groups: Groups) -> Mapping[str, PodSample]:
    """HPA rules §6: remove the samples of ignored and unready pods; those of unknown pods stay."""
    if not groups.ignored and not groups.unready:
        return samples
    dropped = {*groups.ignored, *groups.unready}
    return {pod: sample for pod, sample in samples.items() if pod not in dropped}


def requested_usage(samples: Mapping[str, PodSample], requests_milli: Mapping[str, int]) -> RequestedUsage:
    """HPA rules §8.1: the sums that utilisation is made of; samples of unknown pods are skipped."""
    usage = request = count = 0
    for pod, sample in samples.items():
        own = requests_milli.get(pod)
        if own is not None:
            usage += sample.value_milli
            request += own
            count += 1
    return RequestedUsage(wrap_int64(usage), wrap_int64(request), count)


def total_usage(samples: Mapping[str, PodSample]) -> int:
    """HPA rules §8.2: sum all samples, those of unknown pods included."""
    return wrap_int64(sum([sample.value_milli for sample in samples.values()]))


def missing_share(missing: list[str], requests_milli: Mapping[str, int], target_percent: int) -> Share:
    """HPA rules §8.1: under low load a missing pod uses its whole request, or the target where that is more."""
    percent = max(100, target_percent)
    requests = [requests_milli[pod] for pod in missing]
    fills = [truncated_quotient(wrap_int64(request * percent), 100) for request in requests]
    return Share(len(missing), sum(requests), sum(fills))


def unready_share(unready: list[str], requests_milli: Mapping[str, int]) -> Share:
    """HPA rules §8.1: an unready pod counts with no usage, and only under high load."""
    return Share(len(unready), sum([requests_milli[pod] for pod in unready]))

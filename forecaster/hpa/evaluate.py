"""One metric of the spec to one proposal (HPA rules §4): which formula, which pods, which order of errors."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from forecaster.hpa.controller import Controller
from forecaster.hpa.pods import Groups, Pod, group_pods, running_and_ready
from forecaster.hpa.proposals import Proposal, from_average, from_total, from_utilization, per_pod_value
from forecaster.hpa.requests import requests_by_pod
from forecaster.hpa.samples import (
    Answer,
    ExternalValues,
    ObjectValue,
    PodSamples,
    Sample,
    external_shared_total,
    external_total,
)
from forecaster.hpa.spec import MetricSpec
from forecaster.hpa.tolerance import Tolerance
from forecaster.hpa.unmeasured import Unmeasured
from forecaster.hpa.usage import missing_share, remaining_samples, requested_usage, total_usage, unready_share

SOURCES = frozenset({"Resource", "ContainerResource", "Pods", "Object", "External"})
NO_PODS = Unmeasured("no_pods", "no pods returned by selector while calculating replica count")
NO_SAMPLES_LEFT = Unmeasured("no_samples_left", "did not receive metrics for targeted pods (pods might be unready)")


class Situation(NamedTuple):
    """What all metrics of a pass share: sizes, matched pods, tolerance, time, and the controller's settings."""

    current: int
    status_replicas: int
    pods: Sequence[Pod]
    tolerance: Tolerance
    now: datetime
    controller: Controller


def evaluate(metric: MetricSpec, answer: Answer, situation: Situation) -> Proposal | Unmeasured:
    """HPA rules §4: the proposal of one metric, or why it has none."""
    if metric.source not in SOURCES:
        return Unmeasured("invalid_source", f'unknown metric source type "{metric.source}"')
    if isinstance(answer, Unmeasured):
        return answer
    if metric.source == "Pods":
        return _from_pods(metric, answer, situation)
    if metric.source == "Object":
        return _from_object(metric, answer, situation)
    if metric.source == "External":
        return _from_external(metric, answer, situation)
    return _from_resource(metric, answer, situation)


def _from_resource(metric: MetricSpec, answer: Answer, situation: Situation) -> Proposal | Unmeasured:
    if not isinstance(answer, PodSamples):
        return _wrong_answer(metric)
    if metric.target.average_value_milli is not None:
        return _plain_average(answer, metric.name, metric.target.average_value_milli, situation)
    if metric.target.average_utilization_percent is not None:
        return _utilization(answer, metric, metric.target.average_utilization_percent, situation)
    return _no_target(metric, "an average utilization target nor an average value (usage) target")


def _from_pods(metric: MetricSpec, answer: Answer, situation: Situation) -> Proposal | Unmeasured:
    if not isinstance(answer, PodSamples):
        return _wrong_answer(metric)
    if metric.target.average_value_milli is None:
        return _no_target(metric, "an average value target")
    return _plain_average(answer, "", metric.target.average_value_milli, situation)


def _from_object(metric: MetricSpec, answer: Answer, situation: Situation) -> Proposal | Unmeasured:
    if not isinstance(answer, ObjectValue):
        return _wrong_answer(metric)
    target = metric.target
    if target.type == "Value" and target.value_milli is not None:
        return _total(answer.value_milli, target.value_milli, situation)
    if target.type == "AverageValue" and target.average_value_milli is not None:
        return per_pod_value(
            answer.value_milli, target.average_value_milli, situation.status_replicas, situation.tolerance
        )
    return _no_target(metric, "a value target nor an average value target")


def _from_external(metric: MetricSpec, answer: Answer, situation: Situation) -> Proposal | Unmeasured:
    if not isinstance(answer, ExternalValues):
        return _wrong_answer(metric)
    target = metric.target
    if target.average_value_milli is not None:
        total = external_shared_total(answer.values_milli)
        return per_pod_value(
            total, target.average_value_milli, situation.status_replicas, situation.tolerance, keep_overflow=True
        )
    if target.value_milli is not None:
        return _total(external_total(answer.values_milli), target.value_milli, situation)
    return _no_target(metric, "a value target nor an average value target")


def _utilization(
    answer: PodSamples, metric: MetricSpec, target_percent: int, situation: Situation
) -> Proposal | Unmeasured:
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


def _plain_average(answer: PodSamples, resource: str, target_milli: int, situation: Situation) -> Proposal | Unmeasured:
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
    answer: PodSamples, resource: str, situation: Situation
) -> tuple[Groups, Mapping[str, Sample]] | Unmeasured:
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


def _total(usage_milli: int, target_milli: int, situation: Situation) -> Proposal | Unmeasured:
    """HPA rules §8.3 over pods; they are needed only outside the tolerance and above zero replicas."""
    ready = running_and_ready(situation.pods) if situation.current else 0
    proposal = from_total(usage_milli, target_milli, ready, situation.current, situation.tolerance)
    if situation.current and proposal.hold is None and not situation.pods:
        return NO_PODS
    return proposal


def _no_target(metric: MetricSpec, targets: str) -> Unmeasured:
    return Unmeasured("invalid_target", f"invalid {metric.source} metric source: neither {targets} was set")


def _wrong_answer(metric: MetricSpec) -> Unmeasured:
    return Unmeasured("api_failed", f"the answer for {metric.source} metric {metric.name} is of another kind of metric")

"""Reasons, messages, events and status numbers as the controller words them (HPA rules §3, §12)."""

from __future__ import annotations

from typing import Literal, NamedTuple

from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.spec import MetricSpec
from forecaster.hpa.state import Clamp, HpaCondition, Stabilization

Action = Literal["scale_up", "scale_down", "none"]
ErrorKind = Literal["spec", "internal", "none"]


class HpaEvent(NamedTuple):
    """An event that the controller sends about the HPA."""

    reason: str
    message: str


GET_SCALE_SUCCEEDED = HpaCondition(
    "AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale"
)
SCALING_DISABLED = HpaCondition(
    "ScalingActive", "False", "ScalingDisabled", "scaling is disabled since the replica count of the target is zero"
)
SCALED_TO_ZERO = HpaCondition("ScaledToZero", "True", "ScaledToZero", "the HPA controller scaled the workload to zero")
NOT_SCALED_TO_ZERO = HpaCondition(
    "ScaledToZero", "False", "NotScaledToZero", "the HPA controller did not scale the workload to zero"
)

_STABILIZED: dict[Stabilization, str] = {
    "ReadyForNewScale": "recommended size matches current size",
    "ScaleUpStabilized": (
        "recent recommendations were lower than current one, applying the lowest recent recommendation"
    ),
    "ScaleDownStabilized": (
        "recent recommendations were higher than current one, applying the highest recent recommendation"
    ),
}
STABILIZATION = {
    reason: HpaCondition("AbleToScale", "True", reason, message) for reason, message in _STABILIZED.items()
}
_LIMITED: dict[Clamp, str] = {
    "TooFewReplicas": "the desired replica count is less than the minimum replica count",
    "TooManyReplicas": "the desired replica count is more than the maximum replica count",
    "ScaleUpLimit": "the desired replica count is increasing faster than the maximum scale rate",
    "ScaleDownLimit": "the desired replica count is decreasing faster than the maximum scale rate",
}
CLAMP: dict[Clamp, HpaCondition] = {
    "DesiredWithinRange": HpaCondition(
        "ScalingLimited", "False", "DesiredWithinRange", "the desired count is within the acceptable range"
    ),
    **{reason: HpaCondition("ScalingLimited", "True", reason, message) for reason, message in _LIMITED.items()},
}


def scale_unread(message: str) -> HpaCondition:
    """HPA rules §3, steps 1 and 2."""
    text = f"the HPA controller was unable to get the target's current scale: {message}"
    return HpaCondition("AbleToScale", "False", "FailedGetScale", text)


def write_failed(message: str) -> HpaCondition:
    """HPA rules §3, step 10."""
    text = f"the HPA controller was unable to update the target scale: {message}"
    return HpaCondition("AbleToScale", "False", "FailedUpdateScale", text)


def write_succeeded(replicas: int) -> HpaCondition:
    """HPA rules §3, step 10."""
    text = f"the HPA controller was able to update the target scale to {replicas}"
    return HpaCondition("AbleToScale", "True", "SucceededRescale", text)


def metric_found(metric: MetricSpec) -> HpaCondition:
    """HPA rules §9: a recommendation exists, credited to this metric."""
    text = f"the HPA was able to successfully calculate a replica count from {metric_name(metric)}"
    return HpaCondition("ScalingActive", "True", "ValidMetricFound", text)


def metric_failed(metric: MetricSpec, why: Unmeasured) -> HpaCondition:
    """HPA rules §4, §9: the condition of the first failing metric."""
    text = f"the HPA was unable to compute the replica count: {why.message}"
    return HpaCondition("ScalingActive", "False", failure_reason(metric, why), text)


def failure_reason(metric: MetricSpec, why: Unmeasured) -> str:
    """HPA rules §4: the reason that belongs to the source, also sent as an event."""
    if why.cause == "invalid_source":
        return "InvalidMetricSourceType"
    return f"FailedGet{metric.source}Metric"


def metric_name(metric: MetricSpec) -> str:
    """The metric as the controller names it in messages."""
    match metric.source:
        case "Resource" | "ContainerResource" if metric.target.average_value_milli is not None:
            return f"{metric.name} resource"
        case "Resource":
            return f"{metric.name} resource utilization (percentage of request)"
        case "ContainerResource":
            return f"{metric.name} container resource utilization (percentage of request)"
        case "Pods":
            return f"pods metric {metric.name}"
        case "Object" if metric.described_object and metric.target.type == "Value":
            return f"{metric.described_object.kind} metric {metric.name}"
        case _:
            return f"external metric {metric.name}({metric.selector or 'nil'})"


def action(new: int, old: int) -> Action:
    """HPA rules §12: the label `action` of the controller's own metrics."""
    if new > old:
        return "scale_up"
    return "scale_down" if new < old else "none"

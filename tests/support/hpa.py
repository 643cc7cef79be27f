"""Values with good defaults for stories about an HPA: time is seconds around NOW."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from forecaster.hpa.behavior import (
    Behavior,
    PastRecommendation,
    PolicyType,
    ScaleEvent,
    ScalingPolicy,
    ScalingRules,
    SelectPolicy,
)
from forecaster.hpa.observation import Observation, ScaleSubresource
from forecaster.hpa.pods import HpaPod, PodContainer, ReadyCondition
from forecaster.hpa.samples import Answer, ExternalValues
from forecaster.hpa.spec import CrossVersionObjectReference, HpaMetricTarget, HpaSpec, MetricSpec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = CrossVersionObjectReference("Deployment", "shop", "apps/v1")
CPU = MetricSpec("Resource", "cpu", HpaMetricTarget("Utilization", average_utilization_percent=50))
QUEUE = MetricSpec("External", "queue", HpaMetricTarget("AverageValue", average_value_milli=30_000))


def seconds(amount: float) -> timedelta:
    return timedelta(seconds=amount)


def ago(amount: float) -> datetime:
    return NOW - seconds(amount)


def past(replicas: int, age_s: float) -> PastRecommendation:
    return PastRecommendation(replicas, ago(age_s))


def moved(change: int, age_s: float, *, outdated: bool = False) -> ScaleEvent:
    return ScaleEvent(change, ago(age_s), outdated)


def policy(kind: PolicyType, value: int, period_s: float = 60) -> ScalingPolicy:
    return ScalingPolicy(kind, value, seconds(period_s))


def rules(*policies: ScalingPolicy, window_s: float | None = None, select: SelectPolicy = "Max") -> ScalingRules:
    return ScalingRules(policies, None if window_s is None else seconds(window_s), select)


def both(up: ScalingRules | None = None, down: ScalingRules | None = None) -> Behavior:
    return Behavior(
        up or rules(policy("Pods", 4, 15), policy("Percent", 100, 15), window_s=0),
        down or rules(policy("Percent", 100, 15)),
    )


def hpa(*metrics: MetricSpec, low: int | None = 1, high: int = 100, behavior: Behavior | None = None) -> HpaSpec:
    return HpaSpec(TARGET, high, metrics or (QUEUE,), low, behavior, "shop", "web")


def pod(name: str = "p0", **fields: object) -> HpaPod:
    given: dict[str, object] = {
        "start_time": ago(86_400),
        "ready": ReadyCondition("True", ago(86_000)),
        "containers": (PodContainer("app", {"cpu": 1000}),),
        "labels": {"app": "shop"},
    }
    return HpaPod(name, **(given | fields))  # type: ignore[arg-type]


def look(replicas: int, *answers: Answer, status: int | None = None, **fields: object) -> Observation:
    scale = ScaleSubresource(replicas, replicas if status is None else status, "app=shop")
    pods = [pod(f"p{number}") for number in range(replicas)]
    given: dict[str, object] = {"scale": scale, "pods": pods, "answers": answers}
    return Observation(**(given | fields))  # type: ignore[arg-type]


def queue_of(value: float) -> ExternalValues:
    return ExternalValues((round(value * 1000),))

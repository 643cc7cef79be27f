"""Clusters, HPAs and loads to try the properties of forecaster.hpa on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import strategies as st

from forecaster.hpa.behavior import (
    Behavior,
    PastRecommendation,
    PastRecommendations,
    ScaleEvent,
    ScaleEvents,
    ScalingPolicy,
    ScalingRules,
)
from forecaster.hpa.observation import Observation, ScaleSubresource, ScaleUnread
from forecaster.hpa.pods import HpaPod, PodContainer, ReadyCondition
from forecaster.hpa.proposals import Tolerance, Unmeasured
from forecaster.hpa.samples import Answer, ExternalValues, ObjectMetric, PodSample, SampledPods
from forecaster.hpa.spec import (
    Controller,
    CrossVersionObjectReference,
    FeatureGates,
    HpaMetricTarget,
    HpaSpec,
    MetricSpec,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PODS = tuple(f"p{number}" for number in range(8))
LABELS = {"app": "a"}

seconds = st.integers(0, 3600).map(lambda s: timedelta(seconds=s))
tolerance_ratios = st.integers(0, 900).map(lambda milli: milli * 0.001)
tolerances = st.builds(Tolerance, tolerance_ratios, tolerance_ratios)
replicas = st.integers(1, 2000)
loads = st.integers(0, 10**12)
targets = st.integers(1, 10**9)

policies = st.builds(
    ScalingPolicy,
    st.sampled_from(["Pods", "Percent"]),
    st.integers(1, 1000),
    st.integers(1, 1800).map(lambda s: timedelta(seconds=s)),
)


def some_rules(seed: int) -> ScalingRules:
    """One direction of `behavior` with up to three policies; from a seed, to draw one number."""
    random = Random(seed)  # noqa: S311 - rules, not a secret
    period = random.choice([15, 60, 1800])
    return ScalingRules(
        policies=tuple(
            ScalingPolicy(
                random.choice(["Pods", "Percent"]),
                random.choice([1, 10, 100, random.randint(1, 1000)]),
                timedelta(seconds=random.randint(1, period)),
            )
            for _ in range(random.randint(1, 3))
        ),
        stabilization_window=random.choice([None, timedelta(), timedelta(seconds=random.randint(0, 3600))]),
        select_policy=random.choice(["Max", "Min", "Disabled"]),
        tolerance=random.choice([None, random.randint(0, 900) * 0.001]),
    )


seeds = st.integers(0, 2**32 - 1)
rules = seeds.map(some_rules)
behaviors = st.none() | st.builds(Behavior, rules, rules)


def some_history(seed: int) -> PastRecommendations:
    """Up to twelve recommendations of the last hour, in the order of their slots; from a seed, to draw one number."""
    random = Random(seed)  # noqa: S311 - a history, not a secret
    return tuple(
        PastRecommendation(random.randint(0, 2000), NOW - timedelta(seconds=random.randint(0, 3600)))
        for _ in range(random.randint(0, 12))
    )


def some_events(seed: int) -> ScaleEvents:
    """Up to six scale events of the last hour, some flagged; from a seed, to draw one number."""
    random = Random(seed)  # noqa: S311 - as above
    return tuple(
        ScaleEvent(random.randint(1, 200), NOW - timedelta(seconds=random.randint(0, 3600)), random.random() < 0.3)
        for _ in range(random.randint(0, 6))
    )


histories = seeds.map(some_history)
events = seeds.map(some_events)

resource_metrics = st.builds(
    MetricSpec,
    st.sampled_from(["Resource", "ContainerResource"]),
    st.sampled_from(["cpu", "memory"]),
    st.builds(HpaMetricTarget, st.just("Utilization"), st.integers(1, 300))
    | st.builds(HpaMetricTarget, st.just("AverageValue"), average_value_milli=targets),
    st.just("app"),
)
pods_metrics = st.builds(
    MetricSpec,
    st.just("Pods"),
    st.just("qps"),
    st.builds(HpaMetricTarget, st.just("AverageValue"), average_value_milli=targets),
)
outside_metrics = st.builds(
    MetricSpec,
    st.sampled_from(["Object", "External"]),
    st.just("queue"),
    st.builds(HpaMetricTarget, st.just("AverageValue"), average_value_milli=targets)
    | st.builds(HpaMetricTarget, st.just("Value"), value_milli=targets),
    described_object=st.just(CrossVersionObjectReference("Ingress", "main")),
)
metrics = st.lists(resource_metrics | pods_metrics | outside_metrics, min_size=1, max_size=3).map(tuple)


@st.composite
def specs(draw: st.DrawFn) -> HpaSpec:
    low, high = sorted(draw(st.tuples(st.integers(0, 30), st.integers(1, 30))))
    return HpaSpec(
        CrossVersionObjectReference("Deployment", "d", "apps/v1"), max(high, 1), draw(metrics), low, draw(behaviors)
    )


controllers = st.builds(
    Controller,
    tolerance=tolerance_ratios,
    downscale_stabilization=seconds,
    cpu_initialization_period=seconds,
    initial_readiness_delay=seconds,
    gates=st.builds(FeatureGates, st.booleans(), st.booleans(), st.booleans()),
)


class Cluster:
    """Objects of a namespace, from a seed: drawing every field of every pod would cost minutes for one property."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - a cluster, not a secret

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def moment(self) -> datetime:
        return NOW + timedelta(seconds=self.random.randint(-4000, 60))

    def pod(self, name: str) -> HpaPod:
        phases = ["Running"] * 6 + ["Pending", "Failed", "Succeeded", "Unknown"]
        ready = ReadyCondition(self.random.choice(["True", "True", "False", "Unknown"]), self.moment())
        return HpaPod(
            name,
            self.random.choice(phases),
            deleting=self.chance(8),
            start_time=None if self.chance(8) else self.moment(),
            ready=None if self.chance(8) else ready,
            containers=[self.container(name) for name in ("app", "side")[: self.random.choice([1, 1, 1, 2, 0])]],
            labels=LABELS,
        )

    def container(self, name: str) -> PodContainer:
        requests = {resource: self.random.randint(0, 10**6) for resource in ("cpu", "memory") if not self.chance(12)}
        return PodContainer(name, requests)

    def pods(self) -> list[HpaPod]:
        return [self.pod(name) for name in PODS[: self.random.randint(0, len(PODS))]]

    def samples(self) -> dict[str, PodSample]:
        names = self.random.sample([*PODS, "gone"], self.random.randint(0, len(PODS)))
        return {name: self.sample() for name in names}

    def sample(self) -> PodSample:
        value = self.random.choice([0, self.random.randint(-10, 10**6), self.random.randint(0, 10**12)])
        return PodSample(value, self.moment(), timedelta(seconds=self.random.choice([0, 15, 30, 60])))

    def answer(self, metric: MetricSpec) -> Answer:
        if self.chance(6):
            return Unmeasured("api_failed", "no answer")
        if metric.source == "Object":
            return ObjectMetric(self.random.randint(-(10**6), 10**12))
        if metric.source == "External":
            return ExternalValues([self.random.randint(-(10**6), 2**62) for _ in range(self.random.randint(1, 3))])
        return SampledPods(self.samples())

    def scale(self) -> ScaleSubresource | ScaleUnread:
        if self.chance(10):
            return ScaleUnread("gone")
        selector = self.random.choice(["app=a"] * 8 + ["", "app in ("])
        return ScaleSubresource(self.random.randint(0, 35), self.random.randint(0, 35), selector)

    def observation(self, spec: HpaSpec) -> Observation:
        return Observation(
            self.scale(),
            self.pods(),
            [self.answer(metric) for metric in spec.metrics],
            write_conflicts=self.random.choice([0, 0, 0, 4, 5]),
            write_refused=self.chance(8),
        )

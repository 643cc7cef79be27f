"""The replay's HPA says what the controller says, pass after pass."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from forecaster.decisions.replicas import milli
from forecaster.decisions.targets import AmountTarget, PodTarget, UtilizationTarget
from forecaster.domain.signal import CPU, REQUESTS, Signal
from forecaster.hpa.limits import ReplicaBounds
from forecaster.hpa.observation import Observation, ScaleSubresource
from forecaster.hpa.pods import HpaPod, PodContainer, ReadyCondition
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.samples import Answer, ExternalValues, PodSample, PodSamples
from forecaster.hpa.spec import CrossVersionObjectReference, HpaMetricTarget, HpaSpec, MetricSpec
from forecaster.hpa.state import NEW_HPA
from forecaster.replay.pods import Pods, Starting
from forecaster.replay.scaler import Memory, Scaler, next_replicas, raised, with_targets_at
from tests.property.hpa_strategies import behaviors

if TYPE_CHECKING:
    from forecaster.hpa.behavior import Behavior

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SYNC = timedelta(seconds=15)
LONG_AGO = NOON - timedelta(days=1)
AT_70_PERCENT = Scaler((UtilizationTarget(CPU, 70, 1.0),), ReplicaBounds(2, 20))


def asked(scaler: Scaler, pods: Pods, cores: float) -> int:
    return next_replicas(scaler, pods, {CPU: cores}, Memory(), NOON)[0]


def test_pods_that_start_are_not_asked_for_again() -> None:
    assert asked(AT_70_PERCENT, Pods(4), 5.6) == 8
    assert asked(AT_70_PERCENT, Pods(4, (Starting(4, NOON),)), 5.6) == 8


def test_a_raised_floor_is_asked_for_at_once_but_never_above_the_maximum() -> None:
    assert asked(raised(AT_70_PERCENT, 9), Pods(4), 2.8) == 9
    assert asked(raised(AT_70_PERCENT, 99), Pods(4), 2.8) == 20
    assert raised(AT_70_PERCENT, 1) is AT_70_PERCENT


def test_a_workload_at_zero_stays_there() -> None:
    assert asked(AT_70_PERCENT, Pods(0), 5.0) == 0


def test_without_a_sample_nothing_moves() -> None:
    assert asked(AT_70_PERCENT, Pods(4), math.nan) == 4


def test_a_lower_target_is_a_whole_percent() -> None:
    assert with_targets_at(AT_70_PERCENT, 0.855).targets == (UtilizationTarget(CPU, 60, 1.0),)


cores = st.floats(0.01, 60.0)


@st.composite
def targets(draw: st.DrawFn) -> tuple[PodTarget, ...]:
    """Up to three metrics of one workload, whose pods have one request."""
    request = draw(st.floats(0.05, 4.0))
    utilization = st.builds(UtilizationTarget, st.just(CPU), st.integers(1, 150), st.just(request))
    amount = st.builds(AmountTarget, st.sampled_from([CPU, REQUESTS]), st.floats(0.05, 90.0))
    return tuple(draw(st.lists(utilization | amount, min_size=1, max_size=3)))


samples = st.just(math.nan) | cores
demands = st.fixed_dictionaries({CPU: samples, REQUESTS: samples})
passes = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), demands), min_size=1, max_size=6)


@given(targets(), st.integers(1, 8), st.integers(0, 20), passes, behaviors)
def test_every_pass_is_the_controllers(
    which: tuple[PodTarget, ...],
    least: int,
    more: int,
    seen: list[tuple[int, int, dict[Signal, float]]],
    behavior: Behavior | None,
) -> None:
    scaler = Scaler(which, ReplicaBounds(least, least + more), behavior)
    state, memory = NEW_HPA, None
    for i, (ready, pending, demand) in enumerate(seen):
        now = NOON + i * SYNC
        pods = Pods(ready, (Starting(pending, now + SYNC),) if pending else ())
        memory = memory or Memory.beginning(pods.asked, now)
        controller = reconcile(spec_of(scaler), observed(scaler, pods, demand, now), state, now)
        replicas, memory = next_replicas(scaler, pods, demand, memory, now)
        written = controller.desired.replicas if controller.desired.written else pods.asked
        assert replicas == written
        state = controller.state
        assert memory == Memory(state.history or (), state.scale_ups, state.scale_downs)


@given(targets(), st.lists(cores, min_size=2, max_size=6))
def test_more_demand_never_asks_for_fewer_pods_from_the_same_size(
    which: tuple[PodTarget, ...], asked_for: list[float]
) -> None:
    scaler = Scaler(which, ReplicaBounds(1, 100))
    counts = [next_replicas(scaler, Pods(6), {CPU: one, REQUESTS: one}, Memory(), NOON)[0] for one in sorted(asked_for)]
    assert all(fewer <= more for fewer, more in pairwise(counts))


def spec_of(scaler: Scaler) -> HpaSpec:
    metrics = tuple(metric_of(target) for target in scaler.targets)
    reference = CrossVersionObjectReference("Deployment", "web", "apps/v1")
    bounds = scaler.bounds
    return HpaSpec(reference, bounds.max_replicas, metrics, bounds.min_replicas, scaler.behavior)


def metric_of(target: PodTarget) -> MetricSpec:
    if isinstance(target, UtilizationTarget):
        return MetricSpec("Resource", "cpu", HpaMetricTarget("Utilization", average_utilization_percent=target.percent))
    average = HpaMetricTarget("AverageValue", average_value_milli=milli(target.amount))
    return MetricSpec("Resource" if target.signal == CPU else "External", str(target.signal), average)


def observed(scaler: Scaler, pods: Pods, demand: dict[Signal, float], now: datetime) -> Observation:
    """Ready pods that share the demand, and pods that are not running yet, as the controller would see them."""
    request = next((milli(one.request) for one in scaler.targets if isinstance(one, UtilizationTarget)), 1000)
    names = [f"ready-{i}" for i in range(pods.ready)]
    serving = [pod(name, request, ReadyCondition("True", LONG_AGO)) for name in names]
    starting = [pod(f"starting-{i}", request, None) for i in range(pods.pending)]
    answers = [answer(target, demand[target.signal], names, now) for target in scaler.targets]
    return Observation(ScaleSubresource(pods.asked, pods.asked, "app=web"), [*serving, *starting], answers)


def pod(name: str, request: int, ready: ReadyCondition | None) -> HpaPod:
    phase, begun = ("Running", LONG_AGO) if ready else ("Pending", None)
    container = PodContainer("app", {"cpu": request})
    return HpaPod(name, phase, start_time=begun, ready=ready, containers=(container,), labels={"app": "web"})


def answer(target: PodTarget, demand: float, names: list[str], now: datetime) -> Answer:
    if math.isnan(demand):
        return Unmeasured("no_samples", "nothing was measured")
    if target.signal == REQUESTS:
        return ExternalValues((milli(demand),))
    share, rest = divmod(milli(demand), len(names)) if names else (0, 0)
    return PodSamples({name: PodSample(share + (i < rest), now) for i, name in enumerate(names)})

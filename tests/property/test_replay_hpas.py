"""The HPAs of a replay decide as the controller does, pass after pass."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.signal import CPU, REQUESTS
from forecaster.horizontal.targets import AmountTarget, PodTarget, UtilizationTarget, kind_of
from forecaster.horizontal.terms import UNREADABLE_TERMS, target_columns, target_numbers
from forecaster.hpa.limits import ReplicaBounds
from forecaster.hpa.numbers import milli
from forecaster.hpa.observation import Observation, ScaleSubresource
from forecaster.hpa.pods import HpaPod, PodContainer, ReadyCondition
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.samples import Answer, ExternalValues, PodSample, SampledPods
from forecaster.hpa.spec import CrossVersionObjectReference, HpaMetricTarget, HpaSpec, MetricSpec
from forecaster.hpa.state import NEW_HPA
from forecaster.replay.hpas import Hpas, Usage
from tests.property.hpa_strategies import behaviors

if TYPE_CHECKING:
    from forecaster.domain.signal import Signal
    from forecaster.hpa.behavior import Behavior

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SYNC = timedelta(seconds=15)
LONG_AGO = NOON - timedelta(days=1)
TWO_TO_TWENTY = ReplicaBounds(2, 20)
AT_70_PERCENT = (UtilizationTarget(CPU, 70, 1.0),)


class Counts(NamedTuple):
    """Pods of one row, as an HPA of a replay reads them."""

    desired: np.ndarray
    ready: np.ndarray

    @classmethod
    def of(cls, ready: int, pending: int = 0) -> Counts:
        return cls(np.array([ready + pending]), np.array([ready]))


def hpa_of(targets: tuple[PodTarget, ...], bounds: ReplicaBounds, behavior: Behavior | None = None) -> Hpas:
    """One row."""
    columns = target_columns(
        [UNREADABLE_TERMS._replace(targets=tuple(target_numbers(target, None) for target in targets))]
    )
    least, most = np.array([bounds.min_replicas]), np.array([bounds.max_replicas])
    return Hpas(tuple(map(kind_of, targets)), columns, least, most, behavior, SYNC)


def usage_of(demand: dict[Signal, float]) -> dict[str, Usage]:
    return {
        signal: Usage(np.array([0 if math.isnan(value) else milli(value)]), np.array([not math.isnan(value)]))
        for signal, value in demand.items()
    }


def replicas_for(targets: tuple[PodTarget, ...], pods: Counts, cores: float, floor: int = 0) -> int:
    """Replicas after the first pass of an HPA with no more pods than its bounds require."""
    hpa = hpa_of(targets, TWO_TO_TWENTY)
    return int(hpa.replicas(pods, usage_of({CPU: cores}), np.array([floor]), 1)[0])


def test_pods_that_start_are_not_asked_for_again() -> None:
    assert replicas_for(AT_70_PERCENT, Counts.of(4), 5.6) == 8
    assert replicas_for(AT_70_PERCENT, Counts.of(4, 4), 5.6) == 8


def test_a_raised_floor_is_asked_for_at_once_but_never_above_the_maximum() -> None:
    assert replicas_for(AT_70_PERCENT, Counts.of(4), 2.8, floor=9) == 9
    assert replicas_for(AT_70_PERCENT, Counts.of(4), 2.8, floor=99) == 20
    assert replicas_for(AT_70_PERCENT, Counts.of(4), 2.8, floor=1) == 4


def test_a_workload_at_zero_stays_there() -> None:
    assert replicas_for(AT_70_PERCENT, Counts.of(0), 5.0) == 0


def test_without_a_sample_nothing_moves() -> None:
    assert replicas_for(AT_70_PERCENT, Counts.of(4), math.nan) == 4


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
    minutes: list[tuple[int, int, dict[Signal, float]]],
    behavior: Behavior | None,
) -> None:
    bounds = ReplicaBounds(least, least + more)
    rows, state = hpa_of(which, bounds, behavior), NEW_HPA
    for sync, (ready, pending, demand) in enumerate(minutes):
        now, pods = NOON + sync * SYNC, Counts.of(ready, pending)
        spec = spec_of(which, bounds, behavior)
        controller = reconcile(spec, observed(which, ready, pending, demand, now), state, now)
        replicas = rows.replicas(pods, usage_of(demand), np.array([0]), sync)
        rows.moved(replicas - pods.desired, sync)
        written = controller.desired.replicas if controller.desired.written else ready + pending
        assert replicas.tolist() == [written]
        state = controller.state


@given(targets(), st.lists(cores, min_size=2, max_size=6))
def test_more_demand_never_asks_for_fewer_pods_from_the_same_size(
    which: tuple[PodTarget, ...], asked_for: list[float]
) -> None:
    counts = [
        int(
            hpa_of(which, ReplicaBounds(1, 100)).replicas(
                Counts.of(6), usage_of({CPU: demand, REQUESTS: demand}), np.array([0]), 1
            )[0]
        )
        for demand in sorted(asked_for)
    ]
    assert all(fewer <= more for fewer, more in pairwise(counts))


def spec_of(targets: tuple[PodTarget, ...], bounds: ReplicaBounds, behavior: Behavior | None) -> HpaSpec:
    metrics = tuple(metric_of(target) for target in targets)
    reference = CrossVersionObjectReference("Deployment", "web", "apps/v1")
    return HpaSpec(reference, bounds.max_replicas, metrics, bounds.min_replicas, behavior)


def metric_of(target: PodTarget) -> MetricSpec:
    if isinstance(target, UtilizationTarget):
        return MetricSpec("Resource", "cpu", HpaMetricTarget("Utilization", average_utilization_percent=target.percent))
    average = HpaMetricTarget("AverageValue", average_value_milli=milli(target.amount))
    return MetricSpec("Resource" if target.signal == CPU else "External", str(target.signal), average)


def observed(
    targets: tuple[PodTarget, ...], ready: int, pending: int, demand: dict[Signal, float], now: datetime
) -> Observation:
    """Ready pods that share the demand, and pods that are not running yet, as the controller would see them."""
    request = next((milli(target.request) for target in targets if isinstance(target, UtilizationTarget)), 1000)
    names = [f"ready-{i}" for i in range(ready)]
    serving = [pod(name, request, ReadyCondition("True", LONG_AGO)) for name in names]
    starting = [pod(f"starting-{i}", request, None) for i in range(pending)]
    answers = [answer(target, demand[target.signal], names, now) for target in targets]
    count = ready + pending
    return Observation(ScaleSubresource(count, count, "app=web"), [*serving, *starting], answers)


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
    return SampledPods({name: PodSample(share + (i < rest), now) for i, name in enumerate(names)})

"""The whole replay on a small cluster: bounds, equalities and refusals that hold for any demand."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.domain.policies import Policies
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU, PODS, REQUESTS, Signal
from forecaster.domain.workload import Target, TargetType
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.compare import compare, demand_of, scope_of
from forecaster.replay.forecasts import ReplayForecasts
from forecaster.replay.setup import setup_or_reason
from forecaster.replay.strategies import HPA, PERFECT, ForecastSource, Strategy, bound, perfect, strategies_with
from forecaster.replay.traces import Traces, measurements_of
from tests.support.builders import NOON, hpa, minutes, workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.replay.comparison import Comparison
    from forecaster.replay.forecasts import ForecastRequest
    from forecaster.replay.traces import Measurements

PAST = 200
NAIVE = Strategy("naive", "nothing ahead", ForecastSource.MODEL, "last-value")


def traces(cores: Sequence[float], **parts: object) -> Traces:
    """A workload with a core a pod and a target of 50 %; until noon its demand is steady, and its pods half full."""
    values = np.concatenate([np.full(PAST, cores[0]), np.asarray(cores, float)])[None, :]
    web = replace(workload(autoscaler=hpa(lowest=1, highest=1000)), **parts)  # type: ignore[arg-type]
    pods = np.full(values.shape, np.ceil(2 * cores[0]))
    return Traces((web,), NOON - minutes(PAST - 1), {CPU: values, PODS: pods})


def replayed(recorded: Traces, *strategies: Strategy, policy: Policy | None = None, **options: object) -> Comparison:
    return compare(
        recorded,
        Policies(policy or Policy()),
        (HPA, *strategies),
        begin=NOON,
        until=recorded.end,
        **options,  # type: ignore[arg-type]
    )


loads = st.lists(st.floats(0.1, 60.0), min_size=10, max_size=60)


@settings(deadline=None, max_examples=25)
@given(loads, st.sampled_from([1, 2, 5, 8]), st.sampled_from([15, 30, 60]))
def test_perfect_foresight_leaves_nothing_short_and_cannot_for_less_than_the_bound(
    cores: list[float], start_up: int, sync: int
) -> None:
    timing = replace(Assumptions().timing, sync=timedelta(seconds=sync))
    assumed = Assumptions(start_ups=(minutes(start_up),), shares=(), timing=timing)
    ready_first = [*([cores[0]] * 20), *cores]
    compared = replayed(traces(ready_first), PERFECT, assumed=assumed).workloads[0]
    assert compared.curves["perfect"].own.missing == 0.0
    assert compared.bound.missing == 0.0
    assert compared.curves["perfect"].own.pod_hours >= compared.bound.pod_hours - 1e-9


def silent(measurements: Measurements, signals: Sequence[Signal], request: ForecastRequest) -> ReplayForecasts:
    """Forecasts of no demand at all."""
    shape = (measurements.minutes, 1, len(measurements.traces.workloads))
    return ReplayForecasts("silent", request.span, (0.5,), {signal: np.zeros(shape) for signal in signals})


@settings(deadline=None, max_examples=25)
@given(loads)
def test_a_strategy_that_never_asks_for_more_than_the_hpa_costs_exactly_what_it_costs(cores: list[float]) -> None:
    never = Policy(horizontal=HorizontalPolicy(max_replicas=1))
    compared = replayed(traces(cores), NAIVE, policy=never, forecasting=silent).workloads[0]
    assert compared.curves["naive"].own == compared.curves["hpa"].own
    assert compared.curves["naive"].points == compared.curves["hpa"].points


def ungated() -> Policy:
    return Policy(horizontal=HorizontalPolicy(gate=False))


@settings(deadline=None, max_examples=25)
@given(loads)
def test_pods_are_counted_in_whole_and_never_lost(cores: list[float]) -> None:
    compared = replayed(traces(cores), NAIVE, PERFECT, policy=ungated(), forecasting=silent).workloads[0]
    for curve in compared.curves.values():
        track, own = curve.track, curve.own
        assert (track.ready <= track.desired).all()
        assert (track.ready >= 0).all()
        assert own.demand == pytest.approx(sum(cores) / 60)
        assert own.missing == pytest.approx(track.missing.sum() / 60)


def refusal(recorded: Traces, policy: Policy | None = None, **options: object) -> str:
    outcome = replayed(recorded, policy=policy, **options)
    assert not outcome.workloads
    return next(iter(outcome.left_out.values()))


STEADY = [2.0] * 60


def test_an_hpa_without_metrics_is_refused() -> None:
    bare = replace(hpa(), targets=())
    assert "has no metrics" in refusal(traces(STEADY, autoscaler=bare))


def test_history_shorter_than_a_forecast_needs_is_refused() -> None:
    recorded = traces([2.0] * 300)
    latest = {signal: values[:, PAST - 120 :] for signal, values in recorded.values.items()}
    began_late = replace(recorded, start=recorded.start + minutes(PAST - 120), values=latest)
    assert "less than 3h (min_history)" in refusal(began_late, Policy(min_history=timedelta(hours=3)))


def test_a_replay_shorter_than_it_looks_ahead_is_refused() -> None:
    assert "replay a longer time" in refusal(traces([2.0] * 6))


def test_a_policy_that_contradicts_the_hpa_is_refused() -> None:
    policy = Policy(horizontal=HorizontalPolicy(min_replicas=2000))
    assert "above the HPA's maxReplicas 1000" in refusal(traces(STEADY), policy)


def test_demand_in_millicores_is_refused() -> None:
    few = hpa(lowest=1, highest=10)
    assert "another unit" in refusal(traces([2000.0] * 60, autoscaler=few))


def test_demand_of_another_signal_than_the_target_is_refused() -> None:
    rates = hpa(Target("rate", TargetType.AVERAGE_VALUE, 5.0))
    policy = Policy(horizontal=HorizontalPolicy(requests_metric="rate"))
    recorded = traces(STEADY, autoscaler=rates)
    silent = replace(recorded, values={**recorded.values, REQUESTS: np.full((1, recorded.minutes), np.nan)})
    for variant in (recorded, silent):
        reason = "its HPA goes by requests, of which nothing was recorded in that time; recorded: cpu"
        assert refusal(variant, policy) == reason


def test_a_missing_signal_that_fills_pods_is_not_blamed_on_the_hpa() -> None:
    rates = hpa(Target("rate", TargetType.AVERAGE_VALUE, 5.0))
    policy = Policy(horizontal=HorizontalPolicy(requests_metric="rate"))
    recorded = traces(STEADY, autoscaler=rates)
    reason = refusal(replace(recorded, values={REQUESTS: recorded.values[CPU]}), policy)
    assert "a pod is filled by cpu, of which nothing was recorded in that time; recorded: requests" in reason


def test_the_memory_for_one_workload_does_not_grow_with_the_fleet() -> None:
    fleet = 300
    workloads = tuple(workload(f"web-{i}", autoscaler=hpa()) for i in range(fleet))
    recorded = Traces(workloads, NOON, {CPU: np.ones((fleet, 720))})
    scope = scope_of(recorded, Policies(Policy()), NOON + minutes(300), recorded.end, Assumptions())
    tracemalloc.start()
    try:
        setup_or_reason(0, workloads[0], Policy(), scope.measurements, Assumptions())
        bound(scope.setups[0], scope.measurements, 0)
        demand_of(scope, 0)
        assert tracemalloc.get_traced_memory()[1] < 720 * 8 * 20
    finally:
        tracemalloc.stop()


def test_foresight_of_an_hour_takes_no_more_memory_than_of_a_minute() -> None:
    day, workloads = 1440, tuple(workload(f"web-{i}") for i in range(50))
    recorded = Traces(workloads, NOON, {CPU: np.random.default_rng(1).random((50, day + 60))})
    measurements, array_bytes = measurements_of(recorded, NOON, day), 50 * day * 8
    tracemalloc.start()
    try:
        perfect(measurements, PeakSpan(minutes(0), minutes(60)))
        assert tracemalloc.get_traced_memory()[1] < 5 * array_bytes
    finally:
        tracemalloc.stop()


def test_the_frontier_has_every_strategy_at_every_share() -> None:
    assumed = Assumptions(shares=(1.2, 0.8))
    outcome = replayed(traces([2.0, 5.0, 9.0, 2.0] * 10), PERFECT, assumed=assumed)
    rows = outcome.frontier()
    assert {(row["strategy"], row["target_share"]) for row in rows} == {
        (name, share) for name in ("hpa", "perfect") for share in (1.0, 1.2, 0.8)
    }
    assert len(outcome.trajectory("shop/web")) == 2 * 40


def test_every_strategy_is_there_once() -> None:
    names = [strategy.name for strategy in strategies_with("adaptive", ["ridge", "seasonal-naive-day", "adaptive"])]
    assert names == ["hpa", "seasonal-naive-day", "ridge", "policy", "perfect"]


class Onlooker:
    """An onlooker who goes on after Ctrl-C during the naive strategy."""

    def began(self, stage: str, share: float) -> None:
        assert 0 <= share <= 1

    def interrupted(self, stage: str) -> bool:
        return stage == NAIVE.title


def test_after_ctrl_c_what_was_forecast_until_then_is_compared() -> None:
    def interrupted(*_: object) -> ReplayForecasts:
        raise KeyboardInterrupt

    comparison = replayed(traces([1.0] + 20 * [2.0]), NAIVE, forecasting=interrupted, watch=Onlooker())
    assert [strategy.name for strategy in comparison.strategies] == [HPA.name]
    assert comparison.own(HPA.name).pod_hours > 0

"""An HPA minute by minute: a pod carries one core and starts in two minutes, the target is 50 %."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay.account import Run, RunResult
from forecaster.replay.engine import NO_FLOOR, Simulation, replay_runs
from forecaster.replay.forecasts import ReplayForecasts
from forecaster.replay.setup import Setup, setup_of
from forecaster.replay.traces import Measurements, Traces, measurements_of
from tests.support.builders import NOON, minutes
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from forecaster.replay.learned import Situation

HPA = Autoscaler("web", 2, 20, (Target("cpu", TargetType.UTILIZATION, 0.5),))
WEB = Workload(workload_id("web"), 4, 4, Resources(cpu_request=1.0), HPA)
PAST = 3


def measured(cores: list[float]) -> Measurements:
    """Demand of `cores[i]` in minute i, and of `cores[0]` before the first."""
    values = np.array([[cores[0]] * PAST + cores])
    return measurements_of(Traces((WEB,), NOON - minutes(PAST - 1), {CPU: values}), NOON, len(cores))


def run_of(floors: list[int] | None = None, policy: Policy | None = None, **parts: object) -> Run:
    setup = setup_of(WEB, HorizontalPolicy())
    assert isinstance(setup, Setup)
    stated = None if floors is None else np.array(floors, np.int32)
    return Run(0, WEB, setup, 4, policy, floors=stated, **parts)  # type: ignore[arg-type]


def replayed(cores: list[float], floors: list[int] | None = None) -> RunResult:
    return replay_runs([run_of(floors)], measured(cores), tracks=True)[0]


def test_a_steady_demand_moves_nothing() -> None:
    track = replayed([2.0] * 10).track
    assert (track.desired.tolist(), track.ready.tolist()) == ([4] * 10, [4] * 10)


def test_a_jump_is_seen_a_minute_later_and_served_two_minutes_after_that() -> None:
    """The jump of 12:01 is measured at 12:02: 8 pods at once, 12 at the next sync; 8 are ready at 12:04."""
    result = replayed([2.0, 6.0, 6.0, 6.0, 6.0])
    assert result.track.desired.tolist() == [4, 4, 12, 12, 12]
    assert result.track.ready.tolist() == [4, 4, 4, 8, 12]
    assert result.account.short == timedelta(minutes=3)


def test_a_pod_that_starts_costs_and_does_not_serve() -> None:
    account = replayed([6.0, 6.0]).account
    assert account.missing == pytest.approx(2.0 * 2 / 60)
    assert account.pod_hours == pytest.approx((8 + 12 * 7) * 15 / 3600)


def test_time_without_a_measurement_costs_pods_and_is_neither_short_nor_measured() -> None:
    account = replayed([2.0, float("nan"), 2.0]).account
    assert account.measured == timedelta(minutes=2)
    assert account.pod_hours == pytest.approx(4 * 3 / 60)
    assert account.short == timedelta()


def test_before_its_first_measurement_a_workload_costs_no_pods() -> None:
    account = replayed([float("nan"), float("nan"), 2.0, float("nan")]).account
    assert account.measured == timedelta(minutes=1)
    assert account.pod_hours == pytest.approx(4 * 2 / 60)


def test_a_floor_counts_from_the_next_sync_and_costs_pods_from_then_on() -> None:
    result = replayed([2.0], floors=[6])
    assert result.track.desired.tolist() == [6]
    assert result.account.pod_hours == pytest.approx((4 * 15 + 6 * 45) / 3600)


def test_a_floor_ahead_of_a_jump_leaves_nothing_short() -> None:
    floors = [12, 12, 12, NO_FLOOR, NO_FLOOR, NO_FLOOR]
    assert replayed([2.0, 2.0, 2.0, 6.0, 6.0, 6.0], floors).account.missing == 0.0
    assert replayed([2.0, 2.0, 2.0, 6.0, 6.0, 6.0]).account.missing > 0.0


def test_when_the_floor_goes_the_hpa_waits_its_five_minutes_before_it_scales_down() -> None:
    desired = replayed([2.0] * 12, floors=[10, *[NO_FLOOR] * 11]).track.desired.tolist()
    assert desired[0] == 10
    assert desired[-1] == 4
    assert desired == sorted(desired, reverse=True)


def test_a_simulation_in_step_goes_as_a_replay_with_the_same_floors() -> None:
    cores, floors = [2.0, 6.0, 6.0, 3.0, 2.0, 2.0], [4, 9, 9, 12, 0, 0]
    simulation, result = Simulation([run_of()], measured(cores)), replayed(cores, floors)
    stepped = [simulation.minute(minute, [floor])[0] for minute, floor in enumerate(floors)]
    assert [state.desired for state in stepped] == result.track.desired.tolist()
    assert [state.ready for state in stepped] == result.track.ready.tolist()
    assert stepped[-1].account == result.account


def test_runs_of_any_rules_are_replayed_together_as_each_alone() -> None:
    """There are more runs than the caches hold, of several policies and in any order."""
    measurements, policies = measured([2.0, 6.0, 4.0]), (None, Policy(), Policy(horizontal=HorizontalPolicy(surge=1.0)))
    runs = [run_of(policy=policies[i % 3]) for i in range(20)]
    together = [result.account for result in replay_runs(runs, measurements)]
    assert together == [replay_runs([run], measurements)[0].account for run in runs]


def test_a_policy_that_may_scale_to_zero_keeps_the_last_pod_where_only_cpu_would_wake_it() -> None:
    """With forecasts of nothing the policy asks for one pod, and the HPA keeps its own minimum."""
    policy = Policy(horizontal=HorizontalPolicy(sizing="newsvendor", scale_in_by_forecast=True, min_replicas=0))
    nothing = ReplayForecasts("nothing", PeakSpan(minutes(3), minutes(3)), (0.5,), {CPU: np.zeros((8, 1, 1))})
    patient = policy.model_copy(update={"min_history": timedelta(minutes=1)})
    run = run_of(policy=patient, forecasts=nothing)
    track = replay_runs([run], measured([0.0] * 8), tracks=True)[0].track
    assert track.floor[-1] == 1
    assert track.desired[-1] == HPA.min_replicas


class Generous:
    """An advisor that always asks for ten pods."""

    def counts(self, situation: Situation) -> np.ndarray:
        return np.full(len(situation.desired), 10.0)


def test_an_advisor_in_place_of_the_forecast_decides_through_every_clamp() -> None:
    coming = ReplayForecasts("m", PeakSpan(minutes(3), minutes(3)), (0.5, 0.9), {CPU: np.full((4, 2, 1), 2.0)})
    policy = Policy(horizontal=HorizontalPolicy(max_replicas=8, lead_time=minutes(1)), min_history=minutes(1))
    run = run_of(policy=policy, forecasts=coming, advisor=Generous())
    assert replay_runs([run], measured([2.0] * 4), tracks=True)[0].track.floor.tolist() == [8] * 4

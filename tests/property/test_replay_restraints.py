"""Events, outages, and the price and the budget of changes: on arrays as call by call, minute by minute."""

from __future__ import annotations

import operator
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.domain.event import ScheduledEvent
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU, REQUESTS
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay.account import Run
from forecaster.replay.assumptions import Assumptions, Timing
from forecaster.replay.engine import replay_runs
from forecaster.replay.forecasts import ReplayForecasts
from forecaster.replay.setup import Setup, setup_of
from forecaster.replay.traces import Measurements, Traces, measurements_of
from tests.oracles.run_of_one import worlds_of
from tests.support.builders import NOON
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from forecaster.replay.learned import Situation

MINUTE = timedelta(minutes=1)
QUICK = Assumptions((MINUTE,), Timing(MINUTE))
SPAN = PeakSpan(3 * MINUTE, 3 * MINUTE)
PAST = 3
SIGNALS = (CPU, REQUESTS)
FULL = {CPU: 1.0, REQUESTS: 30.0}
SILENT, EMPTY = -1, 0

minutes = st.integers(0, 15).map(lambda count: count * MINUTE)
odd = st.builds(operator.add, minutes, st.sampled_from([timedelta(), timedelta(seconds=30)]))
phases = st.lists(
    st.tuples(st.sampled_from([SILENT, EMPTY, 2, 4, 5, 6, 12]), st.integers(1, 12)), min_size=3, max_size=12
)


@st.composite
def events(draw: st.DrawFn) -> ScheduledEvent:
    """A floor or a maintenance window, once or again and again."""
    limits: dict[str, object] = draw(st.sampled_from([{"freeze": True}, {"replicas": 3}, {"replicas": 9}]))
    if draw(st.booleans()):
        cron, duration = f"*/{draw(st.integers(9, 25))} * * * *", draw(odd) + MINUTE
        return ScheduledEvent.model_validate({"name": "often", **limits, "cron": cron, "duration": duration})
    start = NOON + draw(odd) * draw(st.integers(0, 4))
    return ScheduledEvent.model_validate({"name": "once", **limits, "start": start, "end": start + draw(odd) + MINUTE})


policies = st.builds(
    HorizontalPolicy,
    requests_metric=st.just("rate"),
    gate=st.sampled_from([True]),
    quantile=st.sampled_from([0.5, 0.9]),
    sizing=st.sampled_from(["quantile", "newsvendor"]),
    scale_in_by_forecast=st.booleans(),
    lead_time=st.sampled_from([None, MINUTE, 9 * MINUTE]),
    scale_down_stabilization=st.sampled_from([timedelta(), 2 * MINUTE, 12 * MINUTE]),
    outage_hold=st.just(timedelta()) | odd,
    events=st.just(()) | st.lists(events(), min_size=1, max_size=3).map(tuple),
).map(lambda horizontal: Policy(horizontal=horizontal, min_history=MINUTE, max_sample_age=MINUTE))


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Run], Measurements]:
    """Load in steps of whole pods, gone at times, at times unseen; forecasts that know the load without outages."""
    cpu = Target("cpu", TargetType.UTILIZATION, 0.5)
    rate = Target("rate", TargetType.AVERAGE_VALUE, 15.0)
    targets = draw(st.sampled_from([(cpu,), (cpu, rate), (cpu, rate, Target("cpu", TargetType.AVERAGE_VALUE, 0.7))]))
    workload = Workload(workload_id("web"), 3, 3, Resources(cpu_request=1.0), Autoscaler("web", 1, 30, targets))
    drawn = [draw(phases) for _ in SIGNALS]
    length = min(sum(count for _, count in phases_of_signal) for phases_of_signal in drawn)
    pods = {
        signal: np.repeat(*np.array(phases_of_signal).T)[:length].astype(float)
        for signal, phases_of_signal in zip(SIGNALS, drawn, strict=True)
    }
    values = {
        signal: np.r_[np.full(PAST, 4.0), np.where(counts < 0, np.nan, counts)] * FULL[signal]
        for signal, counts in pods.items()
    }
    recorded = Traces(
        (workload,), NOON - (PAST - 1) * MINUTE, {signal: cores[None] / 2 for signal, cores in values.items()}
    )
    measurements = measurements_of(recorded, NOON, length)
    expected = {
        signal: np.maximum.accumulate(np.maximum(counts, 0)) * FULL[signal] / 2 for signal, counts in pods.items()
    }
    shape = draw(st.sampled_from([(0.2, 0.8, 1.0), (0.9, 1.0, 1.1)]))
    levels = np.array(shape)[:, None]
    forecasts = ReplayForecasts(
        "drawn", SPAN, (0.2, 0.5, 0.9), {signal: cores[:, None, None] * levels for signal, cores in expected.items()}
    )
    setup = setup_of(workload, HorizontalPolicy(requests_metric="rate"), QUICK)
    assert isinstance(setup, Setup)
    chosen = draw(st.lists(policies, min_size=1, max_size=3))
    acting = draw(st.none() | st.lists(st.booleans(), min_size=length, max_size=length).map(np.array))
    gated = {"acting": acting}
    runs = [Run(0, workload, setup, draw(st.integers(1, 9)), policy, forecasts, **gated) for policy in chosen]
    by_quantile = chosen[0].model_copy(
        update={"horizontal": chosen[0].horizontal.model_copy(update={"sizing": "quantile"})}
    )
    return [*runs, Run(0, workload, setup, 3, by_quantile, forecasts, advisor=Fickle())], measurements


class Fickle:
    """One pod more than are ready, every third minute."""

    def counts(self, situation: Situation) -> np.ndarray:
        return np.where(situation.minute_of_day % 3 == 0, situation.ready + 1, np.nan)


@settings(deadline=None, max_examples=20)
@given(scenes())
def test_restraints_hold_runs_on_arrays_as_they_hold_each_alone(scene: tuple[list[Run], Measurements]) -> None:
    runs, measurements = scene
    for run, result in zip(runs, replay_runs(runs, measurements, tracks=True), strict=True):
        alone = list(worlds_of(run, measurements))
        assert result.track.floor.tolist() == [world.floor for world in alone]
        assert result.track.desired.tolist() == [world.pods.desired for world in alone]


GONE = float("nan")
OUTAGES = {
    "back at less than before": [12.0] * 8 + [0.0] * 4 + [4.0] * 25,
    "gone again at once": [12.0] * 8 + [0.0] * 3 + [4.0] * 2 + [0.0] * 4 + [2.0] * 25,
    "silent": [12.0] * 8 + [GONE] * 5 + [4.0] * 25,
    "gone, then silent": [12.0] * 8 + [0.0] * 3 + [GONE] * 5 + [2.0] * 25,
    "back at the end of the hold": [12.0] * 8 + [0.0] * 7 + [12.0] * 3 + [2.0] * 25,
}


@pytest.mark.parametrize("pods", OUTAGES.values(), ids=OUTAGES)
@pytest.mark.parametrize("hold", [timedelta(minutes=4), timedelta(minutes=6, seconds=30)])
def test_after_an_outage_the_floor_stays_as_long_on_arrays_as_alone(pods: list[float], hold: timedelta) -> None:
    held, free = (
        floors_of(pods, HorizontalPolicy(outage_hold=length, scale_down_stabilization=MINUTE))
        for length in (hold, timedelta())
    )
    assert held[0] == held[1]
    assert held[0] != free[0]


def floors_of(pods: list[float], policy: HorizontalPolicy) -> tuple[list[int], list[int]]:
    """The floors on arrays and alone; the forecast knows the load before it went."""
    hpa = Autoscaler("web", 1, 30, (Target("cpu", TargetType.UTILIZATION, 0.5),))
    workload = Workload(workload_id("web"), 12, 12, Resources(cpu_request=1.0), hpa)
    cores = np.array([pods[0]] * PAST + pods) / 2
    traces = Traces((workload,), NOON - (PAST - 1) * MINUTE, {CPU: cores[None]})
    measurements = measurements_of(traces, NOON, len(pods))
    expected = np.where(np.arange(len(pods)) < 10, 5.0, 2.0)[:, None, None] * np.array([[0.8], [0.9], [1.0]])
    setup = setup_of(workload, policy, QUICK)
    assert isinstance(setup, Setup)
    chosen = Policy(horizontal=policy, min_history=MINUTE, max_sample_age=MINUTE)
    run = Run(0, workload, setup, 12, chosen, ReplayForecasts("drawn", SPAN, (0.2, 0.5, 0.9), {CPU: expected}))
    (result,) = replay_runs([run], measurements, tracks=True)
    return result.track.floor.tolist(), [world.floor for world in worlds_of(run, measurements)]

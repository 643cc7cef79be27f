"""Many runs on arrays equal each run alone: by the exact HPA, and by the decisions of the service."""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.domain.event import ScheduledEvent
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU, REQUESTS
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay.account import Run, RunResult, with_targets_at
from forecaster.replay.assumptions import StartUp, Timing
from forecaster.replay.engine import replay_runs
from forecaster.replay.forecasts import ReplayForecasts
from forecaster.replay.setup import Capacity, Setup, setup_of
from forecaster.replay.traces import Measurements, Traces, measurements_of
from tests.oracles.run_of_one import World, worlds_of
from tests.property.hpa_strategies import behaviors
from tests.support.builders import NOON
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from forecaster.replay.learned import Situation

LEVELS = (0.5, 0.85, 0.99)
SPAN = PeakSpan(timedelta(minutes=3), timedelta(minutes=3))
PAST = 4
"""Minutes of demand before the replay begins."""

minutes = st.integers(0, 12).map(lambda count: timedelta(minutes=count))
seconds = st.integers(0, 59).map(lambda count: timedelta(seconds=count))
timings = st.builds(Timing, st.sampled_from([15, 20, 30, 60]).map(lambda s: timedelta(seconds=s)), seconds, seconds)
start_ups = st.builds(
    StartUp,
    st.lists(st.integers(0, 400), min_size=1, max_size=3).map(lambda s: tuple(timedelta(seconds=value) for value in s)),
    st.integers(0, 2**32 - 1),
)
cpu = st.builds(Target, st.just("cpu"), st.just(TargetType.UTILIZATION), st.integers(1, 150).map(lambda p: p / 100))
cores = st.builds(Target, st.just("cpu"), st.just(TargetType.AVERAGE_VALUE), st.floats(0.05, 3.0))
rates = st.builds(Target, st.just("rate"), st.just(TargetType.AVERAGE_VALUE), st.floats(1.0, 90.0))


@st.composite
def events(draw: st.DrawFn) -> ScheduledEvent:
    """A floor, a maximum or a maintenance window, once or again and again."""
    maxima = ({"max_replicas": count, "over_measured": count < 6} for count in (3, 8))
    floors = ({"replicas": count} for count in (2, 9, 25))
    limits: dict[str, object] = draw(st.sampled_from([{"freeze": True}, *floors, *maxima]))
    if draw(st.booleans()):
        repeated = {"cron": f"*/{draw(st.integers(5, 20))} * * * *", "duration": draw(minutes) + timedelta(minutes=1)}
        return ScheduledEvent.model_validate({"name": "often", **limits, **repeated})
    start = NOON + draw(minutes) * draw(st.integers(0, 4))
    return ScheduledEvent.model_validate(
        {"name": "once", **limits, "start": start, "end": start + draw(seconds) + draw(minutes) + timedelta(seconds=1)}
    )


policies = st.builds(
    Policy,
    horizontal=st.builds(
        HorizontalPolicy,
        quantile=st.sampled_from([0.5, 0.7, 0.85, 0.99]),
        scale_in_by_forecast=st.booleans(),
        sizing=st.sampled_from(["quantile", "newsvendor"]),
        peak_target=st.none() | st.floats(0.5, 2.0),
        surge=st.none() | st.floats(0.05, 2.0),
        tolerance=st.sampled_from([0.0, 0.1, 0.3]),
        scale_down_stabilization=minutes,
        min_replicas=st.none() | st.integers(1, 5),
        max_replicas=st.none() | st.integers(5, 30),
        requests_metric=st.just("rate"),
        lead_time=st.none() | st.sampled_from([1, 4, 9]).map(lambda count: timedelta(minutes=count)),
        outage_hold=st.just(timedelta()) | st.builds(operator.add, minutes, seconds),
        events=st.lists(events(), max_size=3).map(tuple),
    ),
    min_history=st.sampled_from([1, 3, 6]).map(lambda count: timedelta(minutes=count)),
    max_sample_age=st.sampled_from([1, 2, 5]).map(lambda count: timedelta(minutes=count)),
)


@st.composite
def traces(draw: st.DrawFn, workload: Workload) -> Traces:
    """Two rows of one workload: levels with jumps, sometimes exact in milli-units, and gaps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, scale = PAST + draw(st.integers(5, 90)), draw(st.sampled_from([0.5, 4.0, 12.0]))
    values = {}
    for signal, unit in ((CPU, 1.0), (REQUESTS, 30.0)):
        level = scale * unit * rng.choice([0.0, 0.3, 1.0, 1.0, 2.5], (2, count))
        noisy = level * np.where(rng.random((2, 1)) < 0.5, 1.0, rng.uniform(0.8, 1.2, (2, count)))
        if signal == CPU and draw(st.booleans()):  # exactly the load that whole pods carry
            noisy = (workload.resources.cpu_request or 1.0) * rng.integers(1, 9, (2, count)).repeat(4, axis=1)[
                :, :count
            ]
        values[signal] = np.where(rng.random((2, count)) < draw(st.sampled_from([0.0, 0.2, 0.6])), np.nan, noisy)
    return Traces((workload, workload), NOON - (PAST - 1) * timedelta(minutes=1), values)


@st.composite
def forecasts(draw: st.DrawFn, measurements: Measurements) -> ReplayForecasts:
    """Forecasts around the truth and far from it, and sometimes none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (measurements.minutes, len(LEVELS), 2)
    unit = {CPU: 1.0, REQUESTS: 30.0}
    values = {signal: np.sort(unit[signal] * rng.gamma(1.0, 5.0, shape), axis=1) for signal in unit}
    silent = {signal: rng.random((shape[0], 1, 2)) < draw(st.sampled_from([0.0, 0.3])) for signal in unit}
    return ReplayForecasts(
        "drawn", SPAN, LEVELS, {signal: np.where(silent[signal], np.nan, values[signal]) for signal in unit}
    )


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Run], Measurements]:
    """Runs of one workload under several policies and targets, as a comparison has them."""
    least, more = draw(st.integers(1, 4)), draw(st.integers(0, 30))
    targets = tuple(draw(st.lists(cpu | cores | rates, min_size=1, max_size=2)))
    hpa = Autoscaler("web", least, least + more, targets)
    request = draw(st.sampled_from([0.25, 0.5, 1.0, 1.7]))
    workload = Workload(workload_id("web"), 3, 3, Resources(cpu_request=request), hpa)
    recorded = draw(traces(workload))
    measurements = measurements_of(recorded, NOON, recorded.minutes - PAST)
    behavior, timing, start_up = draw(behaviors), draw(timings), draw(start_ups)
    forecast, runs = draw(forecasts(measurements)), []
    for policy in [None, *draw(st.lists(policies, min_size=1, max_size=3))]:
        for share in (1.0, draw(st.sampled_from([0.6, 1.3]))):
            shared = with_targets_at(workload, share)
            setup = setup_for(shared, start_up, timing, behavior)
            row, replicas = draw(st.integers(0, 1)), draw(st.integers(0, 12))
            runs.append(Run(row, shared, setup, replicas, policy, forecast if policy else None))
    runs.append(replace(runs[-1], policy=runs[-1].policy and advised(runs[-1].policy), advisor=Contrary()))
    floors = draw(st.lists(st.integers(0, 40), min_size=measurements.minutes, max_size=measurements.minutes))
    runs.append(replace(runs[0], floors=np.array(floors, np.int32)))
    return runs, measurements


def advised(policy: Policy) -> Policy:
    return policy.model_copy(update={"horizontal": policy.horizontal.model_copy(update={"sizing": "quantile"})})


class Contrary:
    """Wants more when there are few pods and fewer when there are many; at times it has no opinion."""

    def counts(self, situation: Situation) -> np.ndarray:
        counts = np.where(
            situation.desired < 6, 2 * situation.desired, situation.ready + np.nan_to_num(situation.upper)
        )
        return np.where(situation.minute_of_day % 7 == 3, np.nan, counts)


def setup_for(workload: Workload, start_up: StartUp, timing: Timing, behavior: object) -> Setup:
    setup = setup_of(workload, HorizontalPolicy(requests_metric="rate"))
    assert isinstance(setup, Setup)
    return replace(setup, capacity=Capacity(0.7), behavior=behavior, start_up=start_up, timing=timing)  # type: ignore[arg-type]


@settings(deadline=None, max_examples=20)
@given(scenes())
def test_runs_on_arrays_go_as_each_alone(scene: tuple[list[Run], Measurements]) -> None:
    runs, measurements = scene
    for run, result in zip(runs, replay_runs(runs, measurements, tracks=True), strict=True):
        assert_same(result, list(worlds_of(run, measurements)))


def assert_same(result: RunResult, alone: list[World]) -> None:
    track, account = result.track, alone[-1].account
    assert track.desired.tolist() == [world.pods.desired for world in alone]
    assert track.ready.tolist() == [world.pods.ready for world in alone]
    assert track.floor.tolist() == [world.floor for world in alone]
    assert np.allclose(track.missing, 60.0 * np.diff([0.0, *(world.account.missing for world in alone)]), atol=1e-9)
    assert np.allclose(track.spent, 60.0 * np.diff([0.0, *(world.account.pod_hours for world in alone)]))
    assert (result.account.short, result.account.measured, result.account.changes) == (
        account.short,
        account.measured,
        account.changes,
    )
    for figure, other in zip(result.account.__getstate__(), account.__getstate__(), strict=True):
        if isinstance(figure, float):
            assert math.isclose(figure, other, rel_tol=1e-9, abs_tol=1e-12)

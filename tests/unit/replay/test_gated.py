"""Our policy behind its gate: the forecast acts where the service's own gate would let it."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, Signal
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.horizontal.gate_states import Gate, GateForecaster, GateState
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.compare import compare
from forecaster.replay.forecasts import ReplayForecasts
from forecaster.replay.gated import DailyGates, GateSince, acting_of, seasonal_minutes, with_seasonal
from forecaster.replay.strategies import HPA, gated_with, policy_with
from forecaster.replay.traces import Traces, measurements_of
from tests.support.builders import NOON, hpa, minutes, workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.replay.forecasts import ForecastRequest
    from forecaster.replay.traces import Measurements

DAY = 1440
ACTING, SEASONAL = Gate(GateState.ACTING), Gate(GateState.ACTING, GateForecaster.SEASONAL)


def traces(before: int, length: int) -> Traces:
    """A workload with a peak of an hour each day, which begins at noon."""
    minute = np.arange(before + length) - before
    cores = np.where(minute % DAY < 60, 8.0, 1.0)
    web = workload(autoscaler=hpa(lowest=1, highest=100))
    return Traces((web,), NOON - minutes(before - 1), {CPU: cores[None]})


def boundless(measurements: Measurements, signals: Sequence[Signal], request: ForecastRequest) -> ReplayForecasts:
    """Forecasts of far more demand than comes."""
    values = np.full((measurements.minutes, 1, len(measurements.traces.workloads)), 30.0)
    return ReplayForecasts(request.model, request.span, (0.5,), dict.fromkeys(signals, values))


def test_a_forecast_that_cannot_be_judged_yet_does_not_act() -> None:
    recorded = traces(200, 100)
    both = (HPA, policy_with("prior"), gated_with("prior"))
    outcome = compare(
        recorded,
        Policies(Policy()),
        both,
        begin=NOON,
        until=recorded.end,
        assumed=Assumptions(shares=(1.0,)),
        forecasting=boundless,
    )
    (stood,) = outcome.gates.values()
    assert [since.gate.standing for since in stood] == [GateState.OBSERVE]
    assert outcome.own("gated").pod_hours < outcome.own("policy").pod_hours / 2
    assert outcome.own("gated").missing == outcome.own(HPA.name).missing


def test_a_gate_is_judged_with_every_day_by_what_was_known_then() -> None:
    recorded = traces(4 * DAY, 2 * DAY)
    measurements = measurements_of(recorded, NOON, 2 * DAY - 1)
    stood = DailyGates(measurements, Assumptions(), "prior").of({0: Policy()})[0]
    assert [since.minute for since in stood] == [0, DAY]
    assert all(since.gate.since is not None for since in stood)


def test_a_forecast_acts_from_the_day_of_its_gate_on() -> None:
    stood = (GateSince(0, Gate()), GateSince(3, ACTING))
    assert acting_of(stood, 5).tolist() == [False, False, False, True, True]


def test_yesterdays_load_is_the_forecast_where_the_gate_says_so() -> None:
    recorded = traces(2 * DAY, 2 * DAY)
    measurements = measurements_of(recorded, NOON, 2 * DAY - 1)
    span = PeakSpan(minutes(5), minutes(5))
    flat = ReplayForecasts("model", span, (0.5, 0.9), {CPU: np.full((2 * DAY - 1, 2, 1), 3.0)})
    stood = (GateSince(0, ACTING), GateSince(DAY, SEASONAL))
    assert seasonal_minutes(stood, DAY + 2) == [DAY, DAY + 1]
    gates = DailyGates(measurements, Assumptions(), "prior")
    forecast = with_seasonal(flat, {0: stood}, gates).values[CPU][:, :, 0]
    assert forecast[DAY - 1].tolist() == [3.0, 3.0]
    assert forecast[DAY + 20].tolist() == [8.0, 8.0]
    assert forecast[DAY + 600].tolist() == [1.0, 1.0]


def test_one_workload_that_goes_by_yesterday_costs_no_memory_for_each_minute_of_all_others() -> None:
    fleet, length, two_days = 400, 300, 2 * DAY
    workloads = tuple(workload(f"web-{i}") for i in range(fleet))
    recorded = Traces(workloads, NOON - minutes(two_days), {CPU: np.ones((fleet, two_days + length))})
    measurements, span = measurements_of(recorded, NOON, length), PeakSpan(minutes(5), minutes(5))
    gates = DailyGates(measurements, Assumptions(), "prior")
    gates.history(CPU)
    flat = ReplayForecasts("model", span, (0.5,), {CPU: np.full((length, 1, fleet), 3.0)})
    tracemalloc.start()
    try:
        assert with_seasonal(flat, {0: (GateSince(0, SEASONAL),)}, gates).values[CPU][0].tolist()[0][:2] == [1.0, 3.0]
        assert tracemalloc.get_traced_memory()[1] < 2 * flat.values[CPU].nbytes
    finally:
        tracemalloc.stop()

"""Gates of a replay: judged by the service's own function, on the days before each replayed one.

The evidence is load and forecasts alone, whatever the pods did: so the gate state is known before a run is replayed.
The service judges a new workload at once and each of them once a day; here a day's gate is judged at its beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.latest import DayAgo
from forecaster.domain.policy import Policy
from forecaster.domain.signal import Signal
from forecaster.domain.window import DAY, MINUTE, Window
from forecaster.horizontal.columns import Floats
from forecaster.horizontal.gate_states import Gate, GateForecaster, Gates, GateState
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.forecasts import ReplayForecasts, ServiceHistory
from forecaster.replay.judging import PastDemand, cases_of, judged_gates
from forecaster.replay.setup import lead_time_of
from forecaster.replay.strategies import with_horizontal
from forecaster.replay.traces import Measurements


class GateEvidence(NamedTuple):
    """Shares of the demand that were short on the days judged, for the same pod-hours; NaN where that is not known."""

    reactive: float
    """Loss by measured demand alone."""
    short: float
    """Shortage by the forecast."""


class GateSince(NamedTuple):
    """State of the gate of one workload from a minute of the replay on."""

    minute: int
    gate: Gate
    evidence: GateEvidence | None = None

    @property
    def acting(self) -> bool:
        """Whether the forecast acts."""
        return self.gate.standing is GateState.ACTING


class DailyGates:
    """Gates of a replay, judged anew for every day from the workload's earlier days."""

    def __init__(self, measurements: Measurements, assumed: Assumptions, model: str) -> None:
        self.measurements, self._assumed, self._model = measurements, assumed, model
        self._histories: dict[Signal, ServiceHistory] = {}

    def of(self, policies: Mapping[int, Policy]) -> dict[int, tuple[GateSince, ...]]:
        """Return the gate states by series, day by day."""
        series, workloads = list(policies), self.measurements.traces.workloads
        gates, states = Gates.new(len(series), self.measurements.traces.signals), [list[GateSince]() for _ in series]
        for minute in range(0, self.measurements.minutes, DAY // MINUTE):
            now = self.measurements.instant(minute)
            past = PastDemand(HistoryAt(self, now))
            cases = [cases_of(workloads[row], self._policy(policies[row]), past) for row in series]
            gates = judged_gates(gates, cases, now.timestamp(), self._model)
            for row, stood in enumerate(states):
                evidence = GateEvidence(float(gates.reactive[row]), float(gates.short[row]))
                stood.append(GateSince(minute, gates.gate(row), evidence))
        return {row: tuple(stood) for row, stood in zip(series, states, strict=True)}

    def _policy(self, policy: Policy) -> Policy:
        lead = lead_time_of(policy.horizontal, self._assumed)
        return with_horizontal(policy, {"gate": True, "lead_time": lead})

    def history(self, signal: Signal) -> ServiceHistory:
        """Return one signal as the service stores it."""
        if signal not in self._histories:
            self._histories[signal] = ServiceHistory.of(self.measurements, signal)
        return self._histories[signal]


class HistoryAt(NamedTuple):
    """History as it was at one instant."""

    gates: DailyGates
    now: datetime

    def window(self, signal: Signal, step: timedelta) -> Window:
        """The latest hours, or the latest weeks."""
        history = self.gates.history(signal)
        return history.minutes(self.now) if step == MINUTE else history.weeks(self.now)


def acting_of(stood: Sequence[GateSince], minutes: int) -> NDArray[np.bool_]:
    """[minute] whether the forecast acts."""
    acting = np.zeros(minutes, np.bool_)
    for state in stood:
        acting[state.minute :] = state.acting
    return acting


def with_seasonal(
    forecasts: ReplayForecasts, stood: Mapping[int, Sequence[GateSince]], gates: DailyGates
) -> ReplayForecasts:
    """The forecasts with yesterday's load in their place where a gate says so."""
    measurements, span = gates.measurements, forecasts.span
    signals = [signal for signal in measurements.traces.signals if signal in forecasts.values]
    values: dict[str, Floats] = {signal: forecasts.values[signal].copy() for signal in signals}
    seasonal: dict[int, list[int]] = defaultdict(list)
    for series, states in stood.items():
        for minute in seasonal_minutes(states, measurements.minutes):
            seasonal[minute].append(series)
    for minute, rows in seasonal.items():
        begin = measurements.instant(minute) + span.lead_time
        for signal in signals:
            yesterday = DayAgo(gates.history(signal).weeks(measurements.instant(minute)), measurements.zones)
            for row in rows:
                peak = yesterday.peak(measurements.traces.workloads[row].id, begin, begin + span.length)
                values[signal][minute, :, row] = np.nan if peak is None else peak
    return replace(forecasts, values={**forecasts.values, **values})


def seasonal_minutes(stood: Sequence[GateSince], minutes: int) -> list[int]:
    """The minutes in which yesterday's load is the forecast."""
    ends = [*(state.minute for state in stood[1:]), minutes]
    return [
        minute
        for state, end in zip(stood, ends, strict=True)
        if state.gate.forecaster is GateForecaster.SEASONAL
        for minute in range(state.minute, end)
    ]

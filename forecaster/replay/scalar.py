"""The replay of one lane with the service's own `decide` and the exact HPA, call by call: the measure of `fast`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from forecaster.decisions.decide import decide
from forecaster.decisions.gate import Gate, Standing
from forecaster.decisions.quantile import stated_quantile
from forecaster.decisions.state import ScalingState
from forecaster.domain.decision import Scale
from forecaster.domain.outlook import Measured, PeakForecast, SignalForecast, Unknown
from forecaster.domain.signal import DEMAND
from forecaster.domain.window import MINUTE
from forecaster.forecasting.peaks import HIGH, LOW, MEDIAN
from forecaster.replay.advice import ahead_of
from forecaster.replay.lane import Played, Track
from forecaster.replay.world import NO_FLOOR, Demand, after_minute, beginning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from forecaster.domain.policy import Policy
    from forecaster.domain.signal import Signal
    from forecaster.replay.foresight import Foresight
    from forecaster.replay.lane import Lane
    from forecaster.replay.pods import Pods
    from forecaster.replay.sight import Sight
    from forecaster.replay.world import World

UNSEEN = Unknown("no sample that is new enough")
UNFORESEEN = Unknown("no forecast")
GATES = (Gate(Standing.OBSERVE), Gate(Standing.ACTING))


def play(lane: Lane, sight: Sight) -> Played:
    """The whole way of one lane."""
    worlds = list(worlds_of(lane, sight))
    missing = np.diff([0.0, *(world.account.missing for world in worlds)])
    spent = np.diff([0.0, *(world.account.pod_hours for world in worlds)])
    track = Track(
        np.array([world.pods.asked for world in worlds], np.int32),
        np.array([world.pods.ready for world in worlds], np.int32),
        np.array([world.floor for world in worlds], np.int32),
        missing * 60.0,
        spent * 60.0,
    )
    return Played(worlds[-1].account, track)


def worlds_of(lane: Lane, sight: Sight) -> Iterator[World]:
    """The world after each minute."""
    world, decider = beginning(lane.replicas, sight.begin), Decider(lane, sight) if lane.policy else None
    demand = _Demands(lane, sight)
    for minute in range(sight.minutes):
        now = sight.instant(minute)
        floor = decider.floor(world, minute, now) if decider else _stated(lane, minute)
        world = after_minute(world, lane.setup, demand.at(minute), floor, now)
        yield world


def _stated(lane: Lane, minute: int) -> int:
    return NO_FLOOR if lane.floors is None else int(lane.floors[minute])


class _Demands:
    """What the HPA sees, and what comes."""

    def __init__(self, lane: Lane, sight: Sight) -> None:
        row = lane.row
        signals = {*DEMAND, *sight.traces.signals}
        self._seen = {signal: sight.seen(signal, -1, sight.minutes + 1)[:, row] for signal in signals}
        self._coming = sight.seen(lane.setup.capacity.signal, 1, sight.minutes)[:, row]

    def at(self, minute: int) -> Demand:
        earlier = {signal: float(values[minute]) for signal, values in self._seen.items()}
        seen = {signal: float(values[minute + 1]) for signal, values in self._seen.items()}
        return Demand(seen, float(self._coming[minute]), earlier)


class Decider:
    """`decide` for one lane, with the state that it carries."""

    def __init__(self, lane: Lane, sight: Sight) -> None:
        if lane.policy is None:
            raise TypeError("a lane without a policy decides nothing")
        self._lane, self._sight = lane, sight
        self._workload, self._policy = lane.workload, lane.policy
        self._outlooks = _Outlooks(lane, lane.policy, sight)
        self._state = ScalingState.beginning(lane.replicas, sight.begin)

    def floor(self, world: World, minute: int, now: datetime) -> int:
        """The recommended count; a hold leaves the floor where it is."""
        pods = world.pods
        workload = replace(self._workload, replicas=pods.asked, ready_replicas=pods.ready)
        outlooks = self._advised(self._outlooks.at(minute, now), pods, minute, now)
        recommendation, self._state = decide(
            workload, outlooks, self._policy, self._state, now, gate=self._gate(minute)
        )
        replicas = recommendation.replicas
        return replicas.replicas if isinstance(replicas, Scale) else world.floor

    def _gate(self, minute: int) -> Gate | None:
        acting = self._lane.acting
        return None if acting is None else GATES[bool(acting[minute])]

    def _advised(
        self, outlooks: dict[Signal, SignalForecast], pods: Pods, minute: int, now: datetime
    ) -> dict[Signal, SignalForecast]:
        """With the advisor's demand in the place of one forecast, where it has an opinion."""
        ahead = ahead_of([self._lane], self._sight, slice(minute, minute + 1))
        if ahead is None or self._lane.foresight is None:
            return outlooks
        demand = float(ahead.demand(0, np.array([pods.asked]), np.array([pods.ready]))[0])
        if np.isnan(demand):
            return outlooks
        span = self._lane.foresight.span
        begin = now + span.lead_time
        said = PeakForecast("advisor", 0.5, demand, demand, demand, demand, begin, begin + span.length)
        return {**outlooks, ahead.signal: replace(outlooks[ahead.signal], ahead=said)}


class _Outlooks:
    """What one lane knows of its signals."""

    def __init__(self, lane: Lane, policy: Policy, sight: Sight) -> None:
        row, self._foresight = lane.row, lane.foresight
        self._row = row
        self._quantile = stated_quantile(policy.horizontal)
        self._measured = {signal: sight.measured(signal, policy)[:, row] for signal in sight.known}
        self._ages = {signal: known.age[:, row] for signal, known in sight.known.items()}
        self._peaks = peaks_of(lane.foresight, sight, policy, row)

    def at(self, minute: int, now: datetime) -> dict[Signal, SignalForecast]:
        return {signal: self._outlook(signal, minute, now) for signal in self._measured}

    def _outlook(self, signal: Signal, minute: int, now: datetime) -> SignalForecast:
        value, peak = float(self._measured[signal][minute]), float(self._peaks[signal][minute])
        measured = UNSEEN if np.isnan(value) else Measured(value, now - int(self._ages[signal][minute]) * MINUTE)
        if np.isnan(peak) or self._foresight is None:
            return SignalForecast(signal, measured, UNFORESEEN)
        return SignalForecast(signal, measured, self._ahead(signal, minute, peak, self._foresight, now))

    def _ahead(self, signal: Signal, minute: int, peak: float, foresight: Foresight, now: datetime) -> PeakForecast:
        begin = now + foresight.span.lead_time
        peaks = tuple(foresight.values[signal][minute, self._row].tolist())
        low, median, high = (float(np.interp(level, foresight.levels, peaks)) for level in (LOW, MEDIAN, HIGH))
        return PeakForecast(
            model=foresight.name,
            quantile=self._quantile,
            peak=peak,
            low=low,
            median=median,
            high=high,
            begin=begin,
            until=begin + foresight.span.length,
            levels=foresight.levels,
            peaks=peaks,
        )


def peaks_of(
    foresight: Foresight | None, sight: Sight, policy: Policy, row: int
) -> dict[Signal, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """[minute] the forecast peak by signal; NaN where there is none or too little history for one."""
    nothing, found = np.full(sight.minutes, np.nan), {}
    for signal in sight.known:
        peak = foresight.peak(signal, stated_quantile(policy.horizontal)) if foresight else None
        allowed = sight.foreseeable(signal, policy)[:, row]
        found[signal] = nothing if peak is None else np.where(allowed, peak[:, row], np.nan)
    return found

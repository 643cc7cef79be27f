"""One run alone, call by call: the measure of the replay on arrays.
from forecaster.hpa.numbers import milli

Pods are values, the HPA is `forecaster.hpa`, and decisions are those of a table of one row, from facts that the
service would have: so a replay on arrays is held to the scalar HPA digit by digit, and its decisions to the service's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.decision import Scale
from forecaster.domain.signal import Measured, PeakForecast, Unknown
from forecaster.domain.window import HOUR, MINUTE
from forecaster.forecasting.peaks import HIGH, LOW, MEDIAN
from forecaster.horizontal.gate_states import Gate, GateState
from forecaster.horizontal.state import State
from forecaster.horizontal.targets import AmountTarget, UtilizationTarget, targets_of, usable
from forecaster.hpa.behavior import PastRecommendation, PastRecommendations, ScaleEvents, record_scale_event
from forecaster.hpa.limits import ReplicaBounds, limit
from forecaster.hpa.numbers import milli
from forecaster.hpa.proposals import (
    NO_SHARE,
    NoRecommendation,
    Share,
    Unmeasured,
    combine,
    from_average,
    from_utilization,
    per_pod_value,
)
from forecaster.hpa.spec import SHIPPED, tolerance_of
from forecaster.replay.account import Account
from forecaster.replay.engine import NO_FLOOR
from forecaster.replay.learned import LATEST, Situation
from tests.support.one_row import decide_one
from tests.support.outlook import SignalForecast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from forecaster.domain.policy import Policy
    from forecaster.horizontal.targets import PodTarget
    from forecaster.hpa.behavior import Behavior
    from forecaster.hpa.proposals import MetricProposal, Tolerance
    from forecaster.replay.account import Run
    from forecaster.replay.assumptions import StartUp
    from forecaster.replay.setup import Setup
    from forecaster.replay.traces import Measurements


class Starting(NamedTuple):
    """Pods that were requested together, and when they are ready."""

    pods: int
    ready_at: datetime


class PodsOfOne(NamedTuple):
    """The pods of one workload at one moment; `starting` from the first requested to the last, none of them empty."""

    ready: int
    starting: tuple[Starting, ...] = ()

    @property
    def pending(self) -> int:
        """Pods that do not serve yet."""
        return sum(batch.pods for batch in self.starting) if self.starting else 0

    @property
    def desired(self) -> int:
        """Pods that exist, ready or not: they are paid for, and an HPA sees them as `spec.replicas`."""
        return self.ready + self.pending


def arrived(pods: PodsOfOne, now: datetime) -> PodsOfOne:
    """The pods at `now`, when nobody requests another number."""
    serving = sum(batch.pods for batch in pods.starting if batch.ready_at <= now) if pods.starting else 0
    if not serving:
        return pods
    return PodsOfOne(pods.ready + serving, tuple(batch for batch in pods.starting if batch.ready_at > now))


def scaled(pods: PodsOfOne, replicas: int, ready_at: datetime) -> PodsOfOne:
    """The pods when `replicas` are requested; new ones are ready at `ready_at`.

    Removal takes the pods that are not ready first, and of those the youngest, as a ReplicaSet does.
    """
    more = replicas - pods.desired
    if more > 0:
        return pods._replace(starting=(*pods.starting, Starting(more, ready_at)))
    return _without(pods, -more)


def _without(pods: PodsOfOne, fewer: int) -> PodsOfOne:
    if fewer <= 0:
        return pods
    if not pods.starting:
        return PodsOfOne(pods.ready - fewer)
    older, (youngest, ready_at) = pods.starting[:-1], pods.starting[-1]
    if youngest > fewer:
        return PodsOfOne(pods.ready, (*older, Starting(youngest - fewer, ready_at)))
    return _without(PodsOfOne(pods.ready, older), fewer - youngest)


NO_SAMPLE = Unmeasured("no_samples", "nothing was measured")
NOT_READY = Unmeasured("no_samples_left", "no pod is ready")


@dataclass(frozen=True, slots=True)
class OneHpa:
    """An HPA under a controller with its shipped settings; `behavior` None means the limits of HPA rules §10."""

    targets: tuple[PodTarget, ...]
    bounds: ReplicaBounds
    behavior: Behavior | None = None
    tolerance: Tolerance = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", tolerance_of(self.behavior, SHIPPED))


class HpaMemory(NamedTuple):
    """Memory of the controller: recommendations, and with `behavior` the changes it made."""

    history: PastRecommendations = ()
    scale_ups: ScaleEvents = ()
    scale_downs: ScaleEvents = ()

    @classmethod
    def beginning(cls, replicas: int, now: datetime) -> HpaMemory:
        """An HPA that is seen for the first time (HPA rules §3, step 3)."""
        return cls((PastRecommendation(replicas, now),))


def next_replicas(
    hpa: OneHpa, pods: PodsOfOne, demand: Mapping[str, float], memory: HpaMemory, now: datetime
) -> tuple[int, HpaMemory]:
    """One sync: the replicas after it, and its memory (HPA rules §3, §9, §10, §11).

    `demand` is the measured total by signal, NaN where nothing was measured. A pass that finds too few or too many pods
    for the bounds asks for the bound and looks at no metric; a workload at zero stays there.
    """
    replicas, history = _wanted(hpa, pods, demand, memory, now)
    return replicas, _moved(hpa.behavior, memory._replace(history=history), replicas - pods.desired, now)


def _wanted(
    hpa: OneHpa, pods: PodsOfOne, demand: Mapping[str, float], memory: HpaMemory, now: datetime
) -> tuple[int, PastRecommendations]:
    bounds, current, history = hpa.bounds, pods.desired, memory.history
    if current == 0:
        return 0, history
    if not bounds.min_replicas <= current <= bounds.max_replicas:
        return min(max(current, bounds.min_replicas), bounds.max_replicas), history
    proposals = [_proposal(target, demand.get(target.signal, math.nan), pods, hpa.tolerance) for target in hpa.targets]
    recommendation = combine(proposals, current)
    if isinstance(recommendation, NoRecommendation):
        return current, history
    limited = limit(
        recommendation.replicas,
        current,
        bounds,
        hpa.behavior,
        history,
        now,
        scale_ups=memory.scale_ups,
        scale_downs=memory.scale_downs,
    )
    return limited.replicas, limited.history


def _moved(behavior: Behavior | None, memory: HpaMemory, change: int, now: datetime) -> HpaMemory:
    """HPA rules §11.4: changes are remembered where there is `behavior`."""
    if behavior is None or not change:
        return memory
    if change > 0:
        return memory._replace(scale_ups=record_scale_event(memory.scale_ups, change, now, behavior.scale_up.policies))
    return memory._replace(
        scale_downs=record_scale_event(memory.scale_downs, -change, now, behavior.scale_down.policies)
    )


def raised(hpa: OneHpa, floor: int) -> OneHpa:
    """Raise `minReplicas` of the HPA to `floor`, though never above `maxReplicas`."""
    lowest, highest = hpa.bounds.min_replicas, hpa.bounds.max_replicas
    return hpa if floor <= lowest else replace(hpa, bounds=ReplicaBounds(min(floor, highest), highest))


def _proposal(target: PodTarget, demand: float, pods: PodsOfOne, tolerance: Tolerance) -> MetricProposal | Unmeasured:
    """HPA rules §6, §8: without a ready pod there is no sample of a resource; a rate is measured elsewhere."""
    if math.isnan(demand):
        return NO_SAMPLE
    if target.signal.of_all_pods and isinstance(target, AmountTarget):
        return per_pod_value(milli(demand), milli(target.amount), pods.desired, tolerance)
    if not pods.ready:
        return NOT_READY
    ready = min(pods.ready, pods.desired)
    starting = pods.desired - ready
    if isinstance(target, AmountTarget):
        return from_average(
            milli(demand), ready, milli(target.amount), ready, pods.desired, tolerance, unready=starting
        )
    request = milli(target.request)
    unready = Share(starting, starting * request) if starting else NO_SHARE
    return from_utilization(
        milli(demand), ready * request, target.percent, ready, pods.desired, tolerance, unready=unready
    )


def start_up_at(start_up: StartUp, now: datetime) -> timedelta:
    """Start-up time of the pods that are requested at `now`."""
    if len(start_up.durations) == 1:
        return start_up.durations[0]
    return start_up.durations[mixed(int(now.timestamp()) + start_up.seed) % len(start_up.durations)]


WORD = 2**64 - 1


def mixed(number: int) -> int:
    """64 well mixed bits of a number (the finalizer of splitmix64; Steele, Lea, Flood 2014)."""
    number = (number * 0x9E3779B97F4A7C15) & WORD
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & WORD
    return number ^ (number >> 31)


class World(NamedTuple):
    """Pods, the HPA's memory, the floor in force, and the account so far."""

    pods: PodsOfOne
    memory: HpaMemory
    floor: int = NO_FLOOR
    account: Account = Account()


class Demand(NamedTuple):
    """Totals of one workload, NaN where nothing was measured."""

    latest: Mapping[str, float]
    """The minute that is over, by signal."""
    coming: float
    """The minute that begins, of the signal that fills a pod."""
    earlier: Mapping[str, float]
    """Totals of the minute before `latest`, which are known until that one has been scraped."""


def worlds_of(run: Run, measurements: Measurements) -> Iterator[World]:
    """The world after each minute."""
    begin = measurements.begin
    world = World(PodsOfOne(run.replicas), HpaMemory.beginning(run.replicas, begin))
    hpa = OneHpa(run.setup.targets, run.setup.bounds, run.setup.behavior)
    decisions = DecisionsOfOne(run, measurements) if run.policy else None
    for minute in range(measurements.minutes):
        now = measurements.instant(minute)
        floor = decisions.floor(world, minute, now) if decisions else _stated(run, minute, world.floor)
        world = _after_minute(world, hpa, run.setup, demand_at(run, measurements, minute), floor, now)
        yield world


def _stated(run: Run, minute: int, before: int) -> int:
    return before if run.floors is None else int(run.floors[minute])


def demand_at(run: Run, measurements: Measurements, minute: int) -> Demand:
    """Demand that the HPA reads, and demand that comes."""
    past = {
        signal: measurements.past(signal, minute - 1, 2)[:, run.series].tolist()
        for signal in measurements.traces.signals
    }
    coming = float(measurements.past(run.setup.capacity.signal, minute + 1, 1)[0, run.series])
    return Demand(
        {signal: values[1] for signal, values in past.items()},
        coming,
        {signal: values[0] for signal, values in past.items()},
    )


def _after_minute(world: World, hpa: OneHpa, setup: Setup, demand: Demand, floor: int, now: datetime) -> World:
    """A floor computed at `now` comes too late for the sync at `now` and counts from one of the next."""
    timing = setup.timing
    for sync in range(timing.syncs):
        if sync == timing.first_floored:
            world = world._replace(floor=floor)
        known = demand.latest if sync >= timing.first_fresh else demand.earlier
        world = _after_sync(world, hpa, setup, known, demand.coming, now + sync * timing.sync)
    return world._replace(pods=arrived(world.pods, now + MINUTE), floor=floor)


def _after_sync(
    world: World, hpa: OneHpa, setup: Setup, known: Mapping[str, float], coming: float, now: datetime
) -> World:
    pods = arrived(world.pods, now)
    replicas, memory = next_replicas(raised(hpa, world.floor), pods, known, world.memory, now)
    changed = replicas != pods.desired
    if changed:
        pods = scaled(pods, replicas, now + start_up_at(setup.start_up, now))
    cost = accounted(pods, coming, setup.capacity.amount, setup.timing.sync, changes=int(changed))
    if not (world.account + cost).measured:
        cost = Account(changes=int(changed))  # before its first measurement a workload is not there
    return World(pods, memory, world.floor, world.account + cost)


def accounted(pods: PodsOfOne, demand: float, capacity: float, duration: timedelta, *, changes: int) -> Account:
    """The account of pods under a steady demand; a pod is paid for from its request on."""
    hours = duration / HOUR
    if math.isnan(demand):
        return Account(pods.desired * hours, changes=changes)
    missing = max(0.0, demand - pods.ready * capacity)
    short = duration if missing else timedelta()
    return Account(pods.desired * hours, duration, short, demand * hours, missing * hours, changes)


GATES = (Gate(GateState.OBSERVE), Gate(GateState.ACTING))


class DecisionsOfOne:
    """The service's decision about one workload, with the state that it carries."""

    def __init__(self, run: Run, measurements: Measurements) -> None:
        self._run, self._measurements, self._state = run, measurements, State.new(1)
        self._medians: list[float] = []

    def floor(self, world: World, minute: int, now: datetime) -> int:
        """The recommended count; a hold leaves the floor where it is."""
        policy, acting = self._run.policy, self._run.acting
        assert policy is not None
        workload = replace(self._run.workload, replicas=world.pods.desired, ready_replicas=world.pods.ready)
        known = {signal: self._known(signal, policy, minute, now) for signal in self._measurements.latest}
        known = self._advised(known, world.pods, policy, now)
        gate = None if acting is None else GATES[bool(acting[minute])]
        recommendation, self._state = decide_one(workload, known, policy.horizontal, self._state, now, gate=gate)
        return recommendation.replicas.replicas if isinstance(recommendation.replicas, Scale) else world.floor

    def _known(self, signal: str, policy: Policy, minute: int, now: datetime) -> SignalForecast:
        latest, series = self._measurements.latest[signal], self._run.series
        value, age = float(latest.values[minute, series]), int(latest.age[minute, series]) * MINUTE
        if math.isnan(value):
            return SignalForecast(signal, Unknown("no sample"), Unknown("no forecast"))
        if age > policy.max_sample_age:
            return SignalForecast(signal, Unknown("too old", stale=True), Unknown("no forecast"))
        enough = int(latest.known[minute, series]) * MINUTE >= policy.min_history
        ahead = self._forecast(signal, policy, minute, now) if enough else Unknown("too little history")
        return SignalForecast(signal, Measured(value, now - age), ahead)

    def _forecast(self, signal: str, policy: Policy, minute: int, now: datetime) -> PeakForecast | Unknown:
        forecasts = self._run.forecasts
        if forecasts is None or signal not in forecasts.values:
            return Unknown("no forecast")
        quantile = policy.horizontal.quantile
        peaks = forecasts.values[signal][minute, :, self._run.series]
        peak = forecasts.peak(signal, quantile)
        if np.isnan(peaks).any() or peak is None:
            return Unknown("no forecast")
        low, median, high = (float(np.interp(level, forecasts.levels, peaks)) for level in (LOW, MEDIAN, HIGH))
        begin = now + forecasts.span.lead_time
        return PeakForecast(
            model=forecasts.name,
            quantile=quantile,
            peak=float(peak[minute, self._run.series]),
            low=low,
            median=median,
            high=high,
            begin=begin,
            until=begin + forecasts.span.length,
            levels=forecasts.levels,
            peaks=tuple(peaks.tolist()),
        )

    def _advised(
        self, known: dict[str, SignalForecast], pods: PodsOfOne, policy: Policy, now: datetime
    ) -> dict[str, SignalForecast]:
        """Put the advisor's demand in the place of one forecast, where it has an opinion."""
        advisor, targets = self._run.advisor, usable(targets_of(self._run.workload, policy.horizontal))
        if advisor is None or not targets:
            return known
        target, outlook = targets[0], known[targets[0].signal]
        ahead = outlook.ahead if isinstance(outlook.ahead, PeakForecast) else None
        median = math.nan if ahead is None else float(np.interp(0.5, ahead.levels, ahead.peaks))
        before = self._medians[-LATEST] if len(self._medians) >= LATEST else math.nan
        self._medians.append(median)
        if ahead is None or not isinstance(outlook.measured, Measured):
            return known
        pod = milli(target.amount) / 1000 if isinstance(target, AmountTarget) else _share(target)
        numbers = (outlook.measured.value, median, float(np.interp(0.9, ahead.levels, ahead.peaks)), before)
        counts = (float(pods.desired), float(pods.ready))
        columns = [np.array([number / pod]) for number in numbers] + [np.array([count]) for count in counts]
        advised_count = float(advisor.counts(Situation(*columns, minute_of_day=now.hour * 60 + now.minute))[0])
        if math.isnan(advised_count):
            return known
        advised = replace(ahead, peak=max(advised_count - 0.5, 0.0) * pod, levels=(), peaks=())
        return {**known, target.signal: replace(outlook, ahead=advised)}


def _share(target: UtilizationTarget) -> float:
    return target.percent * milli(target.request) / 100 / 1000

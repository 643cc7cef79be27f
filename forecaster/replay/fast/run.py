"""All lanes through all minutes: batch by batch, a few thousand lanes at a time, so that they stay in the caches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from forecaster.decisions.targets import full_pod
from forecaster.forecasting.peaks import LOW
from forecaster.replay.account import HOUR, Account
from forecaster.replay.advice import ahead_of
from forecaster.replay.fast.ahead import AheadOf
from forecaster.replay.fast.asking import targets_of
from forecaster.replay.fast.batch import Rules, batches, bounds_of, decided_targets
from forecaster.replay.fast.calendar import calendar_of
from forecaster.replay.fast.clamping import Clamps
from forecaster.replay.fast.deciding import Deciders, Seen
from forecaster.replay.fast.draws import Draws
from forecaster.replay.fast.hpa import Hpas
from forecaster.replay.fast.numbers import Counts, Flags, Floats, millis
from forecaster.replay.fast.outages import Loads, Outages
from forecaster.replay.fast.pods import Pods
from forecaster.replay.lane import Played, Track

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import timedelta

    from forecaster.decisions.targets import PodTarget
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.signal import Signal
    from forecaster.replay.advice import Ahead
    from forecaster.replay.fast.worth import Worth
    from forecaster.replay.lane import Lane
    from forecaster.replay.setup import Setup
    from forecaster.replay.sight import Sight

CHUNK = 4096
BLOCK = 360
"""Minutes whose inputs are made ready together: 12 MB for each signal of a chunk."""


def play_all(lanes: Sequence[Lane], sight: Sight, *, tracks: bool = False) -> list[Played]:
    """Every lane, in their order; tracks only if they are asked for."""
    played: dict[int, Played] = {}
    for rules, positions in batches(lanes).items():
        for first in range(0, len(positions), CHUNK):
            some = positions[first : first + CHUNK]
            walk = Walk.of(rules, [lanes[i] for i in some], sight, tracks=tracks)
            played.update(zip(some, walk.whole(), strict=True))
    return [played[i] for i in range(len(lanes))]


@dataclass(slots=True)
class Walk:
    """A chunk of lanes on its way."""

    rules: Rules
    lanes: Sequence[Lane]
    sight: Sight
    hpas: Hpas
    deciders: Deciders | None
    pods: Pods
    draws: Draws
    ahead: AheadOf
    rows: Counts
    capacity: Floats
    sums: Sums
    floor: Counts
    stated: Counts | None
    tracks: Tracks | None

    @classmethod
    def of(cls, rules: Rules, lanes: Sequence[Lane], sight: Sight, *, tracks: bool) -> Walk:
        """Everything at the beginning."""
        setups = [lane.setup for lane in lanes]
        ready = np.array([lane.replicas for lane in lanes], np.int64)
        draws = Draws([setup.start_up for setup in setups], rules.timing.sync)
        return cls(
            rules=rules,
            lanes=lanes,
            sight=sight,
            hpas=_hpas(setups, rules),
            deciders=_deciders(lanes, rules, sight),
            pods=Pods(ready, draws.longest + 1),
            draws=draws,
            ahead=AheadOf(lanes, sight),
            rows=np.array([lane.row for lane in lanes], np.int64),
            capacity=np.array([setup.capacity.amount for setup in setups]),
            sums=Sums(len(lanes), rules.timing.sync),
            floor=np.zeros(len(lanes), np.int64),
            stated=_stated(lanes),
            tracks=Tracks(sight.minutes, len(lanes)) if tracks else None,
        )

    def whole(self) -> list[Played]:
        """From the first minute to the last."""
        for first in range(0, self.sight.minutes, BLOCK):
            count = min(BLOCK, self.sight.minutes - first)
            inputs = Inputs.of(self, first, count)
            for offset in range(count):
                self._minute(first + offset, inputs, offset)
        accounts = self.sums.accounts()
        if self.tracks is None:
            return [Played(account) for account in accounts]
        return [Played(account, track) for account, track in zip(accounts, self.tracks.each(), strict=True)]

    def _minute(self, minute: int, inputs: Inputs, offset: int) -> None:
        timing, floor = self.rules.timing, self.floor
        if self.deciders:
            self.floor = self.deciders.floors(self.pods, inputs.known_at(offset, self.pods), floor, minute)
        elif self.stated is not None:
            self.floor = self.stated[minute]
        coming, known = inputs.coming[offset], inputs.known[offset]
        earlier, seen = inputs.seen_at(offset), inputs.seen_at(offset + 1)
        missing, asked = np.zeros(len(self.lanes)), np.zeros(len(self.lanes), np.int64)
        for step in range(timing.syncs):
            sees = seen if step >= timing.first_fresh else earlier
            in_force = self.floor if step >= timing.first_floored else floor
            self._sync(minute * timing.syncs + step, sees, in_force)
            missing += self.sums.add(self.pods, coming, self.capacity)
            asked += self.pods.asked
        self.sums.minute(asked, known, timing.syncs)
        self.pods.arrive((minute + 1) * timing.syncs, self.draws.same)
        if self.tracks:
            self.tracks.add(minute, self.pods, self.floor, missing / timing.syncs, asked / timing.syncs)

    def _sync(self, sync: int, seen: Mapping[Signal, Counts], floor: Counts) -> None:
        self.pods.arrive(sync, self.draws.same)
        wanted = self.hpas.wanted(self.pods, seen, floor, sync)
        change = self.pods.scale(wanted, sync, self.draws.at(self.sight.begin + sync * self.rules.timing.sync))
        self.hpas.moved(change, sync)
        self.sums.changes += change != 0


def _stated(lanes: Sequence[Lane]) -> Counts | None:
    """[minute, lane] floors that were decided before; all lanes of a batch have them, or none."""
    stated = [lane.floors for lane in lanes if lane.floors is not None]
    return np.stack(stated, axis=1).astype(np.int64) if stated else None


def _hpas(setups: Sequence[Setup], rules: Rules) -> Hpas:
    targets = [targets_of([setup.scaler.targets[i] for setup in setups]) for i in range(len(rules.kinds))]
    least = np.array([setup.scaler.bounds.min_replicas for setup in setups], np.int64)
    most = np.array([setup.scaler.bounds.max_replicas for setup in setups], np.int64)
    return Hpas(targets, least, most, rules.behavior, setups[0].scaler.tolerance, rules.timing.sync)


def _deciders(lanes: Sequence[Lane], rules: Rules, sight: Sight) -> Deciders | None:
    if rules.policy is None or not rules.decided_kinds:
        return None
    policy = rules.policy.horizontal
    all_targets = [decided_targets(lane) for lane in lanes]
    by_target = [[some[i] for some in all_targets] for i in range(len(rules.decided_kinds))]
    calendar = calendar_of([lane.policy.horizontal for lane in lanes if lane.policy], sight)
    floors, frozen = calendar or (None, None)
    clamps = Clamps(policy, *bounds_of(lanes), _outages(by_target, policy), floors)
    return Deciders([targets_of(some) for some in by_target], policy, clamps, frozen, _acting(lanes))


def _acting(lanes: Sequence[Lane]) -> Flags | None:
    """[minute, lane]; all lanes of a batch are gated, or none."""
    gated = [lane.acting for lane in lanes if lane.acting is not None]
    return np.stack(gated, axis=1) if gated else None


def _outages(by_target: Sequence[Sequence[PodTarget]], policy: HorizontalPolicy) -> Outages | None:
    if not policy.outage_hold:
        return None
    pods = [[full_pod(one, policy.peak_target) for one in some] for some in by_target]
    return Outages(policy.outage_hold, [some[0].signal for some in by_target], np.array(pods))


@dataclass(slots=True, eq=False)
class Inputs:
    """What a block of minutes brings, in milli-units by signal: [minute, lane], for HPAs one minute more before it."""

    seen: Mapping[Signal, Counts]
    measured: Mapping[Signal, Counts]
    ahead: Mapping[Signal, Counts]
    worth: Sequence[Worth]
    coming: Floats
    """0 where it is not known."""
    known: Flags
    advised: Ahead | None
    loads: Loads | None

    @classmethod
    def of(cls, walk: Walk, first: int, count: int) -> Inputs:
        """Of the minutes from `first` on."""
        rules, sight, rows = walk.rules, walk.sight, walk.rows
        seen = {kind.signal: millis(sight.seen(kind.signal, first - 1, count + 1, rows)) for kind in rules.kinds}
        span = slice(first, first + count)
        measured, ahead = {}, {}
        if rules.policy:
            for signal in {kind.signal for kind in rules.decided_kinds}:
                measured[signal] = millis(sight.measured(signal, rules.policy, span)[:, rows])
                ahead[signal] = millis(walk.ahead.peaks(signal, span))
        worth = (
            walk.ahead.worths(rules.decided_kinds, span)
            if rules.policy and rules.policy.horizontal.sizing == "newsvendor"
            else ()
        )
        coming = sight.seen(rules.fills, first + 1, count, rows)
        known, advised = ~np.isnan(coming), ahead_of(walk.lanes, sight, span)
        return cls(seen, measured, ahead, worth, np.nan_to_num(coming), known, advised, _loads(walk, span))

    def seen_at(self, place: int) -> dict[Signal, Counts]:
        """What the HPAs see."""
        return {signal: values[place] for signal, values in self.seen.items()}

    def known_at(self, place: int, pods: Pods) -> Seen:
        """What is decided by."""
        ahead = {signal: values[place] for signal, values in self.ahead.items()}
        loads = self.loads.at(place) if self.loads else None
        if self.advised is not None:
            demand, signal = self.advised.demand(place, pods.asked, pods.ready), self.advised.signal
            advised = millis(demand)
            ahead[signal] = np.where(advised < 0, ahead[signal], advised)
            loads = loads.advised(signal, demand) if loads else None
        measured = {signal: values[place] for signal, values in self.measured.items()}
        return Seen(measured, ahead, [one.at(place) for one in self.worth], loads)


def _loads(walk: Walk, span: slice) -> Loads | None:
    """What outages are looked for in, where somebody does."""
    policy = walk.rules.policy
    if policy is None or not policy.horizontal.outage_hold:
        return None
    signals = {kind.signal for kind in walk.rules.decided_kinds}
    measured = {one: walk.sight.measured(one, policy, span)[:, walk.rows] for one in signals}
    return Loads(measured, {one: walk.ahead.peaks(one, span, LOW) for one in signals})


@dataclass(slots=True)
class Sums:
    """The accounts of all lanes, while they grow."""

    lanes: int
    sync: timedelta
    asked: Counts = field(init=False)
    measured: Counts = field(init=False)
    short: Counts = field(init=False)
    changes: Counts = field(init=False)
    demand: Floats = field(init=False)
    missing: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.asked, self.measured, self.short, self.changes = (np.zeros(self.lanes, np.int64) for _ in range(4))
        self.demand, self.missing = np.zeros(self.lanes), np.zeros(self.lanes)

    def add(self, pods: Pods, coming: Floats, capacity: Floats) -> Floats:
        """One sync period; gives what is missing in it, 0 where nothing was measured."""
        missing = coming - pods.ready * capacity
        np.maximum(missing, 0.0, out=missing)
        self.short += missing > 0
        self.demand += coming
        self.missing += missing
        return missing

    def minute(self, asked: Counts, known: Flags, syncs: int) -> None:
        """All of a minute's sync periods: pods asked for in each, summed, and where there was a measurement."""
        self.asked += asked
        self.measured += known * syncs

    def accounts(self) -> list[Account]:
        """As values."""
        hours = self.sync / HOUR
        columns = (self.asked, self.measured, self.short, self.demand, self.missing, self.changes)
        return [
            Account(asked * hours, measured * self.sync, short * self.sync, demand * hours, missing * hours, changes)
            for asked, measured, short, demand, missing, changes in zip(*(c.tolist() for c in columns), strict=True)
        ]


class Tracks:
    """The tracks of all lanes, while they grow: [minute, lane]."""

    def __init__(self, minutes: int, lanes: int) -> None:
        self.asked, self.ready, self.floor = (np.zeros((minutes, lanes), np.int32) for _ in range(3))
        self.missing, self.spent = np.zeros((minutes, lanes)), np.zeros((minutes, lanes))

    def add(self, minute: int, pods: Pods, floor: Counts, missing: Floats, spent: Floats) -> None:
        """A minute is over."""
        self.asked[minute], self.ready[minute], self.floor[minute] = pods.asked, pods.ready, floor
        self.missing[minute], self.spent[minute] = missing, spent

    def each(self) -> Iterator[Track]:
        """One after the other."""
        for lane in range(self.asked.shape[1]):
            counts = (self.asked[:, lane], self.ready[:, lane], self.floor[:, lane])
            yield Track(*counts, self.missing[:, lane], self.spent[:, lane])

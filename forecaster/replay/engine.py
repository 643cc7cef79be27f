"""The replay: runs minute by minute, decided by `horizontal.decide`, beside HPAs and pods that take time to start.

Runs that can be decided together are rows of one replay, some thousands at a time, so that they stay in the caches.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from forecaster.domain.window import HOUR
from forecaster.horizontal.columns import Counts, Flags, Floats, millis
from forecaster.horizontal.decide import decide
from forecaster.horizontal.inputs import Inputs, Kind, Rules
from forecaster.horizontal.state import State
from forecaster.horizontal.targets import kind_of
from forecaster.horizontal.terms import UNREADABLE_TERMS, Terms, target_columns, target_numbers
from forecaster.hpa.behavior import Behavior
from forecaster.replay.account import Account, Run, RunResult, Track
from forecaster.replay.assumptions import Feedback, ReplayLoad, Timing, load_of
from forecaster.replay.hpas import Hpas, Usage
from forecaster.replay.inputs import INPUT_BLOCK, DecisionInputs, rows_of, terms_of_run
from forecaster.replay.learned import LATEST, Advisor, advised, median_of
from forecaster.replay.pods import Draws, Pods
from forecaster.replay.traces import Measurements

FloorRule = Callable[[int, Pods, Counts, ReplayLoad], Counts]

CHUNK = 4096
NO_FLOOR = 0


class OvertakenError(Exception):
    """The replay is no longer needed, or not now."""


class Alike(NamedTuple):
    """Properties shared by runs that are replayed together."""

    kinds: tuple[Kind, ...]
    behavior: Behavior | None
    start_ups: tuple[timedelta, ...]
    timing: Timing
    fills: str
    """The signal that fills a pod."""
    feedback: Feedback
    rules: Rules | None
    """Rules of the decisions; None where none are made."""
    stated: bool
    """Whether the floors were decided before."""
    advisor: int | None
    """Identity of the source that replaces the forecast."""


def replay_runs(
    runs: Sequence[Run],
    measurements: Measurements,
    *,
    tracks: bool = False,
    overtaken: Callable[[], bool] | None = None,
    warm_up: int = 0,
) -> list[RunResult]:
    """Return the results in order; tracks only if requested, accounts without the minutes of `warm_up`.

    Raises:
        OvertakenError: `overtaken` returned true.
    """
    terms = [terms_of_run(run) for run in runs]
    results: dict[int, RunResult] = {}
    for alike, places in _grouped(runs, terms).items():
        for first in range(0, len(places), CHUNK):
            chunk = places[first : first + CHUNK]
            these = [runs[i] for i in chunk]
            floors = _floors(these, [terms[i] for i in chunk], measurements)
            rows = RunRows(these, alike, measurements, tracks=tracks, warm_up=warm_up)
            results.update(zip(chunk, rows.replayed(floors, overtaken), strict=True))
    return [results[place] for place in range(len(runs))]


def _grouped(runs: Sequence[Run], terms: Sequence[Terms | None]) -> Mapping[Alike, Sequence[int]]:
    """Places of the runs that are replayed together."""
    groups: dict[Alike, list[int]] = defaultdict(list)
    for place, (run, each) in enumerate(zip(runs, terms, strict=True)):
        groups[_alike(run, each)].append(place)
    return groups


def _alike(run: Run, terms: Terms | None) -> Alike:
    setup = run.setup
    return Alike(
        kinds=tuple(map(kind_of, setup.targets)),
        behavior=setup.behavior,
        start_ups=setup.start_up.durations,
        timing=setup.timing,
        fills=setup.capacity.signal,
        feedback=setup.feedback,
        rules=terms.rules if terms else None,
        stated=run.floors is not None,
        advisor=None if run.advisor is None else id(run.advisor),
    )


def _floors(runs: Sequence[Run], terms: Sequence[Terms | None], measurements: Measurements) -> FloorRule:
    """Return the source of the runs' floors: decisions, recorded decisions, or none."""
    if runs[0].floors is not None:
        stated = np.stack([run.floors for run in runs if run.floors is not None], axis=1).astype(np.int64)
        return lambda minute, _pods, _before, _load: np.asarray(stated[minute])
    known = [term for term in terms if term is not None]
    if not known:
        return lambda _minute, _pods, before, _load: before
    return DecidedFloors(DecisionInputs(runs, known, measurements), len(runs), runs[0].advisor, measurements).floors


class DecidedFloors:
    """Decisions of some rows, minute by minute, with their state."""

    def __init__(self, inputs: DecisionInputs, rows: int, advisor: Advisor | None, measurements: Measurements) -> None:
        self._inputs, self._advisor, self._state = inputs, advisor, State.new(rows)
        self._begin = measurements.begin.timestamp()
        self._medians: deque[Floats] = deque([np.full(rows, np.nan)] * LATEST, maxlen=LATEST)

    def floors(self, minute: int, pods: Pods, before: Counts, load: ReplayLoad) -> Counts:
        """The recommended counts [row]; where nothing can be decided the floor before stays."""
        now = self._begin + minute * 60.0
        inputs = load.measured(self._inputs.at(minute, pods))
        if self._advisor is not None:
            inputs = self._advised(inputs, self._advisor, now)
        decisions, self._state = decide(inputs, self._state, now)
        return np.where(decisions.scales, decisions.replicas, before)

    def _advised(self, inputs: Inputs, advisor: Advisor, now: float) -> Inputs:
        before = self._medians[0]
        self._medians.append(median_of(inputs))
        return advised(inputs, advisor, before, now)


class RunRows:
    """Some runs that are replayed together, on their way through the minutes."""

    def __init__(
        self,
        runs: Sequence[Run],
        alike: Alike,
        measurements: Measurements,
        *,
        tracks: bool = False,
        warm_up: int = 0,
    ) -> None:
        setups, rows = [run.setup for run in runs], len(runs)
        self._alike, self._measurements = alike, measurements
        self._series = rows_of([run.series for run in runs])
        capacity = np.array([setup.capacity.amount for setup in setups])
        self._load = load_of(alike.feedback, capacity, alike.fills, alike.timing.sync)
        self.pods = Pods(
            np.array([run.replicas for run in runs], np.int64),
            Draws([setup.start_up for setup in setups], alike.timing.sync),
        )
        self._hpas = hpas_of(runs, alike)
        self._floor, self._there = np.full(rows, NO_FLOOR, np.int64), np.zeros(rows, np.bool_)
        self.accounts, self._warm_up = Accounts(rows, alike.timing.sync), warm_up
        self._tracks = Tracks(measurements.minutes, rows) if tracks else None
        self._demand, self._first = Demand.of(measurements, alike, self._series, 0), 0

    def replayed(self, floors: FloorRule, overtaken: Callable[[], bool] | None = None) -> list[RunResult]:
        """Replay all minutes; `floors` returns the floors of a minute, from the pods and the floors before."""
        for minute in range(self._measurements.minutes):
            if overtaken and overtaken():
                raise OvertakenError
            if minute == self._warm_up:
                self.accounts = Accounts(len(self.accounts.desired), self._alike.timing.sync)
            self.minute(minute, floors(minute, self.pods, self._floor, self._load))
        accounts = self.accounts.each()
        if self._tracks is None:
            return [RunResult(account) for account in accounts]
        return [RunResult(account, track) for account, track in zip(accounts, self._tracks.each(), strict=True)]

    def minute(self, minute: int, floor: Counts) -> None:
        """One minute with these floors, which come too late for its first sync."""
        if minute >= self._first + INPUT_BLOCK:
            self._demand, self._first = Demand.of(self._measurements, self._alike, self._series, minute), minute
        timing, demand, place = self._alike.timing, self._demand, minute - self._first
        before, self._floor = self._floor, floor
        self._there |= demand.known[place]
        coming = demand.coming[place]
        earlier = self._load.used(demand.usage_at(place), earlier=True)
        latest = self._load.used(demand.usage_at(place + 1), earlier=False)
        missing, desired = np.zeros(len(coming)), np.zeros(len(coming), np.int64)
        for step in range(timing.syncs):
            in_force = floor if step >= timing.first_floored else before
            self._sync(minute * timing.syncs + step, latest if step >= timing.first_fresh else earlier, in_force)
            missing += self.accounts.add(coming, self._load.missing(self.pods, coming))
            desired += self.pods.desired * self._there
        self._load.end_minute()
        self.accounts.minute(desired, demand.known[place], timing.syncs)
        self.pods.arrive((minute + 1) * timing.syncs)
        if self._tracks:
            self._tracks.add(minute, self.pods, floor, missing / timing.syncs, desired / timing.syncs)

    def _sync(self, sync: int, usage: dict[str, Usage], floor: Counts) -> None:
        self.pods.arrive(sync)
        replicas = self._hpas.replicas(self.pods, usage, floor, sync)
        change = self.pods.scale(replicas, sync, self._measurements.begin + sync * self._alike.timing.sync)
        self._hpas.moved(change, sync)
        self.accounts.changes += change != 0


class SimulatedWorkload(NamedTuple):
    """Requested and ready pods at the end of a minute, and the cost until then."""

    desired: int
    ready: int
    account: Account


class Simulation:
    """HPAs and pods of some runs, a minute at a time, in step with what decides about their floors."""

    def __init__(self, runs: Sequence[Run], measurements: Measurements) -> None:
        self._count, groups = len(runs), _grouped(runs, [None] * len(runs)).items()
        self._groups = [
            (places, RunRows([runs[place] for place in places], alike, measurements)) for alike, places in groups
        ]

    def minute(self, minute: int, floors: Sequence[int]) -> list[SimulatedWorkload]:
        """Every run a minute later, in their order, with these floors; 0 is no floor."""
        workloads: dict[int, SimulatedWorkload] = {}
        for places, rows in self._groups:
            rows.minute(minute, np.array([floors[place] for place in places], np.int64))
            pods = zip(rows.pods.desired.tolist(), rows.pods.ready.tolist(), rows.accounts.each(), strict=True)
            workloads |= {place: SimulatedWorkload(*numbers) for place, numbers in zip(places, pods, strict=True)}
        return [workloads[place] for place in range(self._count)]


def hpas_of(runs: Sequence[Run], alike: Alike) -> Hpas:
    """The HPAs of runs that have the same kinds of targets."""
    numbers = [tuple(target_numbers(target, None) for target in run.setup.targets) for run in runs]
    targets = target_columns([UNREADABLE_TERMS._replace(targets=row) for row in numbers])
    least = np.array([run.setup.bounds.min_replicas for run in runs], np.int64)
    most = np.array([run.setup.bounds.max_replicas for run in runs], np.int64)
    return Hpas(alike.kinds, targets, least, most, alike.behavior, alike.timing.sync)


class Demand(NamedTuple):
    """Demand of a block of minutes."""

    usage: dict[str, tuple[Counts, Flags | None]]
    """Usage that HPAs read, by signal [minute, row], beginning one minute earlier; as in `Usage`."""
    coming: Floats
    """[minute, row] demand that the pods have to carry, 0 where it is not known."""
    known: Flags
    """[minute, row] whether it is known."""

    @classmethod
    def of(cls, measurements: Measurements, alike: Alike, series: Counts | slice, first: int) -> Demand:
        """Return the demand of the minutes from `first` on."""
        count = min(INPUT_BLOCK, measurements.minutes - first)
        usage = {}
        for kind in alike.kinds:
            read = measurements.past(kind.signal, first - 1, count + 1, series)
            known = ~np.isnan(read)
            usage[kind.signal] = (millis(np.nan_to_num(read)), None if known.all() else known)
        coming = measurements.past(alike.fills, first + 1, count, series)
        return cls(usage, np.nan_to_num(coming), ~np.isnan(coming))

    def usage_at(self, place: int) -> dict[str, Usage]:
        """Return the usage that HPAs read at one minute."""
        return {
            signal: Usage(milli[place], None if known is None else known[place])
            for signal, (milli, known) in self.usage.items()
        }


class Accounts:
    """The accounts of all rows, while they grow."""

    def __init__(self, rows: int, sync: timedelta) -> None:
        self.desired, self.measured, self.short, self.changes = (np.zeros(rows, np.int64) for _ in range(4))
        self.demand, self.missing = np.zeros(rows), np.zeros(rows)
        self._sync = sync

    def add(self, coming: Floats, missing: Floats) -> Floats:
        """One sync period in which so much comes and so much is missing [row], 0 where nothing was measured."""
        self.short += missing > 0
        self.demand += coming
        self.missing += missing
        return missing

    def minute(self, desired: Counts, known: Flags, syncs: int) -> None:
        """Add all sync periods of a minute: requested pods, summed, and whether there was a measurement."""
        self.desired += desired
        self.measured += known * syncs

    def each(self) -> list[Account]:
        """Return one account per run."""
        hours, sync = self._sync / HOUR, self._sync
        columns = (self.desired, self.measured, self.short, self.demand, self.missing, self.changes)
        return [
            Account(desired * hours, measured * sync, short * sync, demand * hours, missing * hours, changes)
            for desired, measured, short, demand, missing, changes in zip(*(c.tolist() for c in columns), strict=True)
        ]


class Tracks:
    """The tracks of all rows, while they grow: [minute, row]."""

    def __init__(self, minutes: int, rows: int) -> None:
        self.desired, self.ready, self.floor = (np.zeros((minutes, rows), np.int32) for _ in range(3))
        self.missing, self.spent = np.zeros((minutes, rows)), np.zeros((minutes, rows))

    def add(self, minute: int, pods: Pods, floor: Counts, missing: Floats, spent: Floats) -> None:
        """A minute is over."""
        self.desired[minute], self.ready[minute], self.floor[minute] = pods.desired, pods.ready, floor
        self.missing[minute], self.spent[minute] = missing, spent

    def each(self) -> Iterator[Track]:
        """Row by row."""
        for row in range(self.desired.shape[1]):
            counts = (self.desired[:, row], self.ready[:, row], self.floor[:, row])
            yield Track(*counts, self.missing[:, row], self.spent[:, row])

"""One cycle of the main job, as a list of steps (one file each in this folder).

What decides comes first: targets, observations, demand, forecasts, decisions, offers. Sizes, gates, scores and fits
come after it, each behind a boundary of its own, and wait for the next cycle where the budget of this one is spent. A
step that fails as a whole (the source is down, the disk is full) is one line in the report and leaves the later steps
with what is known; a workload that fails is one line, too, and the others go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from forecaster.cycle.completeness import Completeness
from forecaster.cycle.containers import Containers
from forecaster.cycle.decide import Decider, FleetDecisions, held_all
from forecaster.cycle.forecasts import Demands, Forecasts, demands_of, forecasts_of
from forecaster.cycle.gates import RenewedGates, Scoring
from forecaster.cycle.lead_times import UNWATCHED
from forecaster.cycle.load_forecast import PodLoads
from forecaster.cycle.rows import RowCache, Rows
from forecaster.cycle.sizes import PodSizes
from forecaster.cycle.steps import Steps, TimeShare, expect_records
from forecaster.cycle.targets import Targets, WorkloadTracker, catch_up
from forecaster.demand.censored import Throttling
from forecaster.domain.decision import LeadTime, Reason, Recommendation
from forecaster.domain.report import CycleReport, Effected, ForecastScore
from forecaster.errors import StoreError
from forecaster.ports import Actuator, Histories, Ledger, Publisher, Source, StageWatch

if TYPE_CHECKING:
    from forecaster.cycle.benefit import LiveBenefit
    from forecaster.cycle.node_forecast import NodePools
    from forecaster.domain.policies import Policies
    from forecaster.domain.signal import Signal
    from forecaster.domain.window import Inventory
    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.forecaster import Forecaster
    from forecaster.publish.decided import DecidedRows

CYCLE_BUDGET = timedelta(seconds=30)
"""Half of the shortest interval: optional work begun later could delay the next cycle."""
FAIR = 0.5
"""Share of the remaining time that fits, sizes and gates may each use before the next of them."""
AGAIN = 0.75
"""Share of the time that these three leave which fits may use when models still wait for their first fit."""


class Outcome(NamedTuple):
    """Result of a cycle: the workloads, their recommendations in the same order, and the report."""

    inventory: Inventory
    recommendations: Sequence[Recommendation]
    report: CycleReport

    @property
    def lost(self) -> bool:
        """Whether not even the workloads could be read."""
        return bool(self.report.failures) and not self.recommendations

    def has_recent(self, signal: Signal, within: timedelta) -> bool:
        """Whether a sample is at most so old; false of workloads of an earlier cycle, since theirs are not read."""
        age = self.report.newest_sample_age.get(signal)
        return age is not None and age <= within.total_seconds()


@dataclass(slots=True)
class Cycle:
    """The parts, composed by `app`, and what lives from one cycle to the next."""

    source: Source
    history: Histories
    forecaster: Forecaster
    policies: Policies
    effects: Effects
    seconds: Callable[[], float]
    """A clock for durations only."""
    decider: Decider = field(default_factory=Decider)
    row_cache: RowCache = field(default_factory=RowCache)
    containers: Containers = field(default_factory=Containers)
    throttling: Throttling = field(default_factory=Throttling)
    sizes: PodSizes = field(default_factory=PodSizes)
    scoring: Scoring = field(default_factory=Scoring)
    tracker: WorkloadTracker = field(default_factory=WorkloadTracker)
    completeness: Completeness = field(default_factory=Completeness)
    nodes: NodePools | None = None
    """None where nothing shows them."""
    benefit: LiveBenefit | None = None
    """Comparison of decisions with the HPA alone; None where nothing shows it."""
    waited: dict[str, int] = field(default_factory=dict)
    """Cycles in a row in which an optional step found no time, by step."""
    targets: Targets | None = None
    """Targets of the last cycle, with those that are held."""
    learns_first: bool = False
    """Fit, size and judge before deciding: a single cycle has no next one."""
    budget: timedelta = CYCLE_BUDGET
    ending: bool = False
    """Whether the process ends: optional work, which takes up to the budget, is left to the next one."""
    watch: StageWatch | None = None
    writing: Lock = field(default_factory=Lock)
    """Held while history is written; a thread that reads a row of history must hold it, too."""

    def run(self, now: datetime) -> Outcome:
        """Run one cycle for an evaluation time."""
        steps = Steps(self.seconds, self.budget, watch=self.watch, waited=self.waited, ends=lambda: self.ending)
        self.targets = targets = steps.run("targets", lambda: self._targets(now), self._lost(now))
        missing: Sequence[str] = steps.run("observations", lambda: self._catch_up(targets, now, steps), ())
        policies = self.decider.observed.in_force(self.policies)
        rows = self.row_cache.rows(targets.inventory.workloads, policies, targets.lost)
        demands = Demands() if targets.down else steps.run("demand", lambda: self._demands(rows), Demands())
        learned = self._learn(steps, targets, rows, demands, now) if self.learns_first else OptionalResults()
        if self._restarted() and not targets.down:
            steps.optional("fits", lambda: self._fit(rows, demands, now, steps.part(FAIR)), None)
        known = steps.run("forecasts", lambda: self._forecasts(rows, demands, now), Forecasts(demands.latest))
        decided = steps.run("decisions", lambda: self._decide(targets, rows, known, now), None)
        if decided is None:
            decided = held_all(targets.inventory.workloads, Reason.FAILED, "deciding failed for all", now)
        unrecorded: Sequence[str] = steps.run("offers", lambda: self.effects.publish(targets, decided, now), ())
        effected = self.effects.act(steps, now)
        if not self.learns_first:
            learned = self._learn(steps, targets, rows, demands, now)
        scored = steps.optional("scores", lambda: self._score(known, policies, now), Scored())
        failed = decided.failures() if isinstance(decided, FleetDecisions) else []
        ages = known.ages()
        early = (*(missing or _silent(targets, ages)), *learned.unread, *known.failures, *learned.gates.failures)
        unwritten = [line for outcome in effected.values() for line in outcome.failures]
        late = (*failed, *unrecorded, *scored.unrecorded, *steps.failures, *unwritten)
        report = CycleReport(
            at=now,
            steps=steps.seconds,
            series=known.series(),
            newest_sample_age=ages,
            incomplete=Counter(self.completeness.counts),
            verdicts=decided.verdicts(),
            at_maximum=decided.at_maximum(),
            failures=early + late + targets.inventory.faults,  # last what owners make up: the first few are shown
            scores=scored.scores,
            masked=tuple(self.forecaster.masked()),
            gates=tuple(learned.gates.moved),
            states=self.decider.observed.gates.states(),
            gates_waiting=self.decider.observed.gates.waiting,
            late_steps=tuple(steps.late),
            effected=effected,
            moved=tuple(self.completeness.moved),
        )
        return Outcome(targets.inventory, decided, report)

    def _restarted(self) -> bool:
        """Whether this process goes on from another one and has no model yet: its forecasts may be acting already."""
        return not self.forecaster.signals and self.decider.observed.state.rows > 0

    def what_if(self, policies: Policies, now: datetime) -> Sequence[Recommendation]:
        """Decide the cycle of `now`, which has just run, again under other policies.

        No source is read and no state is changed. Workloads held for want of data stay held. Policies stated by objects
        in the cluster apply on top of the other ones, too.
        """
        targets = self.targets or self._lost(now)
        if targets.down:
            return held_all(targets.inventory.workloads, Reason.SOURCE_DOWN, targets.down, now)
        policies.take_over(self.policies.cluster)
        observed = replace(self.decider.observed, state=self.decider.before)
        rows = RowCache().rows(targets.inventory.workloads, observed.in_force(policies), targets.lost)
        known = forecasts_of(self.forecaster, rows, self._demands(rows), self.history, now)
        return Decider(observed).decide(rows, known, self.sizes.of, self._lead_times(policies), now)

    def _targets(self, now: datetime) -> Targets:
        targets = self.tracker.find(self.source, now)
        if targets.inventory.policies is not None:
            self.policies.take_over(targets.inventory.policies)
        expect_records(len(targets.inventory.workloads))
        self.decider.observed.lead_times.observe(targets, now)
        return targets

    def _lost(self, now: datetime) -> Targets:
        """The workloads of the cycle before, held because nothing is known of the present ones."""
        return self.tracker.known(now, "the workloads could not be read")

    def _catch_up(self, targets: Targets, now: datetime, steps: Steps) -> Sequence[str]:
        with self.writing:
            return catch_up(self.history, self.source, targets, now, self.completeness, steps.within("observations"))

    def _demands(self, rows: Rows) -> Demands:
        return demands_of(self.history, rows, self.throttling.hours, self.completeness.latest_caches)

    def _forecasts(self, rows: Rows, demands: Demands, now: datetime) -> Forecasts:
        if not demands.latest:
            return Forecasts()
        return forecasts_of(self.forecaster, rows, demands, self.history, now)

    def _decide(self, targets: Targets, rows: Rows, known: Forecasts, now: datetime) -> DecidedRows:
        if targets.down:
            return held_all(targets.inventory.workloads, Reason.SOURCE_DOWN, targets.down, now)
        return self.decider.decide(rows, known, self.sizes.of, self._lead_times(self.policies), now)

    def _lead_times(self, policies: Policies) -> Callable[[WorkloadId], LeadTime]:
        """Return the rule for the lead time of a workload: as these policies state it, else as measured."""
        measured = self.decider.observed.lead_times
        return lambda id_: measured.of(id_, policies.stated(id_).horizontal)

    def _learn(self, steps: Steps, targets: Targets, rows: Rows, demands: Demands, now: datetime) -> OptionalResults:
        """Run the optional steps, which may be late: fits, sizes, gates."""
        if targets.down:
            return OptionalResults()
        policies = self.decider.observed.in_force(self.policies)
        late: Sequence[str] = steps.optional("fits", lambda: self._fit(rows, demands, now, steps.part(FAIR)), ())
        unread: Sequence[str] = steps.optional("sizes", lambda: self._renew_sizes(targets, now, steps.part(FAIR)), ())
        gates = steps.optional(
            "gates",
            lambda: self.decider.observed.gates.renew(self.history, policies, targets, now, steps.part(FAIR)),
            RenewedGates([], []),
        )
        if self.nodes:
            renew = partial(self.nodes.renew, targets.inventory.workloads, self.history, self.forecaster)
            steps.optional("nodes", lambda: renew(policies, now), None)
        if self.benefit:
            steps.optional("benefit", lambda: self._renew_benefit(targets, policies, now, steps.part(FAIR)), None)
        if late and steps.has_time():
            late = steps.optional("fits", lambda: self._fit(rows, demands, now, steps.part(AGAIN), least=0), late)
        steps.late += late
        return OptionalResults(unread, gates)

    def _renew_benefit(self, targets: Targets, policies: Policies, now: datetime, time: TimeShare) -> None:
        if self.benefit:
            self.benefit.start_ups = lambda id_: self.decider.observed.lead_times.watches.get(id_, UNWATCHED).took
            self.benefit.renew(targets.inventory.workloads, self.history, policies, now, time)

    def _fit(self, rows: Rows, demands: Demands, now: datetime, time: TimeShare, *, least: int = 1) -> Sequence[str]:
        """Fit the models that are due, of each signal in an even share of the time; the signals that need more.

        The signal with the most models that wait for their first fit comes first, and gets `least` in any case.
        """
        waiting = {
            signal: len(self.forecaster.follow(signal, usage, rows.static.driven[signal]).waiting())
            for signal, usage in demands.usage.items()
        }
        late = []
        for place, signal in enumerate(sorted(waiting, key=lambda signal: -waiting[signal])):
            share = time.part(1 / (len(waiting) - place))
            if self.forecaster.learn(signal, demands.usage[signal], now, share, least=0 if place else least):
                late.append(f"fits of {signal}")
        return late

    def _renew_sizes(self, targets: Targets, now: datetime, time: TimeShare) -> list[str]:
        """Renew containers, throttling, capacities and sizes; return a sentence for each unread fact."""
        workloads = targets.inventory.workloads
        with self.writing:
            unread = self.containers.catch_up(self.source, now, time)
        if self.containers.waits and self.containers.read is None:
            return unread
        self.throttling.follow(self.containers.facts, self.containers.read)
        self.decider.observed.capacities.renew(self.history, self.containers, self.policies, workloads)
        loads = PodLoads(self.history, self.forecaster, self.policies)
        self.sizes.renew(self.history, self.containers, self.policies, workloads, loads, time)
        return unread

    def _score(self, forecasts: Forecasts, policies: Policies, now: datetime) -> Scored:
        scores = self.scoring.matured(self.history, forecasts, policies, now)
        return Scored(tuple(scores), self.effects.score(scores))


def _silent(targets: Targets, ages: Mapping[Signal, float]) -> tuple[str, ...]:
    """Return a sentence if every query was answered and no answer has a sample of any workload."""
    if targets.down or not targets.inventory.workloads or ages:
        return ()
    count = len(targets.inventory.workloads)
    return (
        f"no signal has a sample of any of {count} workloads: see `forecaster doctor` (kube-state-metrics, kubelet)",
    )


class OptionalResults(NamedTuple):
    """Results of the optional steps for the report."""

    unread: Sequence[str] = ()
    gates: RenewedGates = RenewedGates([], [])


class Scored(NamedTuple):
    """Forecasts that matured, and why they could not be recorded."""

    scores: tuple[ForecastScore, ...] = ()
    unrecorded: tuple[str, ...] = ()


@dataclass(slots=True)
class Effects:
    """Receivers of decisions, and the last recorded decisions: records are made for those that changed."""

    publisher: Publisher
    ledger: Ledger
    actuator: Actuator | None = None
    counting: Callable[[str], AbstractContextManager[None]] = lambda _name: nullcontext()
    """Counts the failures of a named receiver."""
    recorded: DecidedRows | None = None

    def publish(self, targets: Targets, decided: DecidedRows, now: datetime) -> tuple[str, ...]:
        """Publish, then record: a full disk must not keep numbers from readers. Return a sentence for each failure."""
        if targets.down and not decided:  # no workload is known: the table of an earlier process stays
            return ()
        unpublished = _failure_of(lambda: self.publisher.publish(now, decided))
        return (*unpublished, *_failure_of(lambda: self._record(decided, now)))

    def act(self, steps: Steps, now: datetime) -> Mapping[str, Effected]:
        """Run the actuators; return their effects by kind, without those that are disabled or failed as a whole."""
        actuator = self.actuator
        return steps.run("effects", lambda: actuator.act(now), {}) if actuator else {}

    def _record(self, recommendations: DecidedRows, now: datetime) -> None:
        """Record changed decisions; one that could not be recorded counts as changed in the next cycle."""
        records = [recommendations.summary(row) for row in recommendations.changed_since(self.recorded)]
        with self.counting("ledger"):
            self.ledger.record(now, records, recommendations.ids)
        self.recorded = recommendations

    def score(self, scores: Sequence[ForecastScore]) -> tuple[str, ...]:
        """Record the errors of forecasts that have matured; return a sentence for each failure."""
        return _failure_of(lambda: self._score(scores))

    def _score(self, scores: Sequence[ForecastScore]) -> None:
        with self.counting("ledger"):
            self.ledger.score(scores)


def _failure_of(attempt: Callable[[], None]) -> tuple[str, ...]:
    try:
        attempt()
    except StoreError as error:
        return (str(error),)
    return ()

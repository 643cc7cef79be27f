"""One cycle of the main job, as a list of steps (`forecaster/steps`, one file each).

A step that fails as a whole (the source is down, the disk is full) is one line in the report and leaves the later
steps with what is known; a workload that fails is one line, too, and the others go on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from forecaster.cycle.catch_up import catch_up
from forecaster.cycle.containers import Containers
from forecaster.cycle.effects import take_effect
from forecaster.cycle.garbage import expect_records
from forecaster.cycle.judge import Judge
from forecaster.cycle.load_ahead import LoadsAhead
from forecaster.cycle.outlook import look_ahead
from forecaster.cycle.scoring import Scoring
from forecaster.cycle.sizes import Sizes
from forecaster.cycle.stopwatch import Stopwatch
from forecaster.cycle.targets import find_targets
from forecaster.demand.throttling import Throttling
from forecaster.domain.decision import Scale
from forecaster.domain.report import CycleReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from forecaster.cycle.targets import Targets
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.history import Inventory
    from forecaster.domain.policies import Policies
    from forecaster.forecasting.forecaster import Forecaster
    from forecaster.ports import Histories, Ledger, Publisher, Source


class Outcome(NamedTuple):
    """What a cycle leaves: the workloads, their recommendations in the same order, and its own report."""

    inventory: Inventory
    recommendations: list[Recommendation]
    report: CycleReport


@dataclass(slots=True)
class Cycle:
    """The parts, built by `service`, and what lives from one cycle to the next."""

    source: Source
    history: Histories
    forecaster: Forecaster
    policies: Policies
    publisher: Publisher
    ledger: Ledger
    seconds: Callable[[], float]
    """A clock for durations only."""
    judge: Judge = field(default_factory=Judge)
    containers: Containers = field(default_factory=Containers)
    throttling: Throttling = field(default_factory=Throttling)
    sizes: Sizes = field(default_factory=Sizes)
    scoring: Scoring = field(default_factory=Scoring)
    inventory: Inventory | None = None

    def run(self, now: datetime) -> Outcome:
        """Everything for one evaluation time."""
        watch = Stopwatch(self.seconds)
        with watch.step("targets"):
            targets = find_targets(self.source, self.inventory, now)
            self.inventory = targets.inventory
            expect_records(len(targets.inventory.workloads))
            self.judge.observed.lead_times.look(targets, now)
            policies = self.judge.observed.in_force(self.policies)
        with watch.step("histories"):
            missing = catch_up(self.history, self.source, targets, now)
        with watch.step("forecasts"):
            sight = look_ahead(
                self.history,
                self.forecaster,
                policies,
                targets,
                now,
                throttled=self.throttling.hours,
                coverage=self.judge.observed.coverage,
            )
        with watch.step("sizes"):
            unread = self._renew_sizes(targets, now)
        with watch.step("gates"):
            gates = self.judge.observed.gates.renew(self.history, policies, targets, now)
        with watch.step("decisions"):
            decided, failed = self.judge.decide_all(targets, sight, self.sizes, policies, now)
        with watch.step("scores"):
            scores = self.scoring.matured(self.history, sight, policies, now, self.judge.observed.coverage)
        with watch.step("effects"):
            unkept = take_effect(self.publisher, self.ledger, decided, scores, now)
        report = CycleReport(
            at=now,
            steps=watch.steps,
            series=sight.series(),
            newest_sample_age=sight.ages(),
            verdicts=verdicts_of(decided),
            failures=(*targets.inventory.faults, *missing, *unread, *sight.failures, *gates.failures, *failed, *unkept),
            scores=tuple(scores),
            masked=tuple(self.forecaster.masked()),
            gates=tuple(gates.moved),
            standings=self.judge.observed.gates.standings(),
        )
        return Outcome(targets.inventory, decided, report)

    def _renew_sizes(self, targets: Targets, now: datetime) -> list[str]:
        """Containers, what throttles and fills them, and what they should have; a sentence for what was not read."""
        workloads = targets.inventory.workloads
        unread = [] if targets.down else self.containers.catch_up(self.source, now)
        self.throttling.follow(self.containers.facts, self.containers.read)
        self.judge.observed.capacities.renew(self.history, self.containers, self.policies, workloads)
        loads = None if targets.down else LoadsAhead(self.history, self.forecaster, self.policies, now)
        self.sizes.renew(self.history, self.containers, self.policies, workloads, loads)
        return unread


def verdicts_of(recommendations: Iterable[Recommendation]) -> Counter[tuple[str, str]]:
    """Decisions about replicas, counted by verdict and reason."""
    return Counter(
        ("scale" if isinstance(one.replicas, Scale) else "hold", one.replicas.reason.value) for one in recommendations
    )

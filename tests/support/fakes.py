"""The ports by hand: a cluster that follows a script, a ledger and a publisher that remember and may refuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.app.compose import build_cycle
from forecaster.config.settings import parse
from forecaster.cycle.run import Effects
from forecaster.domain.policies import Policies
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU, MEMORY, PODS, Signal
from forecaster.domain.window import MINUTE, Block, Inventory
from forecaster.errors import SourceUnavailable, StoreError
from forecaster.store.history import HistorySettings, HistoryStore
from tests.support.builders import NOON, workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from forecaster.cycle.run import Outcome
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.layers import ClusterPolicies
    from forecaster.domain.report import ForecastScore
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.errors import SourceError

    Demand = Callable[[datetime], float]

EVER = timedelta(days=365)


@dataclass(frozen=True)
class Steady:
    """A demand that never changes."""

    value: float

    def __call__(self, at: datetime) -> float:
        return self.value


def steady(value: float) -> Demand:
    """Return a demand that never changes."""
    return Steady(value)


@dataclass(frozen=True)
class Load:
    """A workload, what it asks of each signal at any time, and from when to when (both included) it exists."""

    workload: Workload
    demand: dict[Signal, Demand]
    since: datetime = NOON - EVER
    until: datetime = NOON + EVER

    def values(self, signal: Signal, first: datetime, count: int, muted: datetime) -> NDArray[np.float64]:
        """Values of `count` minutes from `first` on; unknown before `since`, after `until` and from `muted` on."""
        values = np.full(count, np.nan)
        if signal in self.demand:
            begin = max(0, -((first - self.since) // MINUTE))
            end = min(count, (self.until - first) // MINUTE + 1, -((first - muted) // MINUTE))
            demand, present = self.demand[signal], range(begin, max(begin, end))
            values[present.start : present.stop] = (
                demand.value if isinstance(demand, Steady) else [demand(first + i * MINUTE) for i in present]
            )
        return values


@dataclass(frozen=True)
class Question:
    """One request to the source."""

    signal: Signal
    start: datetime
    end: datetime
    step: timedelta


@dataclass
class FakeSource:
    """A Prometheus that knows `loads`; `down` fails everything, `refuses` single signals, `mute` since an instant."""

    loads: list[Load]
    down: SourceError | None = None
    refuses: dict[Signal, SourceError] = field(default_factory=dict)
    mute: dict[Signal, datetime] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    partly: dict[WorkloadId, str] = field(default_factory=dict)
    policies: ClusterPolicies | None = None
    partial: dict[datetime, float] = field(default_factory=dict)
    """Instants at which the answer says that it is partial, and the share of the demand that is in it."""
    unwritten: set[tuple[Signal, datetime]] = field(default_factory=set)
    """Instants of which no sample has arrived yet, by signal."""
    moves: dict[WorkloadId, str] = field(default_factory=dict)
    """Workloads of which something else is measured, as the next answer says."""
    questions: list[Question] = field(default_factory=list)

    def inventory(self, at: datetime) -> Inventory:
        self._fail(None)
        workloads = tuple(load.workload for load in self.loads if load.since <= at <= load.until)
        partial = "a store is down" if at in self.partial else ""
        return Inventory(at, workloads, self.faults, self.partly, policies=self.policies, partial=partial)

    def latest(self, signal: Signal, at: datetime) -> Block:
        return self._answer(Question(signal, at, at, MINUTE))

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        yield self._answer(Question(signal, start, end, step))

    def _answer(self, question: Question) -> Block:
        self.questions.append(question)
        self._fail(question.signal)
        columns = (question.end - question.start) // question.step + 1
        times = [question.start + i * question.step for i in range(columns)] if self.partial else []
        values = self._means(question, columns)
        for column in range(columns) if self.unwritten else ():
            if (question.signal, question.start + column * question.step) in self.unwritten:
                values[:, column] = np.nan
        if times:
            values *= [self.partial.get(at, 1.0) for at in times]
        ids = tuple(load.workload.id for load in self.loads)
        partial = "a store is down" if any(at in self.partial for at in times) else ""
        moved, self.moves = self.moves, {}
        return Block(question.signal, ids, question.start, question.step, values, partial=partial, moved=moved)

    def _means(self, question: Question, columns: int) -> NDArray[np.float64]:
        """Over the step that ends at each instant; not known where most of its minutes are not."""
        step = question.step // MINUTE
        first, muted = (
            question.start - (step - 1) * MINUTE,
            self.mute.get(question.signal, datetime.max.replace(tzinfo=UTC)),
        )
        rows = [load.values(question.signal, first, columns * step, muted) for load in self.loads]
        minutes = np.array(rows).reshape(len(rows), columns, step)
        known = np.count_nonzero(~np.isnan(minutes), axis=2)
        return np.where(2 * known > step, np.nansum(minutes, axis=2) / np.maximum(known, 1), np.nan)

    def _fail(self, signal: Signal | None) -> None:
        error = self.down or (self.refuses.get(signal) if signal else None)
        if error:
            raise error


@dataclass
class FakeLedger:
    """Remembers what it was given; `full` refuses everything."""

    full: bool = False
    recorded: list[tuple[datetime, tuple[Recommendation, ...]]] = field(default_factory=list)
    scores: list[ForecastScore] = field(default_factory=list)

    def record(self, at: datetime, records: Sequence[Recommendation], present: Sequence[WorkloadId] = ()) -> None:
        if self.full:
            raise StoreError("ledger: the disk is full")
        self.recorded.append((at, tuple(records)))

    def score(self, scores: Sequence[ForecastScore]) -> None:
        if self.full:
            raise StoreError("ledger: the disk is full")
        self.scores += scores


@dataclass
class FakePublisher:
    """Remembers the newest table; `full` refuses it."""

    full: bool = False
    published: list[tuple[datetime, tuple[Recommendation, ...]]] = field(default_factory=list)

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
        if self.full:
            raise StoreError("table: the disk is full")
        self.published.append((at, tuple(recommendations)))


def nobody_answers() -> SourceUnavailable:
    return SourceUnavailable("nobody answers at http://prometheus:9090")


def load(name: str = "web", cpu: float = 2.0, **dates: datetime) -> Load:
    """A workload of four pods with steady demand; two cores are what they are meant to carry."""
    workload_ = workload(name)
    demand = {CPU: steady(cpu), MEMORY: steady(2.0**31), PODS: steady(workload_.ready_replicas)}
    return Load(workload_, demand, **dates)


UNGATED = Policies(Policy(horizontal=HorizontalPolicy(gate=False)))
"""Under this the forecasts of a story act, although it is hours long and proves nothing."""
SHORT = HistorySettings(minutes_kept=timedelta(hours=2), weeks_kept=timedelta(days=2))


class CycleOnFakes:
    """A cycle on fakes, with the real history and a real model, evaluated at any minute."""

    def __init__(
        self,
        *loads: Load,
        policies: Policies | None = None,
        model: str = "last-value",
        settings: HistorySettings = SHORT,
        start: datetime = NOON,
        learns_first: bool = True,
    ) -> None:
        self.source = FakeSource(list(loads))
        self.history = HistoryStore((policies or UNGATED).signals.measured, settings, now=start)
        self.publisher = FakePublisher()
        self.ledger = FakeLedger()
        composed = parse({"forecast": {"model": model}}, "test")
        self.cycle = build_cycle(
            composed,
            self.source,
            self.history,
            Effects(self.publisher, self.ledger),
            learns_first=learns_first,
        )
        self.cycle.policies = policies or UNGATED
        self.cycle.seconds = iter(range(1_000_000)).__next__
        self.cycle.budget = timedelta(hours=1)

    def run(self, now: datetime = NOON) -> Outcome:
        self.source.questions.clear()
        return self.cycle.run(now)

    def run_minutes(self, first: int, last: int) -> list[Outcome]:
        """One cycle for each minute after noon, both included."""
        return [self.run(NOON + minute * MINUTE) for minute in range(first, last + 1)]


def named(outcome: Outcome, name: str) -> Recommendation:
    """The recommendation for the workload of that name."""
    return next(row for row in outcome.recommendations if row.id.name == name)


def stored_values(history: HistoryStore, signal: Signal, id_: WorkloadId) -> list[float]:
    """The minutes known of one workload, oldest first."""
    window = history.window(signal, MINUTE)
    return window.values[window.keys.index(id_)].tolist()

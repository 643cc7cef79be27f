"""Findings: of one cycle, of forecasts that matured, of `forecaster doctor`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from forecaster.domain.decision import Hold, Scale
from forecaster.domain.signal import Signal
from forecaster.domain.workload import WorkloadId


@dataclass(frozen=True, slots=True)
class ForecastScore:
    """One matured forecast of the peak over a window, with the measured one. Amounts in the signal's unit."""

    id: WorkloadId
    signal: Signal
    made_at: datetime
    matured_at: datetime
    model: str
    quantile: float
    median: float
    upper: float
    """The forecast quantile of the peak."""
    actual: float
    """The measured peak over the same window."""

    @property
    def covered(self) -> bool:
        """Did the peak stay at or below the quantile?"""
        return self.actual <= self.upper

    @property
    def absolute_error(self) -> float:
        """|actual - median|."""
        return abs(self.actual - self.median)

    @property
    def pinball_loss(self) -> float:
        """Loss of the quantile (Koenker and Bassett 1978): q · (y - f) above the forecast, (1 - q) · (f - y) below."""
        missed = self.actual - self.upper
        return max(self.quantile * missed, (self.quantile - 1.0) * missed)


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """A decision that differs from the one before."""

    at: datetime
    replicas: int | None
    """Recommended; null while holding."""
    verdict: str
    reason: str
    message: str

    @classmethod
    def of(cls, at: datetime, decided: Scale | Hold) -> DecisionChange:
        """Return the decision of an instant as a change."""
        replicas, verdict = (decided.replicas, "scale") if isinstance(decided, Scale) else (None, "hold")
        return cls(at, replicas, verdict, decided.reason.value, decided.message)


class ScoreSums(NamedTuple):
    """Sums over matured forecasts of one signal; errors and peaks in its unit."""

    forecasts: float
    covered: float
    quantiles: float
    absolute_error: float
    actual: float


class MaskedShare(NamedTuple):
    """Part of a workload's last week in which demand was not free to show, for one of few reasons; ratio."""

    id: WorkloadId
    signal: Signal
    reason: str
    share: float


class Effected(NamedTuple):
    """Effect of one actuator on the cluster in one cycle."""

    leading: bool
    """Whether this replica writes."""
    writes: Counter[tuple[str, str]]
    """Writes by (change, outcome)."""
    states: Counter[str]
    """Objects by result: those with a value of forecaster, and refusals by code."""
    failures: tuple[str, ...] = ()
    reasons: Counter[tuple[str, str]] = Counter()  # noqa: RUF012  never changed
    """Outcomes by (outcome, reason): changes that were written, errors of those that failed, codes of refusals."""
    braked: bool = False
    """Whether what would go down waits for the word of a person."""
    longest_wait: timedelta = timedelta()
    """Longest time for which nothing of a namespace was tried, while changes of others were."""
    tried: frozenset[tuple[str, ...]] = frozenset()
    """Keys of the objects for which a write was tried, whatever the result."""
    blocked: int = 0
    """Namespaces in which each write fails; 0 while so many others are written to that it is their owners' doing."""


@dataclass(frozen=True, slots=True)
class CycleReport:
    """One cycle in numbers. A failure is one sentence that names its object; the cycle went on without it."""

    at: datetime
    steps: Mapping[str, float] = field(default_factory=dict)
    """Seconds spent in each named step."""
    series: Mapping[Signal, int] = field(default_factory=dict)
    """Workloads with history, by signal."""
    newest_sample_age: Mapping[Signal, float] = field(default_factory=dict)
    """Seconds between `at` and the latest sample of any workload; a signal without samples is absent."""
    incomplete: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Workloads whose latest value is only part of a sum, by (signal, cause)."""
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Decisions about replicas by (verdict, reason)."""
    at_maximum: int = 0
    """Workloads that would be given more replicas if their maximum let them."""
    failures: tuple[str, ...] = ()
    scores: tuple[ForecastScore, ...] = ()
    """Forecasts that matured in this cycle."""
    gates: tuple[str, ...] = ()
    """Forecasts that were promoted or demoted on a workload, one sentence each."""
    states: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Workloads with a gate, by gate state and by the forecaster whose forecast is used."""
    gates_waiting: int = 0
    """Workloads whose gate was not judged since the service began without it."""
    masked: tuple[MaskedShare, ...] = ()
    """Shares of columns that forecasts do not learn from as measured; only workloads that have such columns."""
    moved: tuple[str, ...] = ()
    """Workloads whose requests come from another source from this cycle on, one sentence each."""
    late_steps: tuple[str, ...] = ()
    """Optional steps that found no time in this cycle and wait for the next."""
    effected: Mapping[str, Effected] = field(default_factory=dict)
    """Outcomes by actuator; empty where nothing acts on the cluster."""
    late_starts: int = 0
    """Starts that were skipped since the previous cycle because that one was still running."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check: whether it works, what was observed, and the remedy if it does not."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""

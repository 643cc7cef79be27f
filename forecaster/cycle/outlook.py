"""Step 3: every signal of every workload, now and ahead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from forecaster.cycle.usage import usage_of
from forecaster.decisions.coverage import Coverage, Level
from forecaster.decisions.gate import Voice
from forecaster.decisions.lead_time import lead_time
from forecaster.decisions.quantile import stated_quantile
from forecaster.decisions.targets import signals_of
from forecaster.demand.latest import DayAgo, Latest, latest
from forecaster.domain.amounts import duration_text
from forecaster.domain.outlook import PeakForecast, SignalForecast, Unknown
from forecaster.domain.signal import DEMAND, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.forecasting.peaks import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from forecaster.cycle.targets import Targets
    from forecaster.demand.censored import ThrottledTime
    from forecaster.demand.fresh import FreshHistory
    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import Policy
    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.forecaster import Forecaster
    from forecaster.forecasting.peaks import PeakForecasts
    from forecaster.ports import Histories


NEVER: Mapping[WorkloadId, Sequence[ThrottledTime]] = MappingProxyType({})
"""Nobody was throttled, as far as is known."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What this cycle knows of all workloads, as arrays: newest demand and forecast peaks by signal."""

    latest: Mapping[Signal, Latest] = field(default_factory=dict)
    peaks: Mapping[Signal, Mapping[PeakSpan, PeakForecasts]] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    """Why some forecasts are missing, one sentence each."""
    yesterday: Mapping[Signal, DayAgo] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    """How often earlier forecasts held."""

    def of(self, id_: WorkloadId, policy: Policy, voice: Voice = Voice.MODEL) -> Outlooks:
        """The outlooks of one workload under its policy, ahead by whoever speaks for it."""
        return Outlooks(self, id_, policy, voice)

    def series(self) -> dict[Signal, int]:
        """Workloads with history, by signal."""
        return {signal: len(seen.row) for signal, seen in self.newest.items()}

    def ages(self) -> dict[Signal, float]:
        """Seconds since the newest sample of any workload; signals without one are absent."""
        ages = {signal: seen.age() for signal, seen in self.newest.items()}
        return {signal: age.total_seconds() for signal, age in ages.items() if age is not None}


@dataclass(frozen=True, slots=True)
class Outlooks(Mapping[Signal, SignalForecast]):
    """The outlooks of one workload, each made when it is asked for: most workloads have one target and not three."""

    sight: Sight
    id: WorkloadId
    policy: Policy
    voice: Voice = Voice.MODEL

    def __getitem__(self, signal: Signal) -> SignalForecast:
        measured = self.sight.newest[signal].measured(self.id, self.policy.max_sample_age)
        return SignalForecast(signal, measured, self._ahead(signal))

    def __iter__(self) -> Iterator[Signal]:
        return iter(self.sight.newest)

    def __len__(self) -> int:
        return len(self.sight.newest)

    def _ahead(self, signal: Signal) -> PeakForecast | Unknown:
        span = span_of(self.policy)
        known, least = self.sight.newest[signal].span(self.id), max(self.policy.min_history, span.lead_time)
        if known < least:
            return Unknown(f"{duration_text(known)} of history; {duration_text(least)} is the least")
        peaks = self.sight.peaks.get(signal, {}).get(span)
        if not peaks:
            return Unknown("no forecast was made")
        if self.voice is Voice.SEASONAL:
            return self._as_yesterday(signal, peaks)
        quantile = stated_quantile(self.policy.horizontal)
        level = self.sight.coverage.level(self.id, signal, quantile) if corrects(self.policy) else Level(quantile)
        ahead = peaks.ahead(self.id, level.value)
        if not level.why or not isinstance(ahead, PeakForecast):
            return ahead
        return replace(ahead, quantile=quantile, note="; ".join(filter(None, (ahead.note, level.why))))

    def _as_yesterday(self, signal: Signal, peaks: PeakForecasts) -> PeakForecast | Unknown:
        """The same window a day before, for certain: seasonal naive knows no spread."""
        peak = self.sight.yesterday[signal].peak(self.id, peaks.begin, peaks.until)
        if peak is None:
            return Unknown("nothing is known of yesterday")
        quantile = stated_quantile(self.policy.horizontal)
        same = (peak,) * len(LEVELS)
        return PeakForecast(
            "seasonal-naive-day", quantile, peak, peak, peak, peak, peaks.begin, peaks.until, "", LEVELS, same
        )


@dataclass(frozen=True, slots=True)
class Demands:
    """Latest demand by signal, usage with what makes demand of it, and by span the workloads each signal decides."""

    latest: Mapping[Signal, Latest] = field(default_factory=dict)
    usage: Mapping[Signal, FreshHistory] = field(default_factory=dict)
    driven: Mapping[Signal, Mapping[PeakSpan, list[WorkloadId]]] = field(default_factory=dict)


def demands_of(
    history: Histories,
    policies: Policies,
    targets: Targets,
    throttled: Mapping[WorkloadId, Sequence[ThrottledTime]] = NEVER,
) -> Demands:
    """What is known of the present; nothing from a source that is down."""
    if targets.down:
        return Demands()
    wanted = driven(targets, policies)
    usage = usage_of(history, wanted, targets.inventory.workloads, throttled)
    return Demands({signal: latest(history.window(signal, MINUTE)) for signal in history.signals}, usage, wanted)


def forecasts_of(
    forecaster: Forecaster,
    targets: Targets,
    demands: Demands,
    history: Histories,
    now: datetime,
    coverage: Coverage | None = None,
) -> Sight:
    """What is known now, with forecasts by the models that are fitted. Nothing is forecast from a source that is down.

    A signal whose forecast fails as a whole has none, with the reason; the others go on.
    """
    if targets.down:
        return Sight()
    ahead, failures = {}, []
    for signal, wanted in demands.driven.items():
        try:
            ahead[signal] = forecaster.peaks_by_span(signal, demands.usage[signal], wanted, now, learn=False)
        except Exception as error:  # noqa: BLE001  a boundary by signal
            failures.append(f"forecast of {signal}: {type(error).__name__}: {error}")
    weeks = {signal: DayAgo(history.window(signal, FIVE_MINUTES)) for signal in ahead}
    return Sight(demands.latest, ahead, (*failures, *forecaster.failures()), weeks, coverage or Coverage())


def driven(targets: Targets, policies: Policies) -> dict[Signal, dict[PeakSpan, list[WorkloadId]]]:
    """The workloads whose count each signal decides, by span: nobody needs a forecast of the others."""
    found: dict[Signal, dict[PeakSpan, list[WorkloadId]]] = {signal: defaultdict(list) for signal in DEMAND}
    for workload in targets.inventory.workloads:
        with suppress(Exception):  # what is wrong with a workload is told when it is its turn to be decided
            policy = policies.of(workload.id)
            span = span_of(policy)
            for signal in signals_of(workload, policy.horizontal):
                found[signal][span].append(workload.id)
    return {signal: spans for signal, spans in found.items() if spans}


def corrects(policy: Policy) -> bool:
    """Whether the level that a forecast is asked for follows from what it covered: only where that level decides."""
    return policy.horizontal.coverage_correction and policy.horizontal.sizing == "quantile"


def span_of(policy: Policy) -> PeakSpan:
    """The span in which this policy looks for the peak."""
    return PeakSpan(lead_time(policy.horizontal).value, policy.horizontal.window)

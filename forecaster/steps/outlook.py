"""Step 3: every signal of every workload, now and ahead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.demand.newest import Newest, newest
from forecaster.domain.duration import spoken_duration
from forecaster.domain.outlook import Ahead, Outlook, Unknown
from forecaster.domain.signal import DEMAND, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.forecasting.forecaster import Span

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import Policy
    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.forecaster import Forecaster
    from forecaster.forecasting.peaks import Peaks
    from forecaster.ports import Histories
    from forecaster.steps.targets import Targets


@dataclass(frozen=True, slots=True)
class Sight:
    """What this cycle knows of all workloads, as arrays: newest demand and forecast peaks by signal."""

    newest: Mapping[Signal, Newest] = field(default_factory=dict)
    peaks: Mapping[Signal, Mapping[Span, Peaks]] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    """Why some forecasts are missing, one sentence each."""

    def of(self, id_: WorkloadId, policy: Policy) -> dict[Signal, Outlook]:
        """The outlooks of one workload under its policy."""
        span = span_of(policy)
        return {signal: self._outlook(signal, id_, policy, span) for signal in self.newest}

    def series(self) -> dict[Signal, int]:
        """Workloads with history, by signal."""
        return {signal: len(seen.row) for signal, seen in self.newest.items()}

    def ages(self) -> dict[Signal, float]:
        """Seconds since the newest sample of any workload; signals without one are absent."""
        ages = {signal: seen.age() for signal, seen in self.newest.items()}
        return {signal: age.total_seconds() for signal, age in ages.items() if age is not None}

    def _outlook(self, signal: Signal, id_: WorkloadId, policy: Policy, span: Span) -> Outlook:
        measured = self.newest[signal].measured(id_, policy.max_sample_age)
        return Outlook(signal, measured, self._ahead(signal, id_, policy, span))

    def _ahead(self, signal: Signal, id_: WorkloadId, policy: Policy, span: Span) -> Ahead | Unknown:
        known = self.newest[signal].span(id_)
        if known < policy.min_history:
            return Unknown(f"{spoken_duration(known)} of history; {spoken_duration(policy.min_history)} is the least")
        peaks = self.peaks[signal].get(span)
        return peaks.ahead(id_, policy.horizontal.quantile) if peaks else Unknown("no forecast was made")


def look_ahead(
    history: Histories, forecaster: Forecaster, policies: Policies, targets: Targets, now: datetime
) -> Sight:
    """Newest demand and forecasts of all signals. Nothing is forecast from a source that is down."""
    if targets.down:
        return Sight()
    spans = {span_of(policies.of(workload.id)) for workload in targets.inventory.workloads}
    seen = {signal: newest(history.window(signal, MINUTE)) for signal in DEMAND}
    ahead = {signal: forecaster.peaks(signal, history.window(signal, FIVE_MINUTES), spans, now) for signal in DEMAND}
    return Sight(seen, ahead, tuple(forecaster.failures()))


def span_of(policy: Policy) -> Span:
    """The span in which this policy looks for the peak."""
    return Span(policy.horizontal.lead_time, policy.horizontal.window)

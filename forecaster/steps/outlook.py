"""Step 3: every signal of every workload, now and ahead."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.decisions.targets import signals_of
from forecaster.demand.fresh import fresh
from forecaster.demand.newest import Newest, newest
from forecaster.domain.duration import spoken_duration
from forecaster.domain.outlook import Ahead, Outlook, Unknown
from forecaster.domain.signal import DEMAND, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.forecasting.forecaster import Span

if TYPE_CHECKING:
    from collections.abc import Iterator
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

    def of(self, id_: WorkloadId, policy: Policy) -> Outlooks:
        """The outlooks of one workload under its policy."""
        return Outlooks(self, id_, policy)

    def series(self) -> dict[Signal, int]:
        """Workloads with history, by signal."""
        return {signal: len(seen.row) for signal, seen in self.newest.items()}

    def ages(self) -> dict[Signal, float]:
        """Seconds since the newest sample of any workload; signals without one are absent."""
        ages = {signal: seen.age() for signal, seen in self.newest.items()}
        return {signal: age.total_seconds() for signal, age in ages.items() if age is not None}


@dataclass(frozen=True, slots=True)
class Outlooks(Mapping[Signal, Outlook]):
    """The outlooks of one workload, each made when it is asked for: most workloads have one target and not three."""

    sight: Sight
    id: WorkloadId
    policy: Policy

    def __getitem__(self, signal: Signal) -> Outlook:
        measured = self.sight.newest[signal].measured(self.id, self.policy.max_sample_age)
        return Outlook(signal, measured, self._ahead(signal))

    def __iter__(self) -> Iterator[Signal]:
        return iter(self.sight.newest)

    def __len__(self) -> int:
        return len(self.sight.newest)

    def _ahead(self, signal: Signal) -> Ahead | Unknown:
        known, least = self.sight.newest[signal].span(self.id), self.policy.min_history
        if known < least:
            return Unknown(f"{spoken_duration(known)} of history; {spoken_duration(least)} is the least")
        peaks = self.sight.peaks[signal].get(span_of(self.policy))
        return peaks.ahead(self.id, self.policy.horizontal.quantile) if peaks else Unknown("no forecast was made")


def look_ahead(
    history: Histories, forecaster: Forecaster, policies: Policies, targets: Targets, now: datetime
) -> Sight:
    """Newest demand and forecasts of all signals. Nothing is forecast from a source that is down."""
    if targets.down:
        return Sight()
    spans = {span_of(policies.of(workload.id)) for workload in targets.inventory.workloads}
    minutes = {signal: history.window(signal, MINUTE) for signal in DEMAND}
    ahead = {
        signal: forecaster.peaks(
            signal, fresh(history.window(signal, FIVE_MINUTES), minutes[signal]), spans, now, wanted=ids
        )
        for signal, ids in driven(targets, policies).items()
    }
    return Sight({signal: newest(minutes[signal]) for signal in DEMAND}, ahead, tuple(forecaster.failures()))


def driven(targets: Targets, policies: Policies) -> dict[Signal, list[WorkloadId]]:
    """The workloads whose count each signal decides: nobody needs a forecast of the others."""
    found: dict[Signal, list[WorkloadId]] = {signal: [] for signal in DEMAND}
    for workload in targets.inventory.workloads:
        with suppress(Exception):  # what is wrong with a workload is told when it is its turn to be decided
            for signal in signals_of(workload, policies.of(workload.id).horizontal):
                found[signal].append(workload.id)
    return {signal: ids for signal, ids in found.items() if ids}


def span_of(policy: Policy) -> Span:
    """The span in which this policy looks for the peak."""
    return Span(policy.horizontal.lead_time, policy.horizontal.window)

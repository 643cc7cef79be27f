"""The decision about a workload, and the record that explains it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from forecaster.domain.signal import PeakForecast
from forecaster.domain.workload import ContainerSize, Resources, Target, WorkloadId


class ForecastState(StrEnum):
    """State of the forecast of a workload, in the only words for it; beside it stands the mode of the policy."""

    LEARNING = "learning"
    """History is too short, nothing was judged yet, or no forecast could be made."""
    OBSERVING = "observing"
    """The forecast is shown and scored: better so far, or in a mode that applies nothing."""
    ACTING = "acting"
    """The forecast has a say in the count."""
    HELD_BACK = "held back"
    """The forecast was judged, and is no better than measured demand alone."""


FORECAST_STATES = tuple(ForecastState)
NO_FORECAST = "there is no forecast"


def forecast_state(gate_reason: str, *, foreseen: bool) -> tuple[ForecastState, str]:
    """Return the state of a forecast and why; `gate_reason` is what keeps it from acting, empty where nothing does.

    >>> forecast_state("held back: no better", foreseen=True)
    (<ForecastState.HELD_BACK: 'held back'>, 'no better')
    """
    if gate_reason:
        state, _, why = gate_reason.partition(": ")
        return ForecastState(state), why
    return (ForecastState.ACTING, "") if foreseen else (ForecastState.LEARNING, NO_FORECAST)


class Reason(StrEnum):
    """Reason for a decision. There are few values, because they are labels of metrics."""

    REACTIVE = "reactive"
    """The count that the HPA would compute from measured demand; the forecast needs no more."""
    FORECAST = "forecast"
    """The forecast asks for more than the measured demand does."""
    GATED = "gated"
    """Measured demand alone: the forecast is learning, observing or held back."""
    FALLBACK = "fallback"
    """Measured demand alone: there is no forecast worth using."""
    NO_DATA = "no-data"
    STALE = "stale"
    FROZEN = "frozen"
    """A maintenance window of the policy is on."""
    NO_TARGET = "no-target"
    NO_PODS = "no-pods"
    """Pods exist and none is ready, so the demand cannot be divided."""
    NO_REPLICAS = "no-replicas"
    """Scaled to zero, and no forecast that may wake it asks for pods."""
    SHORT_HISTORY = "short-history"
    SCALED_BY_SIZE = "scaled-by-size"
    """An HPA acts on utilization of this request; changing the request would move the point at which it acts."""
    SIZED = "sized"
    FITS = "fits"
    """Today's requests and limits are right: a change would cost more than it gains."""
    SOURCE_DOWN = "source-down"
    FAILED = "failed"
    """Computing failed for this workload; the message says how."""


@dataclass(frozen=True, slots=True)
class Scale:
    """This many replicas."""

    replicas: int
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Resize:
    """These requests and limits per pod, the sum over its containers.

    `targets` are the HPA's utilization targets with which it still acts at the same load per pod; empty where it need
    not be changed.
    """

    resources: Resources
    reason: Reason
    message: str
    containers: tuple[ContainerSize, ...] = ()
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, slots=True)
class Hold:
    """Leave it as it is, because."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Clamp:
    """One step on the way to the number: the count before and after, and the rule."""

    rule: str
    before: int
    after: int
    why: str


@dataclass(frozen=True, slots=True)
class SignalView:
    """One target as the decision saw it. Amounts are totals over all pods, in the signal's unit."""

    signal: str
    """Name of a signal, or the HPA's own name of a metric that is not forecast."""
    target: str = ""
    """The target in words, e.g. `70 % of 500m a pod`."""
    measured: float | None = None
    measured_at: datetime | None = None
    reactive_replicas: int | None = None
    forecast: PeakForecast | None = None
    forecast_replicas: int | None = None
    note: str = ""
    """Reason for a missing value above; empty when none is missing."""
    pod: float | None = None
    """The demand of a pod at its target."""
    unit: str = ""
    """Unit of the amounts; empty for a metric that is not forecast."""
    partly: bool = False
    """Whether the measured value is part of a sum, and so a lower bound."""


class LeadTime(NamedTuple):
    """Time from asking for a pod until it serves, and where the duration comes from."""

    value: timedelta
    origin: str


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Decision about one workload in one cycle: the numbers and their explanation."""

    id: WorkloadId
    at: datetime
    replicas_now: int
    replicas: Scale | Hold
    resources_now: Resources
    resources: Resize | Hold
    signals: tuple[SignalView, ...] = ()
    clamps: tuple[Clamp, ...] = ()
    autoscaler: str = ""
    """Name of the HPA that owns the count; empty if none does."""
    targets: tuple[Target, ...] = ()
    """Targets of that HPA, in its order."""
    lead_time: LeadTime | None = None
    """Time from which on the peak was looked for; None where there was no forecast."""
    shadow: bool = False
    """Whether the forecast may not act yet: it is shown, and must not be acted on."""
    gate_reason: str = ""
    """State of a forecast that does not act, and why; empty where the gate lets it act."""
    offered: int | None = None
    """The count after every clamp but those that an HPA applies itself; None while holding."""

    @property
    def recommended_replicas(self) -> int:
        """The recommended count; the present one while holding."""
        return self.replicas.replicas if isinstance(self.replicas, Scale) else self.replicas_now

    @property
    def spare_replicas(self) -> int | None:
        """Replicas of the recommended count that the clamp `spare` added and bounds left; None while holding."""
        if not isinstance(self.replicas, Scale):
            return None
        spare = [clamp for clamp in self.clamps if clamp.rule == "spare"]
        return max([0, *(min(clamp.after, self.replicas.replicas) - clamp.before for clamp in spare)])

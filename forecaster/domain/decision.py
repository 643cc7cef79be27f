"""What is decided about a workload, and the record that explains it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Resources, WorkloadId


class Reason(StrEnum):
    """Why a decision is what it is. Few values: they are labels of metrics."""

    REACTIVE = "reactive"
    """What the HPA asks from the measured demand; the forecast asks for no more."""
    FORECAST = "forecast"
    """The forecast asks for more than the measured demand does."""
    FALLBACK = "fallback"
    """Measured demand alone: there is no forecast worth using."""
    NO_DATA = "no-data"
    STALE = "stale"
    NO_TARGET = "no-target"
    NO_REPLICAS = "no-replicas"
    """Scaled to zero: nobody but its owner wakes it up."""
    SHORT_HISTORY = "short-history"
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
    """These requests and limits per pod."""

    resources: Resources
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Leave it as it is, because."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Clamp:
    """One step on the way to the number: what it was before, what after, and by which rule."""

    rule: str
    before: int
    after: int
    why: str


@dataclass(frozen=True, slots=True)
class SignalView:
    """One signal as the decision saw it. Amounts are totals over all pods, in the signal's unit."""

    signal: Signal
    measured: float | None
    measured_at: datetime | None
    target: str
    """The target in words, e.g. `70 % of 500m`."""
    reactive_replicas: int | None
    model: str
    quantile: float
    forecast_median: float | None
    forecast_peak: float | None
    """Quantile of the maximum over the window."""
    forecast_low: float | None
    forecast_high: float | None
    peak_from: datetime | None
    peak_until: datetime | None
    forecast_replicas: int | None
    note: str
    """Why a value above is missing; empty when nothing is."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Everything decided about one workload in one cycle: the numbers and their explanation."""

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

    @property
    def wanted_replicas(self) -> int:
        """The recommended count; the present one while holding."""
        return self.replicas.replicas if isinstance(self.replicas, Scale) else self.replicas_now

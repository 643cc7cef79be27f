"""One signal of one workload: measured now, forecast for the coming window, and step by step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Measured:
    """The latest total demand, in the signal's unit, and the instant it describes."""

    value: float
    at: datetime
    lower_bound: str = ""
    """Reason why the value is part of a sum only, which may raise a count and never lowers one; empty where it is
    complete."""


@dataclass(frozen=True, slots=True)
class PeakForecast:
    """The forecast for the window from lead time on, in the signal's unit.

    `peak` is the policy's quantile of the largest value within the window; `low`, `median`, `high` are its 10 %, 50 %
    and 95 % quantiles.
    """

    model: str
    quantile: float
    peak: float
    low: float
    median: float
    high: float
    begin: datetime
    until: datetime
    note: str = ""
    """Reason why another model than the requested one made the forecast; empty if it did not."""
    levels: tuple[float, ...] = ()
    """Levels of `peaks`; empty where only one quantile is known."""
    peaks: tuple[float, ...] = ()
    """The whole distribution of the largest value, in the signal's unit: one quantile a level, not crossing."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Reason for a missing value; `stale` when there is one that is too old to act on."""

    note: str
    stale: bool = False


@dataclass(frozen=True, slots=True)
class StepForecast:
    """Quantiles of one signal of one workload for each of the coming steps, in the signal's unit.

    `values[k]` has one quantile a level for the mean demand from `begin + k * step` to `begin + (k + 1) * step`.
    """

    made_at: datetime
    begin: datetime
    step: timedelta
    levels: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    model: str

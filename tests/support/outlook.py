"""Outlook of one signal in a story about one workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecaster.domain.signal import Measured, PeakForecast, Unknown


@dataclass(frozen=True, slots=True)
class SignalForecast:
    """One signal of one workload: measured now, and forecast."""

    signal: str
    measured: Measured | Unknown
    ahead: PeakForecast | Unknown

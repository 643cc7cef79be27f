"""Recorded demand: what a replay is fed with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import MINUTE
from forecaster.errors import ConfigError, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.workload import Workload


@dataclass(frozen=True, slots=True, eq=False)
class Traces:
    """Total demand of several workloads, minute by minute.

    `values[signal][i, j]`, float64, is what all pods of `workloads[i]` used, or were asked for, in the minute that ends
    at `start + j` minutes: cores, bytes, requests per second; NaN where nothing was measured. A signal that nobody has
    may be absent. `values[PODS]`, if there, are pods that were ready then.
    """

    workloads: tuple[Workload, ...]
    start: datetime
    values: Mapping[Signal, NDArray[np.float64]]
    origin: str = ""
    """Where the numbers come from, in a sentence for the report."""

    def __post_init__(self) -> None:
        wanted = (len(self.workloads), self.minutes)
        for signal, values in self.values.items():
            if values.shape != wanted:
                raise ConfigError("traces", [Fault(signal, values.shape, f"[workload, minute] is {wanted} here")])

    @property
    def minutes(self) -> int:
        """Length of the grid."""
        return next((int(values.shape[1]) for values in self.values.values()), 0)

    @property
    def end(self) -> datetime:
        """The last instant of the grid."""
        return self.start + (self.minutes - 1) * MINUTE

    def of(self, signal: str) -> NDArray[np.float64]:
        """float64[workload, minute] of one signal; nothing but gaps where it was not recorded."""
        values = self.values.get(signal)  # type: ignore[call-overload]  # a signal is its name
        return np.full((len(self.workloads), self.minutes), np.nan) if values is None else values

    def column(self, at: datetime) -> int:
        """Where the minute stands that ends at `at`; may lie outside of the grid."""
        return (at - self.start) // MINUTE

    def take(self, rows: Sequence[int]) -> Traces:
        """Some of the workloads."""
        some = list(rows)
        values = {signal: values[some] for signal, values in self.values.items()}
        return Traces(tuple(self.workloads[i] for i in some), self.start, values, self.origin)

    def until(self, end: datetime) -> Traces:
        """What had been measured at `end`."""
        columns = max(0, min(self.minutes, self.column(end) + 1))
        values = {signal: values[:, :columns] for signal, values in self.values.items()}
        return Traces(self.workloads, self.start, values, self.origin)

    def pods_at(self, row: int, at: datetime) -> int:
        """Pods that were ready at `at`, else what the workload says of itself; at least one."""
        column, pods = self.column(at), self.values.get(PODS)
        known = pods[row, column] if pods is not None and 0 <= column < self.minutes else np.nan
        return max(1, self.workloads[row].replicas if np.isnan(known) else round(float(known)))

    @property
    def signals(self) -> tuple[Signal, ...]:
        """The kinds of demand that were recorded."""
        return tuple(signal for signal in self.values if signal != PODS)

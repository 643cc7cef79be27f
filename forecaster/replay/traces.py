"""Recorded demand, the inputs of HPAs and decisions at every minute of a replay, and the coming demand.

The service stores demand as float32, so decisions read it rounded; an HPA reads its metrics itself, exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.clock import zones_beside_utc
from forecaster.domain.policy import Policy
from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.errors import ConfigError, Fault
from forecaster.horizontal.columns import Counts, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Traces:
    """Total demand of several workloads, minute by minute.

    `values[signal][i, j]`, float64, is the usage of all pods of `workloads[i]`, or the demand for them, in the minute
    that ends at `start + j` minutes: cores, bytes, requests per second; NaN where nothing was measured. A signal of no
    workload may be absent. `values[PODS]`, if there, are the ready pods of that time.
    """

    workloads: tuple[Workload, ...]
    start: datetime
    values: Mapping[Signal, NDArray[np.float64]]
    origin: str = ""
    """Origin of the numbers, in a sentence for the report."""

    def __post_init__(self) -> None:
        shape = (len(self.workloads), self.minutes)
        for signal, values in self.values.items():
            if values.shape != shape:
                raise ConfigError("traces", [Fault(signal, values.shape, f"[workload, minute] is {shape} here")])

    @property
    def minutes(self) -> int:
        """Number of minutes in the grid."""
        return next((int(values.shape[1]) for values in self.values.values()), 0)

    @property
    def end(self) -> datetime:
        """Instant at which the last minute ends."""
        return self.start + (self.minutes - 1) * MINUTE

    def of(self, signal: str) -> NDArray[np.float64]:
        """float64[workload, minute] of one signal; nothing but gaps where it was not recorded."""
        values = self.values.get(signal)  # type: ignore[call-overload]  # a signal is its name
        return np.broadcast_to(np.nan, (len(self.workloads), self.minutes)) if values is None else values

    def column(self, at: datetime) -> int:
        """Return the column of the minute that ends at `at`; may lie outside of the grid."""
        return (at - self.start) // MINUTE

    def take(self, rows: Sequence[int]) -> Traces:
        """Return the traces of some workloads, by their rows."""
        places = list(rows)
        values = {signal: values[places] for signal, values in self.values.items()}
        return Traces(tuple(self.workloads[i] for i in places), self.start, values, self.origin)

    def until(self, end: datetime) -> Traces:
        """Return the measurements until `end`."""
        columns = max(0, min(self.minutes, self.column(end) + 1))
        values = {signal: values[:, :columns] for signal, values in self.values.items()}
        return Traces(self.workloads, self.start, values, self.origin)

    @property
    def signals(self) -> tuple[Signal, ...]:
        """The kinds of demand that were recorded."""
        return tuple(signal for signal in self.values if signal != PODS)


ALL_MINUTES = slice(None)
RECENT = timedelta(hours=3)
"""Span that is searched for the latest sample and the least history: the minutes that the service stores."""


class LatestValues(NamedTuple):
    """One signal as decisions read it, [minute, series] each."""

    values: NDArray[np.float64]
    """The latest value of the last hours, NaN where there is none."""
    age: NDArray[np.int32]
    """Age of the latest value, in minutes."""
    known: NDArray[np.int32]
    """Number of minutes of the last hours that have a value."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Recorded demand from `begin` on, minute by minute; a series is a row of the traces."""

    traces: Traces
    begin: datetime
    minutes: int
    latest: Mapping[str, LatestValues]
    """Latest values of each recorded signal."""
    zones: Mapping[WorkloadId, str] = field(default_factory=dict)
    """Time zones of the workloads that do not live by UTC."""

    def instant(self, minute: int) -> datetime:
        """Instant of the decision of a minute: its beginning."""
        return self.begin + minute * MINUTE

    def past(self, signal: str, first: int, count: int, series: Counts | slice = ALL_MINUTES) -> Floats:
        """[minute, series] value that an HPA reads at the beginning of these minutes; NaN where not measured."""
        columns = _columns(self.traces.of(signal), self.traces.column(self.begin) + first, count)
        return np.ascontiguousarray(columns[series].T)

    def of(self, signal: str, first: int, series: int) -> Floats:
        """Return the values [minute] of one series from the minute `first` on, as `past` does for all series."""
        return self.past(signal, first, self.minutes, slice(series, series + 1))[:, 0]


def measurements_of(
    traces: Traces, begin: datetime, minutes: int, policies: Iterable[tuple[WorkloadId, Policy]] = ()
) -> Measurements:
    """Return all measurements from `begin` on, for `minutes` minutes, by the clocks of these policies."""
    latest: dict[str, LatestValues] = {signal: _latest(traces, signal, begin, minutes) for signal in traces.signals}
    zones = zones_beside_utc((id_, policy.time_zone) for id_, policy in policies)
    return Measurements(traces, begin, minutes, latest, zones)


def _latest(traces: Traces, signal: Signal, begin: datetime, minutes: int) -> LatestValues:
    width = RECENT // MINUTE
    first = traces.column(begin) - width + 1
    values = _columns(traces.values[signal].astype(np.float32).astype(np.float64), first, minutes + width - 1)
    there = ~np.isnan(values)
    place = np.where(there, np.arange(values.shape[1]), -1)
    latest = np.maximum.accumulate(place, axis=1)[:, width - 1 :]
    age = np.arange(width - 1, values.shape[1]) - latest
    filled = np.take_along_axis(values, np.maximum(latest, 0), axis=1)
    counted = np.cumsum(np.pad(there, ((0, 0), (1, 0))), axis=1)
    recent = counted[:, width:] - counted[:, :-width]
    silent = (latest < 0) | (age >= width)
    return LatestValues(np.where(silent, np.nan, filled).T.copy(), age.T.astype(np.int32), recent.T.astype(np.int32))


def _columns(values: Floats, first: int, count: int) -> Floats:
    """Return `count` columns from `first` on, [series, count]; NaN outside of the grid."""
    before, after = max(0, -first), max(0, first + count - values.shape[1])
    inside = values[:, max(0, first) : max(0, first + count)]
    if not before and not after:
        return inside
    return np.pad(inside, ((0, 0), (min(before, count), min(after, count))), constant_values=np.nan)[:, :count]

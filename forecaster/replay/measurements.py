"""What is known at every minute of a replay: measured demand as HPAs and as decisions read it, and what comes.

The service keeps demand as float32, so decisions see it rounded; an HPA reads its metrics itself, exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.window import MINUTE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.signal import Signal
    from forecaster.horizontal.numbers import Counts, Floats
    from forecaster.replay.traces import Traces

EVERY_MINUTE = slice(None)
RECENT = timedelta(hours=3)
"""How far back the latest sample and the least history are looked for: the minutes that the service keeps."""


class LatestValues(NamedTuple):
    """One signal as decisions read it, [minute, series] each."""

    values: NDArray[np.float64]
    """The latest value of the last hours, NaN where there is none."""
    age: NDArray[np.int32]
    """Its age in minutes."""
    known: NDArray[np.int32]
    """Minutes of the last hours that have a value."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Recorded demand from `begin` on, minute by minute; a series is a row of the traces."""

    traces: Traces
    begin: datetime
    minutes: int
    latest: Mapping[str, LatestValues]
    """By signal, of those that were recorded."""

    def instant(self, minute: int) -> datetime:
        """The beginning of a minute, at which is decided."""
        return self.begin + minute * MINUTE

    def past(self, signal: str, first: int, count: int, series: Counts | slice = EVERY_MINUTE) -> Floats:
        """[minute, series] what an HPA reads at the beginning of these minutes; NaN where nothing was measured."""
        found = _columns(self.traces.of(signal), self.traces.column(self.begin) + first, count)
        return np.ascontiguousarray(found[series].T)


def measurements_of(traces: Traces, begin: datetime, minutes: int) -> Measurements:
    """Everything that can be known from `begin` on, for so many minutes."""
    latest: dict[str, LatestValues] = {signal: _latest(traces, signal, begin, minutes) for signal in traces.signals}
    return Measurements(traces, begin, minutes, latest)


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
    """[series, count] from column `first` on; NaN outside of the grid."""
    before, after = max(0, -first), max(0, first + count - values.shape[1])
    inside = values[:, max(0, first) : max(0, first + count)]
    if not before and not after:
        return inside
    return np.pad(inside, ((0, 0), (min(before, count), min(after, count))), constant_values=np.nan)[:, :count]

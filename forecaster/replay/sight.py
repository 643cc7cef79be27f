"""What can be known at every minute of a replay: measured demand as HPAs and as decisions see it, and what comes.

The service keeps demand as float32, so decisions see it rounded; an HPA reads its metrics itself, exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.lead_time import lead_time
from forecaster.domain.window import MINUTE
from forecaster.replay.foresight import EVERY_MINUTE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.policy import Policy
    from forecaster.domain.signal import Signal
    from forecaster.replay.traces import Traces

RECENT = timedelta(hours=3)
"""How far back the newest sample and the least history are looked for: the minutes that the service keeps."""


class Known(NamedTuple):
    """One signal as decisions see it, [minute, workload].

    `newest` is the newest value of the last hours, NaN where there is none, `age` its age in minutes, and `minutes`
    how many of them are known.
    """

    newest: NDArray[np.float64]
    age: NDArray[np.int32]
    minutes: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """Every minute from `begin` on; time first. `known` has the signals that were recorded."""

    traces: Traces
    begin: datetime
    minutes: int
    known: Mapping[Signal, Known]

    def instant(self, minute: int) -> datetime:
        """The beginning of a minute, at which is decided."""
        return self.begin + minute * MINUTE

    def seen(
        self, signal: Signal, first: int, count: int, rows: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """[minute, workload] what an HPA sees at the beginning of these minutes; NaN where nothing was measured."""
        found = _columns(self.traces.of(signal), self.traces.column(self.begin) + first, count)
        return np.ascontiguousarray((found if rows is None else found[rows]).T)

    def measured(self, signal: Signal, policy: Policy, span: slice = EVERY_MINUTE) -> NDArray[np.float64]:
        """[minute, workload] demand that this policy may act on; NaN where there is none or it is too old."""
        known = self.known.get(signal)
        if known is None:
            return np.full(self._shape(span), np.nan)
        return np.where(known.age[span] > policy.max_sample_age // MINUTE, np.nan, known.newest[span])

    def foreseeable(self, signal: Signal, policy: Policy, span: slice = EVERY_MINUTE) -> NDArray[np.bool_]:
        """[minute, workload] whether there is the least history that a forecast needs: `steps.outlook`."""
        least = max(policy.min_history, lead_time(policy.horizontal).value)
        known = self.known.get(signal)
        if known is None:
            return np.zeros(self._shape(span), np.bool_)
        return np.asarray(known.minutes[span] >= -(-least // MINUTE))

    def _shape(self, span: slice) -> tuple[int, int]:
        return len(range(self.minutes)[span]), len(self.traces.workloads)


def sight_of(traces: Traces, begin: datetime, minutes: int) -> Sight:
    """Everything that can be known from `begin` on, for so many minutes."""
    known = {signal: _known(traces, signal, begin, minutes) for signal in traces.signals}
    return Sight(traces, begin, minutes, known)


def _known(traces: Traces, signal: Signal, begin: datetime, minutes: int) -> Known:
    width = RECENT // MINUTE
    first = traces.column(begin) - width + 1
    values = _columns(traces.values[signal].astype(np.float32).astype(np.float64), first, minutes + width - 1)
    there = ~np.isnan(values)
    place = np.where(there, np.arange(values.shape[1]), -1)
    newest = np.maximum.accumulate(place, axis=1)[:, width - 1 :]
    age = np.arange(width - 1, values.shape[1]) - newest
    filled = np.take_along_axis(values, np.maximum(newest, 0), axis=1)
    counted = np.cumsum(np.pad(there, ((0, 0), (1, 0))), axis=1)
    recent = counted[:, width:] - counted[:, :-width]
    silent = (newest < 0) | (age >= width)
    return Known(np.where(silent, np.nan, filled).T.copy(), age.T.astype(np.int32), recent.T.astype(np.int32))


def _columns(values: NDArray[np.float64], first: int, count: int) -> NDArray[np.float64]:
    """[workload, count] from column `first` on; NaN outside of the grid."""
    before, after = max(0, -first), max(0, first + count - values.shape[1])
    inside = values[:, max(0, first) : max(0, first + count)]
    if not before and not after:
        return inside
    return np.pad(inside, ((0, 0), (min(before, count), min(after, count))), constant_values=np.nan)[:, :count]

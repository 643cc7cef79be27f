"""What decisions remember from cycle to cycle: one array a fact, rows on the last axis.

A fleet has one state. Groups of rows are taken from it, decided and put back; a state of one row serves a single
workload. Everything is immutable: what changes is made anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.horizontal.codes import NONE, UNKNOWN
from forecaster.horizontal.columns import put, taken
from forecaster.horizontal.ring import Ring

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from forecaster.horizontal.numbers import Codes, Counts, Flags, Floats

RECOMMENDATIONS = Ring(np.array(UNKNOWN, np.int32))
BY_ROW: Mapping[str, Any] = {
    "begun": np.False_,
    "ready": np.int64(0),
    "cause": np.int8(NONE),
    "floor": np.int64(0),
    "until": np.float64(0.0),
    "gone": np.int64(-1),
    "least": np.float64(np.nan),
}
"""What a new row has in each column [row]."""
BY_SIGNAL: Mapping[str, Any] = {
    "expected": np.float64(np.nan),
    "missing": np.int8(0),
    "missing_age": np.float64(np.nan),
}
"""What a new row has in each column [signal, row]."""
STATE_COLUMNS: Mapping[str, Any] = {**BY_ROW, **BY_SIGNAL}


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """All that outlives a cycle. Arrays are [row] if nothing else is said; instants are epoch seconds."""

    signals: tuple[str, ...]
    """The signals of the columns [signal, row]."""
    begun: Flags
    """Whether the row was seen before: the size that it is found with counts as a recommendation (HPA rules §3)."""
    ready: Counts
    """Pods that were ready when the row was decided last: those that served what is measured now."""
    cause: Codes
    """Why there is an outage; `NONE` without one."""
    floor: Counts
    """Replicas that stay until the outage is over."""
    until: Floats
    """End of the outage floor."""
    gone: Counts
    """Position in `signals` of the load that has gone or come back; -1 for none."""
    least: Floats
    """The load that has gone, in the unit of its signal."""
    expected: Floats
    """[signal, row] the least load that the latest forecast expected; NaN where that is nothing to miss."""
    missing: Codes
    """[signal, row] why a row was held for want of a sample (`inputs.NO_SAMPLE` ...)."""
    missing_age: Floats
    """[signal, row] how old its latest sample was then, in seconds; NaN where it had none."""
    recommendations: Ring
    """Counts before stabilization (HPA rules §10)."""

    @classmethod
    def new(cls, rows: int, signals: Iterable[str] = ()) -> State:
        """The state of rows that were never seen."""
        names = tuple(signals)
        return cls(
            signals=names,
            **{name: np.full(rows, nothing) for name, nothing in BY_ROW.items()},
            **{name: np.full((len(names), rows), nothing) for name, nothing in BY_SIGNAL.items()},
            recommendations=RECOMMENDATIONS,
        )

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.begun)

    def opened(self, now: float, keep: float, signals: Iterable[str]) -> State:
        """Ready for a cycle: a slot for `now`, a place for these signals, nothing older than `keep` seconds.

        `decide` does it for its rows. A fleet of several groups is opened once, with the longest window of them all,
        before rows are taken: they fit back in then.
        """
        return replace(
            self.covering(signals),
            recommendations=self.recommendations.opened(now, keep, self.rows),
        )

    def covering(self, signals: Iterable[str]) -> State:
        """Return the state with a place for each of these signals."""
        more = [one for one in dict.fromkeys(signals) if one not in self.signals]
        if not more:
            return self
        new = State.new(self.rows, more)
        grown: dict[str, Any] = {name: np.vstack([getattr(self, name), getattr(new, name)]) for name in BY_SIGNAL}
        return replace(self, signals=(*self.signals, *more), **grown)

    def take(self, rows: Counts) -> State:
        """The state of these rows in this order; a negative row is new. Growth and compaction are one take."""
        columns: dict[str, Any] = {
            name: taken(getattr(self, name), rows, nothing) for name, nothing in STATE_COLUMNS.items()
        }
        return replace(self, **columns, recommendations=self.recommendations.take(rows))

    def put(self, rows: Counts, state: State) -> State:
        """Return the state with these rows replaced by those of `state`, which was taken after this one was opened.

        Raises:
            ValueError: it has other signals or other instants.
        """
        if state.signals != self.signals:
            raise ValueError(f"a state of {state.signals} does not fit into one of {self.signals}")
        columns: dict[str, Any] = {name: put(getattr(self, name), rows, getattr(state, name)) for name in STATE_COLUMNS}
        return replace(self, **columns, recommendations=self.recommendations.put(rows, state.recommendations))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all columns as plain arrays to save."""
        at, recommendations = self.recommendations.arrays()
        return {
            "signals": np.array(self.signals, np.str_),
            **{name: getattr(self, name) for name in STATE_COLUMNS},
            "recommendations_at": at,
            "recommendations": recommendations,
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> State:
        """What `arrays` gave."""
        return cls(
            signals=tuple(arrays["signals"].tolist()),
            **{name: arrays[name] for name in STATE_COLUMNS},
            recommendations=RECOMMENDATIONS.of_arrays(arrays["recommendations_at"], arrays["recommendations"]),
        )

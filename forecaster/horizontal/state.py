"""What decisions remember from cycle to cycle: one array a fact, rows on the last axis.

A fleet has one state. Groups of rows are taken from it, decided and put back; a state of one row serves a single
workload. Everything is immutable: what changes is made anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from forecaster.horizontal.codes import KNOWN, NONE, UNKNOWN
from forecaster.horizontal.columns import SIGNAL, Array, Table, column
from forecaster.horizontal.ring import Ring

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.horizontal.numbers import Codes, Counts, Flags, Floats

RECOMMENDATIONS = Ring(np.array(UNKNOWN, np.int32))


@dataclass(frozen=True, eq=False)
class State(Table):
    """All that outlives a cycle. Arrays are [row] if nothing else is said; instants are epoch seconds."""

    begun: Flags = column("?", empty=False)
    """Whether the row was seen before: the size that it is found with counts as a recommendation (HPA rules §3)."""
    ready: Counts = column("q", 0)
    """Pods that were ready when the row was decided last: those that served what is measured now."""
    cause: Codes = column("b", NONE)
    """Why there is an outage; `NONE` without one."""
    floor: Counts = column("q", 0)
    """Replicas that stay until the outage is over."""
    until: Floats = column("d", 0.0)
    """End of the outage floor."""
    gone: Counts = column("q", -1, of_signal=True)
    """Position in `signals` of the load that has gone or come back; -1 for none."""
    least: Floats = column("d", np.nan)
    """The load that has gone, in the unit of its signal."""
    expected: Floats = column("d", np.nan, SIGNAL)
    """[signal, row] the least load that the latest forecast expected; NaN where that is nothing to miss."""
    missing: Codes = column("b", KNOWN, SIGNAL)
    """[signal, row] why a row was held for want of a sample (`codes.NO_SAMPLE` ...)."""
    missing_age: Floats = column("d", np.nan, SIGNAL)
    """[signal, row] how old its latest sample was then, in seconds; NaN where it had none."""
    recommendations: Ring = RECOMMENDATIONS
    """Counts before stabilization (HPA rules §10)."""

    def opened(self, now: float, keep: float, signals: Iterable[str]) -> State:
        """Ready for a cycle: a slot for `now`, a place for these signals, nothing older than `keep` seconds.

        `decide` does it for its rows. A fleet of several groups is opened once, with the longest window of them all,
        before rows are taken: they fit back in then.
        """
        return replace(
            self.covering(signals),
            recommendations=self.recommendations.opened(now, keep, self.rows),
        )

    def take(self, rows: Counts) -> State:
        """Return these rows in this order; a negative row is new. Growth and compaction are one take."""
        return replace(super().take(rows), recommendations=self.recommendations.take(rows))

    def put(self, rows: Counts, table: State) -> State:
        """Return a copy with these rows replaced by those of `table`, which was taken after this one was opened.

        Raises:
            ValueError: it has other signals or other instants.
        """
        return replace(super().put(rows, table), recommendations=self.recommendations.put(rows, table.recommendations))

    @classmethod
    def side_by_side(cls, rows: int, parts: Sequence[tuple[Array, State]]) -> State:
        """Return one state of several; a row has nothing in a slot in which its part was not decided."""
        rings = [(positions, part.recommendations) for positions, part in parts]
        return replace(super().side_by_side(rows, parts), recommendations=RECOMMENDATIONS.side_by_side(rows, rings))

    def arrays(self) -> dict[str, Array]:
        """Return plain arrays by name, to be saved."""
        at, recommendations = self.recommendations.arrays()
        return {**super().arrays(), "recommendations_at": at, "recommendations": recommendations}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> State:
        """Return the state that `arrays` gave."""
        ring = RECOMMENDATIONS.of_arrays(arrays["recommendations_at"], arrays["recommendations"])
        return replace(super().of_arrays(arrays), recommendations=ring)

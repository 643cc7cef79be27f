"""Room: free columns behind the newest bin, so that one more bin does not copy two weeks of all series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .panel import trusted

if TYPE_CHECKING:
    from .panel import Floats, Panel

# A copy after a sixteenth of the length: every twenty hours with two weeks, for six per cent more memory.
SPARE = 16


@dataclass(eq=False, slots=True)
class Columns:
    """Values [series, time] of which the first `taken` columns are written; what is written never changes."""

    values: Floats
    taken: int


class Room(NamedTuple):
    """What lies behind a panel whose newest bin is the column before `end`.

    Whoever continues an older panel of the same columns finds the next one taken, and gets a copy.
    """

    columns: Columns
    end: int

    def holds(self, bins: int) -> bool:
        """Whether so many bins can follow."""
        return self.columns.taken == self.end and self.end + bins <= self.columns.values.shape[1]


def continued(known: Panel, newer: Panel, room: Room | None) -> tuple[Panel, Room | None]:
    """As `known.append(newer)`, but without a copy while there is room; and the room behind what was made.

    Raises:
        PanelError: as in `Panel.append`.
    """
    known.check_continued(newer)
    if newer.start != known.end:
        return known.append(newer), None
    if room is None or not room.holds(newer.length):
        room = _behind(known, newer.length)
    columns, end = room.columns, room.end + newer.length
    columns.values[:, room.end : end] = newer.values
    columns.taken = end
    values = columns.values[:, room.end - known.length : end]
    return trusted(values, known.start, known.step, known.keys), Room(columns, end)


def _behind(known: Panel, bins: int) -> Room:
    """A copy with columns to come."""
    series, length = known.values.shape
    values = np.empty((series, length + bins + max(1, length // SPARE)), known.values.dtype)
    values[:, :length] = known.values
    return Room(Columns(values, length), length)

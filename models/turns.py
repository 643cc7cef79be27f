"""Turns: when each series learns from what came true between two fits.

Every series has its turn once in TURN bins, when an hour of forecasts has matured: a twelfth of the cost of looking at
all series with each bin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from .backtest import NEAR_WINDOWS
from .panel import DAY
from .prior import GROWN_DAYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    import numpy.typing as npt

    from .panel import Panel

# Bins between two turns of a series: the longest near window is over by then.
TURN = max(window.last for window in NEAR_WINDOWS)
# What was known at the fit was replayed there: turns begin when half of the hour is new.
NEW = TURN // 2


class Turns(NamedTuple):
    """Slots of the week in which each series has its turn.

    Attributes:
        start: instant from which bins are counted.
        fitted: [series] the bin in which each was fitted.
        bin: [series] the bin of TURN in which each has its turn, counted from its fit.
    """

    start: datetime
    fitted: npt.NDArray[np.intp]
    bin: npt.NDArray[np.intp]

    @classmethod
    def of_keys(cls, keys: Sequence[str], fitted_at: datetime) -> Turns:
        """Return the turns of series that were fitted together."""
        return cls(fitted_at, np.zeros(len(keys), np.intp), turns_of(keys))

    @classmethod
    def stacked(cls, parts: Sequence[Turns], step: timedelta) -> Turns:
        """Join the turns of all series, counted from the first start."""
        start = min(one.start for one in parts)
        fitted = [one.fitted + (one.start - start) // step for one in parts]
        return cls(start, np.concatenate(fitted), np.concatenate([one.bin for one in parts]))

    def of(self, rows: slice | npt.NDArray[np.intp]) -> Turns:
        """Return the turns of some series."""
        return Turns(self.start, self.fitted[rows], self.bin[rows])

    def due(self, number: int) -> npt.NDArray[np.intp]:
        """Rows that learn with the bin `number`: turns begin when half of the hour is new."""
        since = number - self.fitted
        return np.flatnonzero((since > NEW) & (since % TURN == self.bin))

    def matured(self, history: Panel, known_until: datetime) -> Iterator[tuple[npt.NDArray[np.intp], Panel]]:
        """Rows that are due and what was known then, of bins that were not known before; of several turns the latest.

        Nothing is learned from an hour with a gap. Turns are counted from the fit, so TURN new bins one by one and all
        at once give the same.
        """
        step = history.step
        before, now = (known_until - self.start) // step, (history.end - self.start) // step
        for number in range(max(before, now - TURN, NEW) + 1, now + 1):
            past = history.until(self.start + number * step).last((GROWN_DAYS + 1) * DAY + TURN * step)
            rows = self.due(number)
            rows = rows[np.isfinite(past.values[:, -TURN:][rows]).all(axis=1)]
            if history.bins(DAY) and len(rows):
                yield rows, past.take(rows)


def turns_of(keys: Sequence[str]) -> npt.NDArray[np.intp]:
    """[series] the bin of TURN in which each has its turn; by its name, so that it has the same one alone."""
    return np.array([crc32(key.encode(errors="surrogatepass")) % TURN for key in keys], dtype=np.intp)

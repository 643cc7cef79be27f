"""Following: the correction of a series moves on between fits, as what was forecast an hour ago comes true.

Every series has its turn once in TURN bins. What the prior, corrected, said of the windows after the bin before that
hour is laid beside what came, and each level moves towards being right as often as it should be:

    correction += RATE · spread · (level - share of the windows at or below the quantile)

That is adaptive conformal inference (Gibbs and Candès 2021) with the step in units of the series' own spread. One
origin an hour is a twelfth of the cost of looking at all series with each bin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from .backtest import BACKTEST_DAYS, PEAKS, REPLAYED_STEPS, ahead_of, kind
from .panel import DAY
from .prior import GROWN_DAYS, alike, look
from .situation import squash
from .training import TABLE_LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    import numpy.typing as npt

    from .panel import Floats, Panel

FOLLOWED_WINDOWS = (*REPLAYED_STEPS, *PEAKS)
# Bins between two turns of a series: the longest window is over by then.
TURN = max(window.last for window in FOLLOWED_WINDOWS)
# What was known at the fit was replayed there: turns begin when half of the hour is new.
NEW = TURN // 2
# Tried on recorded load with fits every six hours: 0.05 moves too little, and 0.3 costs more in calm hours than it wins
# after a change.
RATE = 0.15
# The spread of a normal distribution between these two of its quantiles.
HIGH, LOW, NORMAL_SPREAD = TABLE_LEVELS.index(0.95), TABLE_LEVELS.index(0.25), 2.3


class Turns(NamedTuple):
    """When the correction of each series moves.

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
        """Those of series that were fitted together."""
        return cls(fitted_at, np.zeros(len(keys), np.intp), turns_of(keys))

    @classmethod
    def stacked(cls, parts: Sequence[Turns], step: timedelta) -> Turns:
        """Those of all series, counted from the first start."""
        start = min(one.start for one in parts)
        fitted = [one.fitted + (one.start - start) // step for one in parts]
        return cls(start, np.concatenate(fitted), np.concatenate([one.bin for one in parts]))

    def of(self, rows: slice | npt.NDArray[np.intp]) -> Turns:
        """Those of some series."""
        return Turns(self.start, self.fitted[rows], self.bin[rows])

    def due(self, number: int) -> npt.NDArray[np.intp]:
        """Rows whose correction moves with the bin `number`: turns begin when half of the hour is new."""
        since = number - self.fitted
        return np.flatnonzero((since > NEW) & (since % TURN == self.bin))


def turns_of(keys: Sequence[str]) -> npt.NDArray[np.intp]:
    """[series] the bin of TURN in which each has its turn; by its name, so that it has the same one alone."""
    return np.array([crc32(key.encode(errors="surrogatepass")) % TURN for key in keys], dtype=np.intp)


def followed(correction: Floats, history: Panel, turns: Turns, known_until: datetime) -> Floats:
    """[series, kind, level] the correction after all bins of `history` that were not known before.

    Turns are counted from the fit, so TURN new bins one by one and all at once give the same; of more, the last count.
    """
    moved = correction
    for rows, past in _due(history, turns, known_until):
        if moved is correction:
            moved = correction.copy()
        _follow(moved, rows, past)
    return moved


def _due(history: Panel, turns: Turns, known_until: datetime) -> Iterator[tuple[npt.NDArray[np.intp], Panel]]:
    """Rows that are due, and what was known then; of several turns of a series the latest."""
    step, day = history.step, history.bins(DAY)
    before, now = (known_until - turns.start) // step, (history.end - turns.start) // step
    for number in range(max(before, now - TURN, NEW) + 1, now + 1):
        past = history.until(turns.start + number * step)
        rows = turns.due(number)
        if day and len(rows):
            yield rows, past.last((GROWN_DAYS + 1) * DAY + TURN * step)


def _follow(correction: Floats, rows: npt.NDArray[np.intp], past: Panel) -> None:
    """Move the correction of some rows, in place. Nothing is learned from an hour with a gap, or of a young series."""
    rows = rows[np.isfinite(past.values[:, -TURN:][rows]).all(axis=1)]
    day, seen = past.bins(DAY), past.take(rows)
    for part, values, _ in alike(seen, seen.length):
        if values.shape[1] >= BACKTEST_DAYS * day + TURN:
            correction[rows[part]] += RATE * _missed(correction[rows[part]], values, day)


def _missed(correction: Floats, values: Floats, day: int) -> Floats:
    """[series, kind, level] how much too seldom, or too often if negative, each level held; in units of the spread."""
    origin = np.array([values.shape[1] - 1 - TURN])
    views = look(values, origin, FOLLOWED_WINDOWS, day, members=1)
    change = (ahead_of(values, origin, FOLLOWED_WINDOWS) - views.seen.level[:, :, None]) / views.seen.scale[:, :, None]
    kinds = np.array([kind(window) for window in FOLLOWED_WINDOWS])
    said = np.sort(views.squashed[:, 0] + correction[:, kinds], axis=-1)
    held = squash(change)[:, 0, :, None] <= said
    spread = (said[..., HIGH] - said[..., LOW]) / NORMAL_SPREAD
    short = (np.array(TABLE_LEVELS) - held) * spread[..., None]
    missed = np.zeros_like(correction)
    for one in set(kinds.tolist()):
        missed[:, one] = short[:, kinds == one].mean(axis=1)
    return missed

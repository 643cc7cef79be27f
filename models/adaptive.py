"""Adaptive: what the service uses; the prior, corrected per series by its newest week, and a fifth of a ridge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .fitted import Remembered
from .forecast import Window
from .panel import DAY, Floats, Panel
from .prior import NEAR, alike, answers, look
from .ridge import Equations, Ridge
from .situation import squash
from .training import LEVELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .trailing import Origins

# What is replayed stands for the windows around it: by how far they reach, and whether they are one step or many.
STEPS = (Window(1, 1), Window(2, 2), Window(4, 4), Window(6, 6), Window(9, 9), Window(12, 12))
PEAKS = (Window(1, 5), Window(2, 8), Window(3, 12))
# Hours ahead of the far replays, and how many bins of a far window are looked at.
FAR_HOURS = (2, 6, 12, 23)
# A correction needs about half a day of replays behind it before it says more than chance.
LEAST_DAYS = 1.5
# The prior's own range, from which the ridge may not lead far away.
RANGE = (0.05, 0.99)
NEAR_ONE, NEAR_SOME, NEAR_MANY, NEAR_PEAK, FAR = range(5)


class Learned(NamedTuple):
    """Correction [series, reach, level] of squashed quantiles, and the equations of the ridge."""

    correction: Floats
    equations: Equations


@dataclass(frozen=True)
class Adaptive:
    """The prior's quantiles plus half of the error they made at replayed origins of the newest week, and some ridge.

    The correction is a split conformal one per series, level and reach: what the prior sees through the eyes of a
    hundred other series is centred and widened for this one. Half of it, because a week of replays is a small sample of
    a long tail: the whole covered no better on recorded load (spread of per-series coverage 0.024 against 0.025) and
    lost more than it won. A fifth of the ridge of the same series took the loss from 0.535 to 0.530 (a third: 0.534),
    an hour ahead and relative to the same time yesterday, and the coverage of p90 from 0.886 to 0.897.

    A series without a day and a half of history gets the prior as it is.

    Attributes:
        replays: origins replayed per series when fitting; the cost of a fit.
        trust: share of the observed error that is corrected.
        linear: share of the ridge in the quantiles it has.
        ridge: the spec of the ridge.
    """

    replays: int = 64
    trust: float = 0.5
    linear: float = 0.2
    ridge: Ridge = field(default_factory=Ridge)
    name: str = "adaptive"

    def fit(self, panel: Panel) -> Remembered[Learned]:
        """Replay the prior, group by group of series of about the same age, and solve the ridge."""
        correction = np.zeros((len(panel), FAR + 1, len(LEVELS)), dtype=np.float32)
        day = panel.bins(DAY)
        if day:
            for rows, values, _ in alike(panel, panel.length):
                correction[rows] = self.trust * _errors(values, day, self.replays)
        return Remembered(self, panel, Learned(correction, self.ridge.fit(panel).learned))

    def paths(self, history: Panel, learned: Learned, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step], NaN for series with fewer than three bins and for steps beyond a day."""
        windows = [Window(step, step) for step in range(1, steps + 1)]
        linear = np.full((len(history), len(levels), steps), np.nan)
        both = min(steps, self.ridge.horizon)
        linear[:, :, :both] = self.ridge.paths(history, learned.equations, both, levels)
        return self._mixed(_corrected(history, learned.correction, windows, (*RANGE, *levels)), linear)

    def peaks(self, history: Panel, learned: Learned, window: Window, levels: Sequence[float]) -> Floats:
        """[series, quantile] of the largest value of the window."""
        linear = self.ridge.peaks(history, learned.equations, window, levels)[:, :, None]
        return self._mixed(_corrected(history, learned.correction, [window], (*RANGE, *levels)), linear)[:, :, 0]

    def _mixed(self, ranged: Floats, linear: Floats) -> Floats:
        """Quantiles averaged level by level, those of the ridge no further away than half the prior's range.

        `ranged` has the prior's quantiles at RANGE before those that were asked for. Without the bound one recorded
        series of short history was forecast three times worse.
        """
        prior, reach = ranged[:, len(RANGE) :], (ranged[:, 1:2] - ranged[:, 0:1]) / 2
        near = np.clip(linear, prior - reach, prior + reach)
        return np.where(np.isnan(linear), prior, (1 - self.linear) * prior + self.linear * near)


def _corrected(history: Panel, correction: Floats, windows: Sequence[Window], levels: Sequence[float]) -> Floats:
    reaches = [_reach(window) for window in windows]

    def correct(rows: npt.NDArray[np.intp], squashed: Floats) -> Floats:
        return np.asarray(squashed + correction[rows][:, reaches])

    return answers(history, windows, levels, correct)


def _reach(window: Window) -> int:
    """Which replays stand for a window."""
    if window.last > NEAR:
        return FAR
    if window.steps > 1:
        return NEAR_PEAK
    return (NEAR_ONE, NEAR_SOME, NEAR_MANY)[min(2, window.last // 4)]


def _errors(values: Floats, day: int, replays: int) -> Floats:
    """[series, reach, level] quantiles of actual minus forecast at replayed origins; 0 where history is too short."""
    errors = np.zeros((len(values), FAR + 1, len(LEVELS)))
    near, far = (*STEPS, *PEAKS), [Window(h * day // 24, h * day // 24) for h in FAR_HOURS if h * day // 24 > NEAR]
    for windows, count in ((near, replays), (far, replays // 2)):
        origins = _replayed(values.shape[1], windows, day, count)
        if len(origins):
            _replay(errors, values, origins, windows, day)
    return errors


def _replay(errors: Floats, values: Floats, origins: Origins, windows: Sequence[Window], day: int) -> None:
    """Fill in the reaches that these windows stand for."""
    views = look(values, origins, windows, day)
    actual = np.stack([_maximum(values, origins, window) for window in windows], axis=-1)
    change = (actual - views.seen.level[:, :, None]) / views.seen.scale[:, :, None]
    missed = squash(change)[..., None] - views.squashed
    reaches = np.array([_reach(window) for window in windows])
    for reach in set(reaches.tolist()):
        these = missed[:, :, reaches == reach].reshape(len(values), -1, len(LEVELS))
        for i, level in enumerate(LEVELS):
            errors[:, reach, i] = np.quantile(these[:, :, i], level, axis=1)


def _replayed(length: int, windows: Sequence[Window], day: int, count: int) -> Origins:
    """Origins over the newest week, each a day old at least and with all windows over."""
    if not windows or not count or length < LEAST_DAYS * day:
        return np.zeros(0, dtype=np.intp)
    last = length - 1 - max(window.last for window in windows)
    first = max(day, last - 7 * day)
    return np.unique(np.linspace(first, last, count).astype(np.intp)) if first < last else np.zeros(0, dtype=np.intp)


def _maximum(values: Floats, origins: Origins, window: Window) -> Floats:
    return np.asarray(np.max([values[:, origins + step] for step in range(window.first, window.last + 1)], axis=0))

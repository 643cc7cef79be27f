"""Analogs: what followed on the moments of a series' own past that were most like the present one, beside the default.

Load that switches on and off goes on at one of its two levels. Networks, and a mean of quantiles, put theirs between
the two; similar moments of the past know both levels and how long each lasts. They are pooled with the default as
samples of what comes, in the share that each series earned: the one that would have lost least in the past.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .adaptive import Adaptive, AdaptiveState
from .backtest import NEAR_WINDOWS, ahead_of, far_windows, origins_of
from .clean import bins_seen, filled
from .evaluate import pinball
from .experts import REACHES, reach_of
from .fitted import FittedRule
from .forecast import StepWindow
from .panel import DAY, Floats, Panel
from .prior import TRAINING_LEVELS, answers
from .spread import read_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    import numpy.typing as npt

    Bins = npt.NDArray[np.intp]

# Series with less history have too few moments to compare with.
ANALOG_DAYS = 3
# Lengths of the latest past that are compared, as shares of a day: five minutes to half a day.
LOOKS = (1 / 288, 1 / 96, 1 / 24, 1 / 8, 1 / 2)
# Series looked at together; five looks back on four weeks of 64 of them take 20 MB.
ANALOG_SERIES = 64
# Shares of the pool that analogs may have.
POOL_SHARES = np.array([0.0, 0.15, 0.3, 0.5, 0.75])
# Quantiles by which shares are judged.
JUDGED_LEVELS = (0.1, 0.5, 0.9, 0.95)
# The default's part of the pool: as many quantiles, evenly spaced.
RANKS = tuple(((np.arange(40) + 0.5) / 40).tolist())
DEFAULT = Adaptive()


class AnalogState(NamedTuple):
    """What the default has learned, and the share of analogs [series, reach] in the pool."""

    default: AdaptiveState
    share: Floats


@dataclass(frozen=True)
class Analog:
    """The default, pooled with what followed on similar moments where that would have been better.

    Similar moments are alike in their latest value and in the means of the last quarter of an hour to half a day, in
    units of the series' largest value (analogue forecasting, Lorenz 1969). Series of less than three days have the
    default alone.

    Attributes:
        nearest: moments whose future is taken.
        replays: past origins at which shares are judged; most of the cost of a fit.
        share: the share of all series, in place of what each earned: 0.7 for fleets that switch on and off.
    """

    nearest: int = 80
    replays: int = 12
    share: float | None = None
    name: str = "analog"

    def fit(self, panel: Panel) -> FittedRule[AnalogState]:
        """Fit the default, and judge the shares by what the prior, most of the default, would have said in the past."""
        share = self._earned(panel) if self.share is None else np.full((len(panel), REACHES), self.share)
        return FittedRule(self, panel, AnalogState(DEFAULT.fit(panel).learned, share))

    def stand_in(self, panel: Panel) -> FittedRule[tuple[()]]:
        """Return what stands in for the default."""
        return DEFAULT.stand_in(panel)

    def followed(self, history: Panel, learned: AnalogState, known_until: datetime) -> AnalogState:
        """What the default learns between fits; shares are judged by a fit alone."""
        return learned._replace(default=DEFAULT.followed(history, learned.default, known_until))

    def stacked(self, learned: Sequence[AnalogState], step: timedelta) -> AnalogState | None:
        """What was learned of several panels, None where they reached back differently far."""
        default = DEFAULT.stacked([one.default for one in learned], step)
        return None if default is None else AnalogState(default, np.concatenate([one.share for one in learned]))

    def part(self, learned: AnalogState, rows: slice | Bins) -> AnalogState:
        """What was learned of some series."""
        return AnalogState(DEFAULT.part(learned.default, rows), learned.share[rows])

    def reach(self, history: Panel) -> int:
        """Steps of a day, as far as the default looks."""
        return DEFAULT.reach(history)

    def paths(self, history: Panel, learned: AnalogState, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step], NaN for series with fewer than three bins and for steps beyond a day."""
        out = DEFAULT.paths(history, learned.default, steps, levels)
        windows = [StepWindow(step, step) for step in range(1, steps + 1)]
        for rows in self._sharing(history, learned, windows):
            some, default = history.take(rows), DEFAULT.part(learned.default, rows)
            said = DEFAULT.paths(some, default, steps, RANKS)
            out[rows] = pooled(said, self._after_similar(some, windows), _share(learned.share[rows], windows), levels)
        return out

    def peaks(self, history: Panel, learned: AnalogState, window: StepWindow, levels: Sequence[float]) -> Floats:
        """[series, quantile] of the largest value of the window."""
        out = DEFAULT.peaks(history, learned.default, window, levels)
        for rows in self._sharing(history, learned, [window]):
            some, default = history.take(rows), DEFAULT.part(learned.default, rows)
            said = DEFAULT.peaks(some, default, window, RANKS)[:, :, None]
            after = self._after_similar(some, [window])
            out[rows] = pooled(said, after, _share(learned.share[rows], [window]), levels)[:, :, 0]
        return out

    def _sharing(self, history: Panel, learned: AnalogState, windows: Sequence[StepWindow]) -> Iterator[Bins]:
        """Rows, some at a time, of which analogs have a share in any of these windows."""
        told = max(window.last for window in windows) <= history.bins(DAY)
        shares = (_share(learned.share, windows) > 0).any(axis=(1, 2))
        return _blocks(np.flatnonzero(shares & told & self._grown(history, windows)))

    def _grown(self, history: Panel, windows: Sequence[StepWindow]) -> npt.NDArray[np.bool_]:
        """[series] whether there is enough history for moments after which all windows are over."""
        last = max(window.last for window in windows)
        return np.asarray(bins_seen(history.values) - last >= max(ANALOG_DAYS * history.bins(DAY), self.nearest + 1))

    def _earned(self, panel: Panel) -> Floats:
        """[series, reach] the share with the least loss at past origins; 0 where nothing was replayed."""
        found, day = np.zeros((len(panel), REACHES)), panel.bins(DAY)
        for windows in (NEAR_WINDOWS, far_windows(day)):
            origins = origins_of(panel.length, windows, day, self.replays)
            for rows in _blocks(np.arange(len(panel)) if len(origins) else origins):
                lost = sum(self._lost(panel.take(rows), origin, windows) for origin in origins.tolist())
                for reach in {reach_of(one) for one in windows}:
                    alike_far = [reach_of(one) == reach for one in windows]
                    found[rows, reach] = POOL_SHARES[np.asarray(lost)[:, :, alike_far].sum(axis=2).argmin(axis=1)]
        return found

    def _lost(self, panel: Panel, origin: int, windows: Sequence[StepWindow]) -> Floats:
        """[series, share, window] pinball loss of each share at a past origin; 0 of series that were too young then."""
        past = panel.until(panel.start + (origin + 1) * panel.step)
        out = np.zeros((len(panel), len(POOL_SHARES), len(windows)))
        came = ahead_of(panel.values, np.array([origin]), windows)[:, 0]
        said = answers(past, windows, TRAINING_LEVELS)
        known = np.isfinite(came).all(axis=1) & np.isfinite(said).all(axis=(1, 2)) & self._grown(past, windows)
        if rows := np.flatnonzero(known).tolist():
            samples = read_table(said[rows], RANKS, TRAINING_LEVELS)
            after = self._after_similar(past.take(rows), windows)
            for place, share in enumerate(POOL_SHARES.tolist()):
                at = pooled(samples, after, np.full((len(rows), 1, len(windows)), share), JUDGED_LEVELS)
                out[rows, place] = pinball(came[rows], at, JUDGED_LEVELS).sum(axis=1)
        return out

    def _after_similar(self, history: Panel, windows: Sequence[StepWindow]) -> Floats:
        """[series, moment, window] the largest value of each window after the most similar moments."""
        last = max(window.last for window in windows)
        known = filled(history.values).astype(np.float32, copy=False)
        moments = self._similar(known, np.isnan(history.values), history.bins(DAY), known.shape[1] - last)
        rows = np.arange(len(known))[:, None, None]
        ahead = [known[rows, moments[:, :, None] + np.arange(one.first, one.last + 1)].max(axis=2) for one in windows]
        return np.stack(ahead, axis=2)

    def _similar(self, known: Floats, unknown: npt.NDArray[np.bool_], day: int, count: int) -> Bins:
        """[series, moment] bins among the first `count` that are most like the latest one."""
        most = known.max(axis=1, keepdims=True)
        scaled = known / np.where(most > 0, most, 1)
        apart = np.zeros((len(known), count), np.float32)
        total = np.concatenate([np.zeros((len(known), 1)), np.cumsum(scaled, axis=1, dtype=np.float64)], axis=1)
        for width in sorted({max(1, round(look * day)) for look in LOOKS}):
            mean = np.full(known.shape, np.inf)
            mean[:, width - 1 :] = (total[:, width:] - total[:, :-width]) / width
            apart += np.square(mean[:, :count] - mean[:, -1:])
        apart[unknown[:, :count]] = np.inf
        return np.argpartition(apart, self.nearest, axis=1)[:, : self.nearest]


def pooled(said: Floats, after: Floats, share: Floats, levels: Sequence[float]) -> Floats:
    """[series, level, window] quantiles of two samples [series, sample, window] together.

    `share` [series, 1, window] is what all of `after` weigh beside all of `said`.
    """
    samples = np.concatenate([said, after], axis=1)
    order = samples.argsort(axis=1)
    weight = np.where(order < said.shape[1], (1 - share) / said.shape[1], share / after.shape[1])
    passed = weight.cumsum(axis=1) - weight / 2
    places = np.stack([(passed < level).sum(axis=1) for level in levels], axis=1)
    chosen = np.take_along_axis(order, np.minimum(places, samples.shape[1] - 1), axis=1)
    return np.take_along_axis(samples, chosen, axis=1)


def _share(share: Floats, windows: Sequence[StepWindow]) -> Floats:
    """[series, 1, window] what analogs have of the pool for each window."""
    return share[:, None, [reach_of(one) for one in windows]]


def _blocks(rows: Bins) -> Iterator[Bins]:
    for first in range(0, len(rows), ANALOG_SERIES):
        yield rows[first : first + ANALOG_SERIES]

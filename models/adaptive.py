"""Adaptive: the service's default; a mixture of experts, each weighted by its past success on this very series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from .backtest import BACKTEST_DAYS, NEAR_PEAKS, NEAR_STEPS, NEAR_WINDOWS, far_windows, origins_of
from .clean import filled
from .experts import (
    FIRST,
    MEDIAN,
    PERIODS,
    REACHES,
    ExpertLosses,
    LearnedExperts,
    Past,
    change_of_periods,
    in_units,
    mixed,
    reach_of,
    replayed,
    within_reach,
)
from .fitted import FittedRule
from .forecast import StepWindow
from .panel import DAY, Floats, Panel
from .prior import GROWN_DAYS, TRAINING_LEVELS, Prior, alike, answers
from .ridge import Ridge
from .shift import levelled, shifts
from .spread import read_table

# Series of one replay: what the network makes of 64 origins of each of these stays near the processor.
SERIES_PER_REPLAY = 32


class AdaptiveState(NamedTuple):
    """State of the experts [series, reach, level, expert], their learned values, and the time of the next update."""

    losses: ExpertLosses
    experts: LearnedExperts
    turns: Turns


@dataclass(frozen=True)
class Adaptive:
    """The prior, a ridge, yesterday and last week, mixed by their past success.

    A fit makes all of them forecast from origins of the latest week, oldest first, and `ExpertLosses` weighs them by
    the outcome; between fits every hour with a known outcome is one more origin. There are weights for single
    steps, for peaks and for windows beyond the near network, each for every level.

    The ridge reads history at the level of today (see `shifts`). The prior reads history as it was: it starts from the
    latest value anyway, and rescaled history made it worse.

    A series without a day and a half of history gets the first weights: the prior almost alone.

    Attributes:
        replays: origins of peaks replayed per series when fitting; the cost of a fit.
        ridge: the spec of the ridge.
        similar: whether the prior reads what followed similar moments for peaks of the next quarter of an hour, too.
    """

    replays: int = 64
    ridge: Ridge = field(default_factory=Ridge)
    similar: bool = False
    name: str = "adaptive"

    def fit(self, panel: Panel) -> FittedRule[AdaptiveState]:
        """Solve the ridge, then replay the experts, group by group of series of about the same age."""
        shifted = shifts(panel)
        level = levelled(panel, shifted)
        spread = np.full((len(panel), REACHES, len(PERIODS), len(TRAINING_LEVELS)), np.nan, np.float32)
        experts = LearnedExperts(self.ridge.fit(level).learned, shifted, spread)
        losses = ExpertLosses.none(len(panel), REACHES, len(TRAINING_LEVELS), FIRST.shape[-1])
        for rows, past in _pasts(panel, level, experts):
            self._replay(losses, experts, rows, past)
        return FittedRule(self, panel, AdaptiveState(losses, experts, Turns.of_keys(panel.keys, panel.end)))

    def stand_in(self, panel: Panel) -> FittedRule[tuple[()]]:
        """Return the prior, which lost 1.3 % more than this model an hour ahead on recorded load."""
        return Prior(self.similar).fit(panel)

    def followed(self, history: Panel, learned: AdaptiveState, known_until: datetime) -> AdaptiveState:
        """Return the state after learning from newer bins: hours with an outcome that is now known."""
        losses, moved = learned.losses, False
        for rows, panel in learned.turns.matured(history, known_until):
            if not moved:
                losses, moved = ExpertLosses(*(array.copy() for array in losses)), True
            experts = learned.experts.of(rows)
            for part, past in _pasts(panel, levelled(panel, experts.shifted), experts):
                if past.values.shape[1] >= BACKTEST_DAYS * past.day + TURN:
                    origin = np.array([past.values.shape[1] - 1 - TURN])
                    for windows in (NEAR_STEPS, NEAR_PEAKS):
                        self._learn(losses, experts.of(part), rows[part], past, origin, windows)
        return learned._replace(losses=losses) if moved else learned

    def stacked(self, learned: Sequence[AdaptiveState], step: timedelta) -> AdaptiveState | None:
        """Join the states of several panels; None where their histories have different lengths."""
        experts = LearnedExperts.stacked([state.experts for state in learned], step)
        if experts is None:
            return None
        losses = ExpertLosses.stacked([state.losses for state in learned])
        return AdaptiveState(losses, experts, Turns.stacked([state.turns for state in learned], step))

    def part(self, learned: AdaptiveState, rows: slice | npt.NDArray[np.intp]) -> AdaptiveState:
        """Return the state of some series."""
        return AdaptiveState(learned.losses.of(rows), learned.experts.of(rows), learned.turns.of(rows))

    def reach(self, history: Panel) -> int:
        """Steps of a day, as far as the prior looks."""
        return history.bins(DAY)

    def paths(self, history: Panel, learned: AdaptiveState, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step], NaN for series with fewer than three bins and for steps beyond a day."""
        windows = [StepWindow(step, step) for step in range(1, steps + 1)]
        ridge = np.full((len(history), len(TRAINING_LEVELS), steps), np.nan)
        both = min(steps, self.ridge.horizon)
        level, equations = levelled(history, learned.experts.shifted), learned.experts.equations
        ridge[:, :, :both] = self.ridge.paths(level, equations, both, TRAINING_LEVELS)
        return self._mixture(history, learned, windows, ridge, levels, similar=True)

    def peaks(self, history: Panel, learned: AdaptiveState, window: StepWindow, levels: Sequence[float]) -> Floats:
        """[series, quantile] of the largest value of the window."""
        return self.several_peaks(history, learned, (window,), levels)[0]

    def several_peaks(
        self, history: Panel, learned: AdaptiveState, windows: Sequence[StepWindow], levels: Sequence[float]
    ) -> list[Floats]:
        """Return peaks of several windows; NaN for those that end beyond a day."""
        known = [window for window in windows if window.last <= self.reach(history)]
        peaks = {window: np.full((len(history), len(levels)), np.nan) for window in windows}
        if known:
            ridge = np.stack(self._ridge_peaks(history, learned.experts, known), axis=2)
            mixture = self._mixture(history, learned, known, ridge, levels, similar=self.similar)
            peaks |= {window: mixture[:, :, i] for i, window in enumerate(known)}
        return [peaks[window] for window in windows]

    def _ridge_peaks(self, history: Panel, experts: LearnedExperts, windows: Sequence[StepWindow]) -> list[Floats]:
        """[series, level] of each window by the ridge; the few series with a shift are looked at once more."""
        peaks = self.ridge.several_peaks(history, experts.equations, windows, TRAINING_LEVELS)
        rows = np.flatnonzero(experts.shifted.factor != 1)
        if len(rows):
            shifted = experts.of(rows)
            level = levelled(history.take(rows), shifted.shifted)
            moved = self.ridge.several_peaks(level, shifted.equations, windows, TRAINING_LEVELS)
            for peak, part in zip(peaks, moved, strict=True):
                peak[rows] = part
        return peaks

    def _replay(self, losses: ExpertLosses, experts: LearnedExperts, rows: npt.NDArray[np.intp], past: Past) -> None:
        """Learn from origins of the latest week: of peaks, and half as many of steps, which cost more."""
        far, fewer = far_windows(past.day), self.replays // 2
        parts = ((NEAR_STEPS, NEAR_WINDOWS, fewer), (NEAR_PEAKS, NEAR_WINDOWS, self.replays), (far, far, fewer))
        for windows, ended, count in parts:
            origins = origins_of(past.values.shape[1], ended, past.day, count)
            if len(origins):
                experts.spread[rows, reach_of(windows[0])] = change_of_periods(past, origins, windows)
                self._learn(losses, experts.of(rows), rows, past, origins, windows)

    def _learn(
        self,
        losses: ExpertLosses,
        experts: LearnedExperts,
        rows: npt.NDArray[np.intp],
        past: Past,
        origins: npt.NDArray[np.intp],
        windows: Sequence[StepWindow],
    ) -> None:
        """Update the losses of the experts for windows that are alike, in place, by one origin after the other."""
        replay, reach = replayed(past, experts, origins, windows, similar=self.similar), reach_of(windows[0])
        known = losses.of((rows, reach)).after(replay.actual, replay.forecasts, FIRST[reach], TRAINING_LEVELS)
        losses.regret[rows, reach], losses.energy[rows, reach] = known

    def _mixture(
        self,
        history: Panel,
        learned: AdaptiveState,
        windows: Sequence[StepWindow],
        ridge: Floats,
        levels: Sequence[float],
        *,
        similar: bool,
    ) -> Floats:
        """[series, quantile, window] of all experts together; NaN where the prior is silent."""
        prior = answers(history, windows, TRAINING_LEVELS, similar=similar)
        reaches, kinds = np.unique([reach_of(window) for window in windows], return_inverse=True)
        spread = learned.experts.spread[:, reaches][:, kinds]
        ago = [
            _ago(history, windows, history.bins(period))[:, None] + spread[:, :, nth].swapaxes(1, 2)
            for nth, period in enumerate(PERIODS)
        ]
        weights = learned.losses.of((slice(None), reaches)).weights(FIRST[reaches][:, None])
        weights = weights.astype(np.float32)[:, kinds].swapaxes(1, 2)
        unit = np.where(prior[:, MEDIAN, :1] > 0, prior[:, MEDIAN, :1], 1.0)[:, :, None]
        forecasts = [in_units(forecast, unit) for forecast in (prior, within_reach(ridge, prior, axis=1), *ago)]
        table = mixed(np.stack(forecasts, axis=-1, dtype=np.float32), weights) * unit
        table = np.maximum.accumulate(np.where(np.isfinite(prior), table, np.nan), axis=1)
        return read_table(table, levels, TRAINING_LEVELS)


def _pasts(panel: Panel, level: Panel, experts: LearnedExperts) -> Iterator[tuple[npt.NDArray[np.intp], Past]]:
    """Yield rows of series of about the same age, and their past."""
    since = experts.shifted.bin - (panel.start - experts.shifted.start) // panel.step
    for rows, values, unit in alike(panel, panel.length, SERIES_PER_REPLAY):
        known = values.shape[1]
        at_level = filled(level.values[rows, panel.length - known :])
        yield rows, Past(values, unit, at_level, since[rows] - (panel.length - known), panel.bins(DAY))


def _ago(history: Panel, windows: Sequence[StepWindow], bins: int) -> Floats:
    """[series, window] largest value of each window `bins` ago; NaN before the record, beyond it, and in gaps."""
    first = history.length - bins
    if first < 0 or max(window.last for window in windows) > bins:
        return np.full((len(history), len(windows)), np.nan)
    ago = history.values[:, first:]
    columns = [
        ago[:, window.first - 1 : window.last].max(axis=1) if window.steps > 1 else ago[:, window.last - 1]
        for window in windows
    ]
    return np.stack(columns, axis=1)


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
        start = min(part.start for part in parts)
        fitted = [part.fitted + (part.start - start) // step for part in parts]
        return cls(start, np.concatenate(fitted), np.concatenate([part.bin for part in parts]))

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

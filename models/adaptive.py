"""Adaptive: what the service uses; the prior, corrected per series by its latest week, and some ridge."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .backtest import JUDGED, NEAR_PEAK, REPLAYED_STEPS, WINDOW_KINDS, ahead_of, judged, kind, replay
from .fitted import FittedRule
from .following import Turns, followed
from .forecast import StepWindow
from .gaps import filled
from .panel import DAY, Floats, Panel
from .prior import NEAR, alike, answers
from .ridge import Equations, Ridge, said_at
from .shift import Shifts, levelled, shifts
from .training import TABLE_LEVELS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    import numpy.typing as npt

    from .backtest import Replayed

# Series replayed together: what the network makes of 64 origins of each of these stays near the processor.
TOGETHER = 16
# The prior's own range, from which the ridge may not lead far away.
RANGE = (0.05, 0.99)
# The share of the ridge goes with this power of how much less it lost than the prior: twice as good, sixteen times.
KEENNESS = 4
# No model gets all or nothing by a week that was easy: three times as good counts as much as any better.
CLEARLY = 3.0


class AdaptiveState(NamedTuple):
    """Correction [series, kind, level] of squashed quantiles, share [series] of the ridge, its equations and levels.

    `turns` tell when the correction moves.
    """

    correction: Floats
    share: Floats
    equations: Equations
    shifted: Shifts
    turns: Turns


@dataclass(frozen=True)
class Adaptive:
    """The prior's quantiles plus half of the error they made at replayed origins of the latest week, and some ridge.

    The correction is a split conformal one per series, level and reach: what the prior sees through the eyes of a
    hundred other series is centred and widened for this one. All of it in the middle, half of it far out and of peaks,
    because a week of replays is a small sample of a long tail: the whole covered no better on recorded load (spread of
    per-series coverage 0.024 against 0.025) and lost more than it won.

    The ridge of the same series gets a fifth where both lost the same at the replayed origins, more where it lost less
    than the prior and less where it lost more; shares are smooth, so nothing jumps from fit to fit. An hour ahead and
    relative to the same time yesterday, the loss was 0.507 with a fifth for each and 0.502 with shares (mean over
    four draws of the origins on recorded load, and better on either half of the series).

    The ridge sees history at the level of today (see `shifts`), and is judged by what came after a shift: at some 700
    moments of recorded load after one, the loss of both together fell by 3 %. The prior sees history as it was: it
    starts from the latest value anyway, and rescaled history made it worse.

    A series without a day and a half of history gets the prior as it is. Between fits the correction moves on with
    every `update`, see `following`; shares and equations wait for the next fit.

    Attributes:
        replays: origins replayed per series when fitting; the cost of a fit.
        trust: share of the observed error that is corrected.
        linear: share of the ridge where it is as good as the prior.
        ridge: the spec of the ridge.
    """

    replays: int = 64
    trust: float = 0.5
    linear: float = 0.2
    ridge: Ridge = field(default_factory=Ridge)
    name: str = "adaptive"

    def fit(self, panel: Panel) -> FittedRule[AdaptiveState]:
        """Solve the ridge, and replay the prior beside it, group by group of series of about the same age."""
        shifted = shifts(panel)
        level = levelled(panel, shifted)
        equations = self.ridge.fit(level).learned
        correction = np.zeros((len(panel), WINDOW_KINDS, len(TABLE_LEVELS)), dtype=np.float32)
        share = np.full(len(panel), self.linear)
        day = panel.bins(DAY)
        if day:
            for rows, values, unit in alike(panel, panel.length, TOGETHER):
                replayed = replay(values, day, self.replays)
                correction[rows] = self._trusted * replayed.errors
                losses = _losses(replayed, level.take(rows), equations.of(rows), shifted.of(rows))
                preferred = self.linear * odds(losses.prior * unit, losses.linear)
                share[rows] = preferred / (1 - self.linear + preferred)
        learned = AdaptiveState(correction, share, equations, shifted, Turns.of_keys(panel.keys, panel.end))
        return FittedRule(self, panel, learned)

    def followed(self, history: Panel, learned: AdaptiveState, known_until: datetime) -> AdaptiveState:
        """What is learned from bins that were not known before: the correction moves with what came true."""
        moved = followed(learned.correction, history, learned.turns, known_until)
        return learned if moved is learned.correction else learned._replace(correction=moved)

    def stacked(self, learned: Sequence[AdaptiveState], step: timedelta) -> AdaptiveState | None:
        """What was learned of several panels, None where they reached back differently far."""
        equations = Equations.stacked([one.equations for one in learned])
        if equations is None:
            return None
        return AdaptiveState(
            np.concatenate([one.correction for one in learned]),
            np.concatenate([one.share for one in learned]),
            equations,
            Shifts.stacked([one.shifted for one in learned], step),
            Turns.stacked([one.turns for one in learned], step),
        )

    def part(self, learned: AdaptiveState, rows: slice | npt.NDArray[np.intp]) -> AdaptiveState:
        """What was learned of some series."""
        correction, share, equations, shifted, turns = learned
        return AdaptiveState(correction[rows], share[rows], equations.of(rows), shifted.of(rows), turns.of(rows))

    @property
    def _trusted(self) -> Floats:
        """[kind, level] what is corrected of an error: all of it in the middle, `trust` of it far out and of peaks."""
        level = np.array(TABLE_LEVELS)
        parts = np.tile(self.trust + (1 - self.trust) * 4 * level * (1 - level), (WINDOW_KINDS, 1))
        parts[NEAR_PEAK] = self.trust
        return parts

    def reach(self, history: Panel) -> int:
        """Steps of a day, as far as the prior looks."""
        return history.bins(DAY)

    def paths(self, history: Panel, learned: AdaptiveState, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step], NaN for series with fewer than three bins and for steps beyond a day."""
        level = levelled(history, learned.shifted)
        windows = [StepWindow(step, step) for step in range(1, steps + 1)]
        linear = np.full((len(history), len(levels), steps), np.nan)
        both = min(steps, self.ridge.horizon)
        linear[:, :, :both] = self.ridge.paths(level, learned.equations, both, levels)
        return _mixed(_corrected(history, learned.correction, windows, (*RANGE, *levels)), linear, learned.share)

    def peaks(self, history: Panel, learned: AdaptiveState, window: StepWindow, levels: Sequence[float]) -> Floats:
        """[series, quantile] of the largest value of the window."""
        return self.several_peaks(history, learned, (window,), levels)[0]

    def several_peaks(
        self, history: Panel, learned: AdaptiveState, windows: Sequence[StepWindow], levels: Sequence[float]
    ) -> list[Floats]:
        """The same for each of several windows; near and far ones are said by other networks, so each kind apart."""
        asked, linear = (*RANGE, *levels), self._linear_peaks(history, learned, windows, levels)
        by_reach: dict[tuple[bool, bool], list[StepWindow]] = defaultdict(list)
        for window in windows:
            by_reach[window.last <= NEAR, window.last <= self.reach(history)].append(window)
        ranged: dict[StepWindow, Floats] = {}
        for alike_far in by_reach.values():
            said = _corrected(history, learned.correction, alike_far, asked)
            ranged |= {window: said[:, :, [i]] for i, window in enumerate(alike_far)}
        return [
            _mixed(ranged[window], straight[:, :, None], learned.share)[:, :, 0]
            for window, straight in zip(windows, linear, strict=True)
        ]

    def _linear_peaks(
        self, history: Panel, learned: AdaptiveState, windows: Sequence[StepWindow], levels: Sequence[float]
    ) -> list[Floats]:
        """[series, quantile] of each window by the ridge; the few series with a shift are looked at once more."""
        said = self.ridge.several_peaks(history, learned.equations, windows, levels)
        rows = np.flatnonzero(learned.shifted.factor != 1)
        if len(rows):
            level = levelled(history.take(rows), learned.shifted.of(rows))
            moved = self.ridge.several_peaks(level, learned.equations.of(rows), windows, levels)
            for one, part in zip(said, moved, strict=True):
                one[rows] = part
        return said


class Losses(NamedTuple):
    """[series] what prior and ridge lost at the same origins; nothing where the ridge cannot look back."""

    prior: Floats
    linear: Floats


def _losses(replayed: Replayed, level: Panel, equations: Equations, shifted: Shifts) -> Losses:
    """Of series at the level of today; what was lost before a shift does not count, a shift shortens memory."""
    origins = level.length - 1 - replayed.ages
    known = np.flatnonzero(origins >= equations.regressors.least)
    if not (len(known) and equations.regressors.possible):
        return Losses(np.zeros(len(level)), np.zeros(len(level)))
    values, at = filled(level.values), origins[known]
    steps = [window for window in REPLAYED_STEPS if window.last <= equations.coefficients.shape[2]]
    said = said_at(values, equations, at, [window.last for window in steps], JUDGED)
    counts = at >= shifted.bin[:, None]
    prior = replayed.loss[:, known, : len(steps)].sum(axis=2)
    linear = judged(ahead_of(values, at, steps), said).sum(axis=2)
    return Losses((counts * prior).sum(axis=1), (counts * linear).sum(axis=1))


def odds(prior: Floats, linear: Floats) -> Floats:
    """[series] by how much the ridge is to be preferred, of what both lost; 1 where one of them lost nothing."""
    comparable = (linear > 0) & (prior > 0)
    with np.errstate(over="ignore"):  # next to nothing lost is as clear as nothing could be
        ratio = np.divide(prior, linear, out=np.ones(len(prior)), where=comparable)
    return np.asarray(np.clip(ratio, 1 / CLEARLY, CLEARLY) ** KEENNESS)


def _mixed(ranged: Floats, linear: Floats, share: Floats) -> Floats:
    """Quantiles averaged level by level, those of the ridge no further away than half the prior's range.

    `ranged` has the prior's quantiles at RANGE before those that were asked for. Without the bound one recorded
    series of short history was forecast three times worse.
    """
    prior, reach = ranged[:, len(RANGE) :], (ranged[:, 1:2] - ranged[:, 0:1]) / 2
    near = np.clip(linear, prior - reach, prior + reach)
    part = share[:, None, None]
    return np.where(np.isnan(linear), prior, (1 - part) * prior + part * near)


def _corrected(history: Panel, correction: Floats, windows: Sequence[StepWindow], levels: Sequence[float]) -> Floats:
    kinds = [kind(window) for window in windows]

    def correct(rows: npt.NDArray[np.intp], squashed: Floats) -> Floats:
        return np.asarray(squashed + correction[rows][:, kinds])

    return answers(history, windows, levels, correct)

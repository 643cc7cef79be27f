"""FittedRule: the usual fitted model, made of a rule, its learned state, and the latest history.

The author of a model writes a Rule; validation, fallback, bounds and bookkeeping are here once for all of them. The
fallback is the last value held, with the spread that it had so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial, reduce
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from .clean import bins_seen, bins_silent, filled
from .errors import QuestionError
from .forecast import Forecast, Peak, Provenance, StepWindow, checked_levels
from .model import Fitted
from .panel import DAY, Floats, Panel, trusted
from .rule import (
    Follows,
    FreeColumns,
    KnowsFailures,
    KnowsParts,
    KnowsPeaks,
    KnowsReach,
    KnowsSeveralPeaks,
    ModelRule,
    continued,
)
from .spread import SCORES, error_table, read_table, replayed_peaks

# Two days of changes, at steps of five minutes, say enough about the spread; this many of them are looked at.
REACH, CHANGES = 576, 200
# With few changes seen, the spread is at least that of a value that wanders by a tenth of itself.
MIN_ERRORS, MIN_SPREAD = 12, 0.1


def held(values: Floats, steps: int, levels: Sequence[float]) -> Floats:
    """[series, quantile, step]: the latest value plus quantiles of how far the series moved in as many steps."""
    known = filled(values)[:, -REACH:].astype(np.float64)
    if not known.size:
        return np.zeros((len(known), len(levels), steps))
    anchors = sorted({1, -(-steps // 2), steps})
    moved = np.stack([read_table(_moves(known, a), levels) for a in anchors], axis=2)
    spread = np.stack([_along(moved, anchors, step) for step in range(1, steps + 1)], axis=2)
    return known[:, -1][:, None, None] + spread


def held_peaks(values: Floats, window: StepWindow, levels: Sequence[float]) -> Floats:
    """[series, quantile]: the latest value plus quantiles of how far the window's maximum lay above it."""
    known = filled(values)[:, -REACH:].astype(np.float64)
    if not known.size:
        return np.zeros((len(known), len(levels)))
    if known.shape[1] <= window.last + 1:
        return known[:, -1:] + read_table(_moves(known, window.last), levels)
    origins = _spaced(known.shape[1] - window.last)
    ahead = reduce(np.maximum, (known[:, origins + step] for step in range(window.first, window.last + 1)))
    return known[:, -1:] + read_table(error_table(ahead - known[:, origins]), levels)


def _moves(known: Floats, steps: int) -> Floats:
    count = known.shape[1] - steps
    origins = _spaced(count)
    moves = known[:, origins + steps] - known[:, origins] if count > 0 else np.zeros((len(known), 1))
    table = error_table(moves)
    if count >= MIN_ERRORS:
        return table
    wandering = MIN_SPREAD * SCORES * known[:, -1:]
    return np.asarray(np.sign(SCORES) * np.maximum(np.abs(table), np.abs(wandering)))


def _spaced(count: int) -> npt.NDArray[np.intp]:
    return np.unique(np.linspace(0, max(0, count - 1), min(CHANGES, max(1, count))).astype(np.intp))


def _along(moved: Floats, anchors: list[int], step: int) -> Floats:
    right = min(int(np.searchsorted(anchors, step)), len(anchors) - 1)
    left = max(0, right - 1)
    share = 0.0 if anchors[right] == anchors[left] else (step - anchors[left]) / (anchors[right] - anchors[left])
    return (1 - share) * moved[:, :, left] + share * moved[:, :, right]


Learned = TypeVar("Learned")
# A series silent for longer is not demand any more: what it held a day ago says nothing about the coming hour.
LONGEST_SILENCE = DAY
# Two weeks hold each day of the week twice; older days hardly add anything and cost memory.
LONGEST_MEMORY = 14 * DAY
# Nothing rises within a day above three times everything it did in weeks; a forecast that does is an error.
LARGEST_GROWTH = 3.0


@dataclass(frozen=True, eq=False)
class FittedRule(Generic[Learned]):
    """A rule, its learned state, and the history it forecasts from, with free columns behind it for newer bins."""

    rule: ModelRule[Learned]
    history: Panel
    learned: Learned
    memory: timedelta = LONGEST_MEMORY
    free: FreeColumns | None = None

    def __post_init__(self) -> None:
        """Forget columns older than the memory."""
        object.__setattr__(self, "history", self.history.last(self.memory))

    def update(self, panel: Panel) -> FittedRule[Learned]:
        """See Fitted.update; history grows up to the memory."""
        covers = _covers(panel, self.history)
        history, free = (panel, None) if covers else continued(self.history, panel, self.free)
        learned = self.learned
        if isinstance(self.rule, Follows):
            learned = self.rule.followed(history, learned, self.history.end)
        return replace(self, history=history, free=free, learned=learned)

    def without_history(self) -> FittedRule[Learned]:
        """See Forgets."""
        end, step, keys = self.history.end, self.history.step, self.history.keys
        return replace(self, history=Panel(np.empty((len(keys), 0)), end, step, keys), free=None)

    def stacked(self, others: Sequence[Fitted]) -> FittedRule[Learned] | None:
        """See Stacks. Its history ends where the first of them does."""
        rules = [self, *(other for other in others if isinstance(other, FittedRule))]
        alike = all(fitted.rule == self.rule and fitted.history.step == self.history.step for fitted in rules)
        if len(rules) <= len(others) or not alike or not isinstance(self.rule, KnowsParts):
            return None
        learned = self.rule.stacked([fitted.learned for fitted in rules], self.history.step)
        if learned is None:
            return None
        end = min(fitted.history.end for fitted in rules)
        keys = tuple(chain.from_iterable(fitted.history.keys for fitted in rules))
        history = Panel(np.empty((len(keys), 0)), end, self.history.step, keys)
        return replace(self, history=history, learned=learned, free=None)

    def part(self, rows: slice | npt.NDArray[np.intp]) -> FittedRule[Learned]:
        """See Stacks."""
        if not isinstance(self.rule, KnowsParts):
            raise TypeError(f"{self.rule.name} knows no parts")
        history = self.history
        keys = history.keys[rows] if isinstance(rows, slice) else tuple(history.keys[row] for row in rows.tolist())
        nothing = trusted(np.empty((len(keys), 0)), history.end, history.step, keys)
        return replace(self, history=nothing, learned=self.rule.part(self.learned, rows), free=None)

    def forecast(self, steps: int, quantiles: Sequence[float]) -> Forecast:
        """See Fitted.forecast."""
        levels = checked_levels(quantiles)
        if steps < 1:
            raise QuestionError(f"a forecast of {steps} steps says nothing; ask for one or more")
        raw = np.require(self.rule.paths(self.history, self.learned, steps, levels), np.float64, "W")
        silent, short = ~_alive(self.history), _unspoken(raw)
        raw[short] = held(self.history.values[short], steps, levels)
        values = sensible(raw, _largest(self.history))[~silent]
        return Forecast(values, self.history.end, self.history.step, levels, self._provenance(silent, short, steps))

    def forecast_peak(self, window: StepWindow, quantiles: Sequence[float]) -> Peak:
        """See Fitted.forecast_peak."""
        return self.forecast_peaks((window,), quantiles)[window]

    def forecast_peaks(self, windows: Sequence[StepWindow], quantiles: Sequence[float]) -> dict[StepWindow, Peak]:
        """See SeesAll."""
        levels = checked_levels(quantiles)
        silent, largest = ~_alive(self.history), _largest(self.history)
        peaks = zip(windows, self._several_peaks(windows, levels), strict=True)
        return {window: self._peak(window, raw, levels, silent, largest) for window, raw in peaks}

    def _peak(
        self,
        window: StepWindow,
        peaks: Floats,
        levels: tuple[float, ...],
        silent: npt.NDArray[np.bool_],
        largest: Floats,
    ) -> Peak:
        raw = np.asarray(peaks, dtype=np.float64)
        short = _unspoken(raw)
        raw[short] = held_peaks(self.history.values[short], window, levels)
        values = sensible(raw[:, :, None], largest)[~silent, :, 0]
        provenance = self._provenance(silent, short, window.last)
        return Peak(values, window, self.history.end, self.history.step, levels, provenance)

    def _several_peaks(self, windows: Sequence[StepWindow], levels: tuple[float, ...]) -> Sequence[Floats]:
        if isinstance(self.rule, KnowsSeveralPeaks):
            return self.rule.several_peaks(self.history, self.learned, windows, levels)
        return [self._peaks(window, levels) for window in windows]

    def _peaks(self, window: StepWindow, levels: tuple[float, ...]) -> Floats:
        if isinstance(self.rule, KnowsPeaks):
            return self.rule.peaks(self.history, self.learned, window, levels)
        return replayed_peaks(partial(self._median, window.last), self.history, window, levels)

    def _median(self, steps: int, past: Panel) -> Floats:
        return self.rule.paths(past, self.learned, steps, (0.5,))[:, 0]

    def _provenance(self, silent: npt.NDArray[np.bool_], short: npt.NDArray[np.bool_], steps: int) -> Provenance:
        keys, known = self.history.keys, np.flatnonzero(~silent)
        if not (silent.any() or short.any()):
            return Provenance(keys, (self.rule.name,) * len(keys), ("",) * len(keys))
        why = self._unspoken_reasons(self.history.take(short), steps)
        reasons = dict(zip(np.flatnonzero(short).tolist(), why, strict=True))
        return Provenance(
            keys=tuple(keys[i] for i in known),
            models=tuple("last-value" if short[i] else self.rule.name for i in known),
            reasons=tuple(reasons.get(i, "") for i in known.tolist()),
            unknown=dict(
                zip((keys[i] for i in np.flatnonzero(silent)), _silence(self.history.take(silent)), strict=True)
            ),
        )

    def _unspoken_reasons(self, history: Panel, steps: int) -> list[str]:
        """Return the reasons why the rule has no forecast for any of these series."""
        reach = self.rule.reach(history) if isinstance(self.rule, KnowsReach) else steps
        why = _no_forecast(history, self.rule.name)
        if 0 < reach < steps:
            far, most = spoken(steps * history.step), spoken(reach * history.step)
            why = [f"{self.rule.name} looks {most} ahead, not {far}; the last value is held"] * len(history)
        failures = self.rule.failures if isinstance(self.rule, KnowsFailures) else {}
        return [failures.get(key, reason) for key, reason in zip(history.keys, why, strict=True)]


def _covers(newer: Panel, known: Panel) -> bool:
    """Whether a panel replaces the known one without a copy: a moved window, or any where none is kept."""
    moved = newer.start - known.start
    same = newer.keys == known.keys and newer.step == known.step and not moved % known.step
    return same and newer.length >= known.length and (not known.length or newer.start < known.end <= newer.end)


def sensible(raw: Floats, largest: Floats) -> npt.NDArray[np.float64]:
    """[series, quantile, step] in order, not negative, below LARGEST_GROWTH times the largest value of the series."""
    bound = LARGEST_GROWTH * np.asarray(largest, dtype=np.float64)[:, None, None]
    return np.maximum.accumulate(np.clip(raw, 0.0, bound), axis=1).astype(np.float64, copy=False)


def _largest(history: Panel) -> Floats:
    return np.asarray(np.fmax.reduce(history.values, axis=1, initial=0.0))


def _unspoken(raw: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(~np.isfinite(raw).all(axis=tuple(range(1, raw.ndim))))


def _alive(history: Panel) -> npt.NDArray[np.bool_]:
    allowed = min(history.length - 1, max(1, history.bins(LONGEST_SILENCE)))
    return bins_silent(history.values) <= allowed


def _no_forecast(history: Panel, name: str) -> list[str]:
    bins = bins_seen(history.values).tolist()
    return [f"{spoken(n * history.step)} of history gives {name} no forecast; the last value is held" for n in bins]


def _silence(history: Panel) -> list[str]:
    silent = bins_silent(history.values)
    return [
        f"the latest sample is {spoken(n * history.step)} old" if n < history.length else "there is no sample"
        for n in silent.tolist()
    ]


def spoken(duration: timedelta) -> str:
    """A duration as people say it; two of the larger unit before it is used."""
    for unit, name in ((DAY, "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min")):
        if duration >= 2 * unit:
            return f"{duration // unit} {name}"
    return f"{duration // timedelta(seconds=1)} s"

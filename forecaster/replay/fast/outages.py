"""Outages and the floors after them, lane by lane: `decisions.outage` on arrays, in minutes since the replay began."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.outage import BACK, GONE
from forecaster.domain.window import MINUTE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from forecaster.domain.signal import Signal
    from forecaster.replay.fast.numbers import Counts, Flags, Floats

NOTHING = -1


class Loads(NamedTuple):
    """By signal, of every lane: what is measured, and the 10 % quantile of what comes; NaN where it is not known."""

    measured: Mapping[Signal, Floats]
    low: Mapping[Signal, Floats]

    def at(self, minute: int) -> Loads:
        """One minute of many."""
        return Loads(*({signal: values[minute] for signal, values in side.items()} for side in self))

    def advised(self, signal: Signal, demand: Floats) -> Loads:
        """With an advisor's demand for what comes, where it has an opinion."""
        return self._replace(low={**self.low, signal: np.where(np.isnan(demand), self.low[signal], demand)})


@dataclass(slots=True, eq=False)
class Outages:
    """The outage that each lane remembers: `floor` 0 where there is none, `gone` the target whose load has gone."""

    hold: timedelta
    signals: Sequence[Signal]
    """One a target, in their order."""
    pods: Floats
    """[target, lane] the demand that fills a pod: less than that is no load to miss."""
    floor: Counts = field(init=False)
    since: Counts = field(init=False)
    gone: Counts = field(init=False)
    least: Floats = field(init=False)
    """The load that has gone."""
    expected: Floats = field(init=False)
    """[target, lane] the least that was expected last; NaN where that is less than a pod, or nothing."""

    def __post_init__(self) -> None:
        lanes = self.pods.shape[1]
        self.floor, self.since = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
        self.gone, self.least = np.full(lanes, NOTHING), np.full(lanes, np.nan)
        self.expected = np.full(self.pods.shape, np.nan)

    def look(self, loads: Loads, there: Flags, silent: Flags, current: Counts, minute: int) -> None:
        """What lanes measure beside what they expected; where samples are missing the present count is the floor."""
        gone = [there & (loads.measured[one] <= GONE * self.expected[i]) for i, one in enumerate(self.signals)]
        others = there & ~np.logical_or.reduce(gone)
        over = others & ((minute - self.since) * MINUTE.total_seconds() > self.hold.total_seconds())
        self.floor[over], self.gone[over] = 0, NOTHING
        self._look_for_returns(loads, others, minute)
        for i in range(len(gone) - 1, -1, -1):  # of several the first has the last word
            self._begin(gone[i], np.maximum(current, self.floor), i, minute)
        self._begin(silent, current, NOTHING, minute)
        for i, one in enumerate(self.signals):
            low = loads.low[one]
            self.expected[i, there] = np.where(low >= self.pods[i], low, np.nan)[there]

    def _look_for_returns(self, loads: Loads, lanes: Flags, minute: int) -> None:
        for i, one in enumerate(self.signals):
            back = lanes & (self.gone == i) & (loads.measured[one] >= BACK * self.least)
            self._begin(back, self.floor, NOTHING, minute)

    def _begin(self, lanes: Flags, floor: Counts, gone: int, minute: int) -> None:
        """The hold begins, now or once more."""
        if not lanes.any():
            return
        self.floor[lanes], self.since[lanes], self.gone[lanes] = floor[lanes], minute, gone
        self.least[lanes] = np.nan if gone == NOTHING else self.expected[gone, lanes]

"""Learned policies in the service: where a policy names one, its demand stands in the forecast's place."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.outlook import PeakForecast, SignalForecast
from forecaster.horizontal.learned import LATEST, advised, load, median_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from forecaster.cycle.rows import RowGroup
    from forecaster.horizontal.decide import Decisions
    from forecaster.horizontal.inputs import Inputs
    from forecaster.horizontal.learned import LearnedKind, LearnedPolicy

    Medians = dict[str, NDArray[np.float64]]


@dataclass(slots=True)
class LearnedPolicies:
    """The policies that shipped, loaded when one is named, and the medians that were forecast in the last cycles."""

    loaded: dict[LearnedKind, LearnedPolicy] = field(default_factory=dict)
    medians: deque[NDArray[np.float64]] = field(default_factory=lambda: deque(maxlen=LATEST + 1))
    """[row of the fleet] by cycle, NaN where no learned policy looks."""

    def opened(self, rows: int) -> None:
        """A cycle begins, in which the fleet has so many rows; fewer than before means that they have other places."""
        if self.medians and rows < len(self.medians[-1]):
            self.medians.clear()
        self.medians.append(np.full(rows, np.nan))

    def advised(self, inputs: Inputs, group: RowGroup, places: NDArray[np.int64], now: float) -> Inputs:
        """Return the inputs of a group with the demand of learned policies in the rows that name one."""
        for kind, rows in group.learned.items():
            before = self._before(places)
            self.medians[-1][places[rows]] = median_of(inputs)[rows]
            inputs = advised(inputs, self._policy(kind), before, now, rows)
        return inputs

    def _before(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """[row of the group] the median that was forecast `LATEST` cycles ago; NaN where it is not known."""
        found = np.full(len(places), np.nan)
        if len(self.medians) > LATEST:
            there = places < len(self.medians[0])
            found[there] = self.medians[0][places[there]]
        return found

    def _policy(self, kind: LearnedKind) -> LearnedPolicy:
        if kind not in self.loaded:
            self.loaded[kind] = load(kind)
        return self.loaded[kind]


@dataclass(frozen=True, slots=True)
class WithLearned(Mapping[str, SignalForecast]):
    """The signals of one workload, with what a learned policy made of the forecast of its first target."""

    known: Mapping[str, SignalForecast]
    kind: str
    decisions: Decisions
    row: int

    def __getitem__(self, signal: str) -> SignalForecast:
        found = self.known[signal]
        inputs = self.decisions.inputs
        kinds = inputs.rules.kinds
        if not kinds or kinds[0].signal != signal or not isinstance(found.ahead, PeakForecast):
            return found
        demand = float(inputs.peak[0, self.row])
        if np.isnan(demand) or not np.isnan(inputs.quantiles[0][:1, self.row]).any():
            return found
        note = f"learned ({self.kind}): its demand, having heard {found.ahead.model}"
        ahead = replace(found.ahead, peak=demand, median=demand, high=demand, model=f"learned-{self.kind}", note=note)
        ahead = replace(ahead, levels=(), peaks=())
        return replace(found, ahead=ahead)

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

"""Rule: the part that the author of a model writes, and its optional abilities.

`FittedRule` makes a fitted model of a rule; it asks what a rule knows and does without what it does not. `FreeColumns`
lie behind the latest bin of a history, so that one more bin does not copy two weeks of all series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from .forecast import StepWindow
from .panel import Floats, Panel, check_continues, trusted

Learned_contra = TypeVar("Learned_contra", contravariant=True)


class ModelRule(Protocol[Learned_contra]):
    """The arithmetic of a model. Rows without a forecast are NaN; they get the fallback, with a reason."""

    @property
    def name(self) -> str:
        """Name in forecasts."""

    def paths(self, history: Panel, learned: Learned_contra, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step] in the unit of the panel; order and sign of quantiles are mended by the caller."""


@runtime_checkable
class KnowsPeaks(Protocol):
    """A rule that forecasts the maximum of a window directly; others are judged by replaying their own past."""

    def peaks(self, history: Panel, learned: Any, window: StepWindow, levels: Sequence[float]) -> Floats:
        """[series, quantile] of the largest value within the window."""


@runtime_checkable
class KnowsSeveralPeaks(Protocol):
    """A rule that looks once at the history for the maxima of several windows."""

    def several_peaks(
        self, history: Panel, learned: Any, windows: Sequence[StepWindow], levels: Sequence[float]
    ) -> Sequence[Floats]:
        """[series, quantile] of the largest value within each window."""


@runtime_checkable
class KnowsReach(Protocol):
    """A rule that looks only so far ahead; beyond it has nothing to say, however long the history is."""

    def reach(self, history: Panel) -> int:
        """Steps."""


@runtime_checkable
class KnowsFailures(Protocol):
    """A rule that could learn nothing of some series."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Reasons why there is none, by key."""


@runtime_checkable
class Follows(Protocol):
    """A rule that goes on learning from new bins between fits."""

    def followed(self, history: Panel, learned: Any, known_until: datetime) -> Any:
        """Return the state after learning from the bins of `history` that begin at `known_until` or later."""


@runtime_checkable
class KnowsParts(Protocol):
    """A rule with a learned state of several panels that can be joined by series, and cut apart again."""

    def stacked(self, learned: Sequence[Any], step: timedelta) -> Any | None:
        """Knowledge of all series of panels of one step, None where it was learned in different ways."""

    def part(self, learned: Any, rows: slice | npt.NDArray[np.intp]) -> Any:
        """Knowledge of some of the series."""


# A copy after a sixteenth of the length: every twenty hours with two weeks, for six per cent more memory.
SPARE_DIVISOR = 16


@dataclass(eq=False, slots=True)
class GrowingColumns:
    """Values [series, time] with `taken` written columns at the beginning; written ones never change."""

    values: Floats
    taken: int


class FreeColumns(NamedTuple):
    """Spare columns behind a panel with its latest bin in the column before `end`.

    A second panel that continues the same columns finds the next one taken, and gets a copy.
    """

    columns: GrowingColumns
    end: int

    def holds(self, bins: int) -> bool:
        """Whether `bins` more columns fit."""
        return self.columns.taken == self.end and self.end + bins <= self.columns.values.shape[1]


def continued(known: Panel, newer: Panel, free: FreeColumns | None) -> tuple[Panel, FreeColumns | None]:
    """Return `known.append(newer)` without a copy while there is free space; and the space that is left.

    Raises:
        PanelError: as in `Panel.append`.
    """
    check_continues(known, newer)
    if newer.start != known.end:
        return known.append(newer), None
    if free is None or not free.holds(newer.length):
        free = _behind(known, newer.length)
    columns, end = free.columns, free.end + newer.length
    columns.values[:, free.end : end] = newer.values
    columns.taken = end
    values = columns.values[:, free.end - known.length : end]
    return trusted(values, known.start, known.step, known.keys), FreeColumns(columns, end)


def _behind(known: Panel, bins: int) -> FreeColumns:
    """A copy with columns to come."""
    series, length = known.values.shape
    values = np.empty((series, length + bins + max(1, length // SPARE_DIVISOR)), known.values.dtype)
    values[:, :length] = known.values
    return FreeColumns(GrowingColumns(values, length), length)

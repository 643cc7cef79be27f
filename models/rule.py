"""Rule: what the writer of a model writes, and what a model may know beyond that.

`Remembered` makes a fitted model of a rule; it asks what a rule knows and does without what it does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from .forecast import Window
    from .panel import Floats, Panel

Learned_contra = TypeVar("Learned_contra", contravariant=True)


class Rule(Protocol[Learned_contra]):
    """The arithmetic of a model. Rows for which it cannot speak are NaN; they get the fallback, with a reason."""

    @property
    def name(self) -> str:
        """Name in forecasts."""
        ...

    def paths(self, history: Panel, learned: Learned_contra, steps: int, levels: Sequence[float]) -> Floats:
        """[series, quantile, step] in the unit of the panel; order and sign of quantiles are mended by the caller."""
        ...


@runtime_checkable
class KnowsPeaks(Protocol):
    """A rule that forecasts the maximum of a window directly; others are judged by replaying their own past."""

    def peaks(self, history: Panel, learned: Any, window: Window, levels: Sequence[float]) -> Floats:
        """[series, quantile] of the largest value within the window."""
        ...


@runtime_checkable
class KnowsSeveralPeaks(Protocol):
    """A rule that looks once at the history for the maxima of several windows."""

    def several_peaks(
        self, history: Panel, learned: Any, windows: Sequence[Window], levels: Sequence[float]
    ) -> Sequence[Floats]:
        """[series, quantile] of the largest value within each window."""
        ...


@runtime_checkable
class KnowsReach(Protocol):
    """A rule that looks only so far ahead; beyond it has nothing to say, however long the history is."""

    def reach(self, history: Panel) -> int:
        """Steps."""
        ...


@runtime_checkable
class Follows(Protocol):
    """A rule that goes on learning from new bins between fits."""

    def followed(self, history: Panel, learned: Any, known_until: datetime) -> Any:
        """What is learned after the bins of `history` that begin at `known_until` or later; a new value."""
        ...

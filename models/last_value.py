"""Last value: nothing changes, within the range of changes seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .fitted import FittedRule, held, held_peaks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .forecast import StepWindow
    from .panel import Floats, Panel


@dataclass(frozen=True)
class LastValue:
    """The latest value plus quantiles of the changes over as many steps; what every model falls back to."""

    name: str = "last-value"

    def fit(self, panel: Panel) -> FittedRule[None]:
        """Learn nothing: changes are read from the history when asked."""
        return FittedRule(self, panel, None)

    def paths(self, history: Panel, learned: None, steps: int, levels: Sequence[float]) -> Floats:  # noqa: ARG002  no learning
        """[series, quantile, step]."""
        return held(history.values, steps, levels)

    def peaks(self, history: Panel, learned: None, window: StepWindow, levels: Sequence[float]) -> Floats:  # noqa: ARG002  as above
        """[series, quantile]."""
        return held_peaks(history.values, window, levels)

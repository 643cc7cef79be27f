"""Reasoned: a fitted model that knows better than its history why it cannot speak for some series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .model import Forgets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .forecast import Forecast, Peak, Provenance, Window
    from .model import Fitted
    from .panel import Panel


@dataclass(frozen=True, eq=False)
class Reasoned:
    """Another fitted model, with its reasons replaced for the series named in `reasons`."""

    fitted: Fitted
    reasons: Mapping[str, str]

    def update(self, panel: Panel) -> Reasoned:
        """See Fitted.update."""
        return replace(self, fitted=self.fitted.update(panel))

    def without_history(self) -> Reasoned:
        """See Forgets; the inner model keeps its samples if it cannot do without."""
        return replace(self, fitted=self.fitted.without_history()) if isinstance(self.fitted, Forgets) else self

    def forecast(self, steps: int, quantiles: Sequence[float]) -> Forecast:
        """See Fitted.forecast."""
        found = self.fitted.forecast(steps, quantiles)
        return replace(found, provenance=self._explained(found.provenance))

    def forecast_peak(self, window: Window, quantiles: Sequence[float]) -> Peak:
        """See Fitted.forecast_peak."""
        found = self.fitted.forecast_peak(window, quantiles)
        return replace(found, provenance=self._explained(found.provenance))

    def _explained(self, provenance: Provenance) -> Provenance:
        pairs = zip(provenance.keys, provenance.reasons, strict=True)
        return replace(provenance, reasons=tuple(self.reasons.get(key, why) if why else why for key, why in pairs))

"""First models without the time of first fits: a few are fitted, and the others begin with their numbers.

An answer costs the same whatever the numbers, so that steady cycles of a large fleet can be measured without the
quarter of an hour in which 300,000 series are fitted. Of no use for what is decided.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import models
from forecaster.domain.signal import DEMAND
from forecaster.forecasting.shards import Shards

if TYPE_CHECKING:
    from forecaster.domain.signal import Signal
    from forecaster.forecasting.forecaster import Forecaster


@dataclass
class Borrowing:
    """A model whose first `fits` are fits; those after them have the same numbers, where they are not longer."""

    model: Any
    fits: int
    fitted: list[Any]

    def fit(self, panel: models.Panel) -> Any:
        fits = [fit for fit in self.fitted if len(fit.history.keys) >= len(panel)]
        if len(fits) < self.fits:
            self.fitted.append(self.model.fit(panel))
            return self.fitted[-1]
        return replace(fits[len(panel) % len(fits)].part(np.arange(len(panel))), history=panel)


FITTED: dict[Signal, list[Any]] = defaultdict(list)
"""By signal, in this process: the cycles of several shards borrow from each other."""


def lend(forecaster: Forecaster, fits: int) -> None:
    """First fits by so many models of each signal."""
    for signal in DEMAND:
        borrowing = Borrowing(models.create(forecaster.model), fits, FITTED[signal])
        forecaster.signals[signal] = Shards(borrowing)


def fit_again(forecaster: Forecaster) -> None:
    """Renewals are fits, whatever the first ones were."""
    for shards in forecaster.signals.values():
        shards.model = getattr(shards.model, "model", shards.model)

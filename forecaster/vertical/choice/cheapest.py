"""The level at which size and risk together cost least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.vertical.choice.prices import Prices

    Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """[row] the level, the chance of a mishap at it, and whether today's level was kept because a change costs more."""

    level: Doubles
    chance: Doubles
    kept: NDArray[np.bool_]


def cheapest(
    levels: Doubles, chances: Doubles, scale: Doubles, prices: Prices, hours: float, today: Doubles | None = None
) -> Chosen:
    """The cheapest of the `levels` [row, level] for so many hours.

    `chances` belong to the levels, `scale` [row] is the level that prices are relative to. `today` [row, 2] is today's
    level and its chance, NaN for none; it is kept unless another is cheaper by more than the price of a change.
    """
    cost = levels * hours + prices.mishap * scale[:, None] * chances
    best = np.argmin(np.where(np.isnan(cost), np.inf, cost), axis=1)
    rows = np.arange(len(levels))
    level, chance = levels[rows, best], chances[rows, best]
    if today is None:
        return Chosen(level, chance, np.zeros(len(levels), bool))
    staying = today[:, 0] * hours + prices.mishap * scale * today[:, 1]
    kept = staying <= cost[rows, best] + prices.change * scale
    return Chosen(np.where(kept, today[:, 0], level), np.where(kept, today[:, 1], chance), kept)

"""The chance that the highest value of the coming interval passes a level.

The peaks of past days, each spread by a logistic kernel on the logarithm: tails that are heavier than normal ones, and
wider the fewer days there are, because with two days nobody knows the peak of the third.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]

LEAST_WIDTH = 0.02
WIDTH_OF_A_DAY = 0.15
"""Width when one day is known: its peak times or over 1.3 covers nine of ten next days of the recorded load."""
SHARE_OF_SPREAD = 0.25
_LEAST = 1e-12
_STEEPEST = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class Peaks:
    """Past peaks on a logarithmic scale: `logs`, `weights` [row, day] and `width` [row]."""

    logs: Doubles
    weights: Doubles
    width: Doubles

    def chance_above(self, levels: Doubles, days: float = 1.0) -> Doubles:
        """[row, level] the chance that one of so many coming days has a higher peak."""
        distance = (self.logs[:, :, None] - np.log(np.maximum(levels, _LEAST))[:, None, :]) / self.width[:, None, None]
        above = 1.0 / (1.0 + np.exp(np.clip(-distance, -_STEEPEST, _STEEPEST)))
        chance = np.einsum("rd,rdl->rl", self.weights, above)
        return np.asarray(1.0 - (1.0 - np.minimum(chance, 1.0)) ** days)

    def scale(self) -> Doubles:
        """[row] the weighted mean peak."""
        return np.asarray((self.weights * np.exp(self.logs)).sum(axis=1))


def peaks_of(peaks: Doubles, weights: Doubles) -> Peaks:
    """From peaks [row, day], NaN where not known, and weights that are zero there."""
    logs = np.log(np.maximum(np.where(weights > 0, peaks, 1.0), _LEAST))
    mean = (weights * logs).sum(axis=1, keepdims=True)
    spread = np.sqrt((weights * (logs - mean) ** 2).sum(axis=1))
    days = 1.0 / np.maximum((weights**2).sum(axis=1), _LEAST)
    width = LEAST_WIDTH + WIDTH_OF_A_DAY / np.maximum(days, 1.0) + SHARE_OF_SPREAD * spread * days**-0.2
    return Peaks(logs, weights, np.minimum(width, 1.0))

"""Tabular Q-learning (Watkins 1989): the worth of every action in every cell of a coarse state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.learning.actions import CHANGES, STAY
from forecaster.learning.situation import FEATURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from forecaster.learning.actions import Choices

    Floats = NDArray[np.float64]

EDGES: Mapping[str, tuple[float, ...]] = {
    "median": (-0.4, -0.15, 0.05, 0.25),
    "upper": (-0.3, -0.1, 0.05, 0.2, 0.45),
    "spread": (0.12, 0.35),
    "filled": (-0.4, -0.1, 0.1, 0.3),
    "starting": (0.01, 0.3),
    "error": (-0.1, 0.1),
    "sine": (0.0,),
    "cosine": (0.0,),
}
"""Where a feature passes from one cell to the next; time of day has four quarters."""
SHAPE = tuple(len(EDGES[name]) + 1 for name in FEATURES)
CELLS = int(np.prod(SHAPE))


def cells(features: Floats) -> Choices:
    """[lane] the cell of each situation [lane, feature]."""
    places = [np.searchsorted(EDGES[name], features[:, i]) for i, name in enumerate(FEATURES)]
    return np.asarray(np.ravel_multi_index(tuple(places), SHAPE))


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`worth[cell, action]`, and how often each was tried."""

    worth: Floats
    tried: Floats

    @classmethod
    def empty(cls) -> Table:
        """Before the first lesson."""
        return cls(np.full((CELLS, len(CHANGES)), UNTRIED), np.zeros((CELLS, len(CHANGES))))

    def choose(self, features: Floats) -> Choices:
        """The best action of those that were tried; nothing is changed where none was tried enough."""
        at = cells(features)
        known = np.where(self.tried[at] >= ENOUGH, self.worth[at], -np.inf)
        best = known.argmax(axis=1)
        return np.where(np.isfinite(known[:, STAY]), best, STAY)

    def arrays(self) -> dict[str, Floats]:
        """To be kept."""
        return {"worth": self.worth, "tried": self.tried}


ENOUGH = 30
UNTRIED = -20.0
"""Worse than holding twice the usual pods forever, so that nothing looks good because it was hardly tried."""


def learn(table: Table, at: Choices, taken: Choices, reward: Floats, then: Choices, discount: float) -> None:
    """One step of all lanes, in place: each cell moves towards what followed, less and less.

    Actions that were hardly tried in the next cell do not count there, unless none was.
    """
    known = np.where(table.tried[then] > 0, table.worth[then], -np.inf).max(axis=1)
    target = reward + discount * np.where(np.isfinite(known), known, table.worth[then].max(axis=1))
    np.add.at(table.tried, (at, taken), 1.0)
    rate = 1.0 / np.maximum(table.tried[at, taken], 1.0) ** 0.7
    np.add.at(table.worth, (at, taken), rate * (target - table.worth[at, taken]))

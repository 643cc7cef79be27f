"""Weeks of one signal, to be read by workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId

    Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Rows:
    """A window, and where each workload is in it."""

    window: Window
    row: Mapping[WorkloadId, int]

    @classmethod
    def of(cls, window: Window) -> Rows:
        """Look up where each workload is."""
        return cls(window, {id_: i for i, id_ in enumerate(window.keys)})

    def values(self, ids: Sequence[WorkloadId]) -> Floats:
        """[workload, time], gaps for those that have no row; a copy."""
        at = np.array([self.row.get(id_, -1) for id_ in ids], np.intp)
        found = np.full((len(ids), self.window.values.shape[1]), np.nan, np.float32)
        found[at >= 0] = self.window.values[at[at >= 0]]
        return found

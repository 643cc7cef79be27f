"""What a window knows of some workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId


def values_of(window: Window, ids: Sequence[WorkloadId], newest: int | None = None) -> NDArray[np.float32]:
    """[workload, time] of the newest columns, by default of all; gaps for those that have no row; a copy."""
    columns = window.values.shape[1] if newest is None else newest
    at = np.array([window.row.get(id_, -1) for id_ in ids], np.intp)
    found = np.full((len(ids), columns), np.nan, np.float32)
    found[at >= 0] = window.values[at[at >= 0], window.values.shape[1] - columns :]
    return found

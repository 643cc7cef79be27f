"""Loads out of what was measured of one pod of each workload, for a replay of its own past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.replay.sizes.load import POINTS, Load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from forecaster.replay.sizes.load import Resource

WARM_SHARE = 0.5
"""Half of what is known is read before the first decision, at most eight days."""
MOST_WARM = 8 * POINTS


def measured_load(resource: Resource, names: Sequence[str], usage: NDArray[np.float64]) -> Load | None:
    """The rows of `usage` [workload, time] of which half a day is known on both sides; None where there are none."""
    known = ~np.isnan(usage)
    begin = int(np.argmax(known.any(axis=0))) if known.any() else usage.shape[1]
    usage, known = usage[:, begin:], known[:, begin:]
    warm = min(int(usage.shape[1] * WARM_SHARE), MOST_WARM)
    enough = [part.sum(axis=1) >= POINTS // 2 for part in (known[:, :warm], known[:, warm:])]
    rows = np.flatnonzero(enough[0] & enough[1])
    if not rows.size:
        return None
    return Load(resource, tuple(names[row] for row in rows.tolist()), usage[rows], warm)

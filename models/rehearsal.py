"""Rehearsal: what the prior would have said of the coming peak at many past origins, to judge decisions by.

The prior has learned nothing from the series, so its past words are as good as its next ones; a model that was fitted
on the same days would be judged by what it has seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .gaps import filled
from .panel import DAY
from .prior import GROWN_DAYS, in_own_unit, look
from .spread import read_table
from .training import LEVELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .forecast import Window
    from .panel import Floats, Panel

# Origins looked at together: their features are some tens of megabytes.
BLOCK = 720
LEAST_DAYS = 1


def rehearsed_peaks(panel: Panel, window: Window, levels: Sequence[float], origins: npt.NDArray[np.intp]) -> Floats:
    """[series, origin, level] quantiles of the largest value of the window after the bins `origins`, which ascend.

    Each origin sees the bins up to and including its own. NaN where it has less than a day behind it.
    """
    day = panel.bins(DAY)
    out = np.full((len(panel), len(origins), len(levels)), np.nan)
    if not day:
        return out
    values, unit = in_own_unit(filled(panel.values))
    told = np.flatnonzero(origins >= LEAST_DAYS * day)
    for at in (told[i : i + BLOCK] for i in range(0, len(told), BLOCK)):
        part = origins[at]
        first = max(0, int(part[0]) - (GROWN_DAYS + 1) * day)
        views = look(values[:, first : int(part[-1]) + 1], part - first, [window], day)
        found = views.in_units(views.squashed)[:, :, 0].swapaxes(1, 2)
        out[:, at] = read_table(found, levels, LEVELS).swapaxes(1, 2) * unit[:, None, None]
    return np.asarray(np.maximum(out, 0.0))

"""Rehearsal: what the prior would have said of coming peaks at many past origins, to judge decisions by.

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

# Origins of all series looked at together: their features are some tens of megabytes.
BLOCK = 720
LEAST_DAYS = 1


def rehearsed_peaks(
    panel: Panel, windows: Sequence[Window], levels: Sequence[float], origins: npt.NDArray[np.intp]
) -> Floats:
    """[series, origin, window, level] quantiles of the largest value of each window after the bins `origins`.

    Origins ascend, and each sees the bins up to and including its own. NaN where it has less than a day behind it.
    """
    day = panel.bins(DAY)
    out = np.full((len(panel), len(origins), len(windows), len(levels)), np.nan)
    if not day or not len(panel):
        return out
    values, unit = in_own_unit(filled(panel.values))
    told = np.flatnonzero(origins >= LEAST_DAYS * day)
    for part in np.array_split(told, -(-len(told) * len(panel) // BLOCK) or 1):
        if len(part):
            out[:, part] = _said(values, origins[part], windows, levels, day) * unit[:, None, None, None]
    return np.asarray(np.maximum(out, 0.0))


def _said(
    values: Floats, origins: npt.NDArray[np.intp], windows: Sequence[Window], levels: Sequence[float], day: int
) -> Floats:
    """[series, origin, window, level] from gapless values [series, time] of at most eight days before the first one."""
    first = max(0, int(origins[0]) - (GROWN_DAYS + 1) * day)
    views = look(values[:, first : int(origins[-1]) + 1], origins - first, windows, day)
    found = np.moveaxis(views.in_units(views.squashed), -1, 1)
    return np.moveaxis(read_table(found, levels, LEVELS), 1, -1)

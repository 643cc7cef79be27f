"""The last hours of a workload as a line of blocks, for terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.amounts import alike
from forecaster.domain.window import FIVE_MINUTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.domain.workload import WorkloadId
    from forecaster.ports import Histories

    Floats = NDArray[np.float64]

PAST = 144
"""Half a day by five minutes."""
BLOCKS = "▁▂▃▄▅▆▇█"


def half_day(history: Histories, id_: WorkloadId, signal: str) -> Floats:
    """Demand by five minutes, the newest last; empty where nothing is known."""
    for one in history.signals:
        known = history.window(one, FIVE_MINUTES)
        if str(one) == signal and id_ in known.keys:
            return np.asarray(known.values[known.keys.index(id_), -PAST:], dtype=float)
    return np.zeros(0)


def sparkline(values: Floats, points: int) -> str:
    """The largest value of each of `points` spans as a block between nothing and the largest; a gap is a space."""
    if not np.isfinite(values).any():
        return ""
    peaks = [float(np.nanmax(one)) if np.isfinite(one).any() else np.nan for one in np.array_split(values, points)]
    top = np.nanmax(peaks)
    return "".join(" " if np.isnan(one) else BLOCKS[_height(one, top)] for one in peaks)


def _height(value: float, top: float) -> int:
    return min(len(BLOCKS) - 1, max(0, int(value / top * len(BLOCKS)))) if top > 0 else 0


def spoken_half_day(history: Histories, id_: WorkloadId, signal: str, unit: str) -> str:
    """One line: the picture, the least and the most; empty where nothing is known."""
    values = half_day(history, id_, signal)
    if not np.isfinite(values).any():
        return ""
    low, high = alike((float(np.nanmin(values)), float(np.nanmax(values))), unit)
    return f"{signal}, the last {len(values) // 12} h: {sparkline(values, 36)} {low} to {high}"

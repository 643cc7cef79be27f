"""The last value held, with the spread it had so far: what is said when a model cannot speak."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .gaps import filled
from .spread import SCORES, error_table, read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .forecast import Window
    from .panel import Floats

# Two days of changes, at steps of five minutes, say enough about the spread; this many of them are looked at.
REACH, CHANGES = 576, 200
# With few changes seen, the spread is at least that of a value that wanders by a tenth of itself.
SHORTEST, LEAST_SPREAD = 12, 0.1


def held(values: Floats, steps: int, levels: Sequence[float]) -> Floats:
    """[series, quantile, step]: the newest value plus quantiles of how far the series moved in as many steps."""
    known = filled(values[:, -REACH:]).astype(np.float64)
    if not known.size:
        return np.zeros((len(known), len(levels), steps))
    anchors = sorted({1, -(-steps // 2), steps})
    moved = np.stack([read_table(_moves(known, a), levels) for a in anchors], axis=2)
    spread = np.stack([_along(moved, anchors, step) for step in range(1, steps + 1)], axis=2)
    return known[:, -1][:, None, None] + spread


def held_peaks(values: Floats, window: Window, levels: Sequence[float]) -> Floats:
    """[series, quantile]: the newest value plus quantiles of how far the window's maximum lay above it."""
    known = filled(values[:, -REACH:]).astype(np.float64)
    if not known.size:
        return np.zeros((len(known), len(levels)))
    if known.shape[1] <= window.last + 1:
        return known[:, -1:] + read_table(_moves(known, window.last), levels)
    origins = _spaced(known.shape[1] - window.last)
    ahead = np.max([known[:, origins + k] for k in range(window.first, window.last + 1)], axis=0)
    return known[:, -1:] + read_table(error_table(ahead - known[:, origins]), levels)


def _moves(known: Floats, steps: int) -> Floats:
    count = known.shape[1] - steps
    origins = _spaced(count)
    moves = known[:, origins + steps] - known[:, origins] if count > 0 else np.zeros((len(known), 1))
    table = error_table(moves)
    if count >= SHORTEST:
        return table
    wandering = LEAST_SPREAD * SCORES * known[:, -1:]
    return np.asarray(np.sign(SCORES) * np.maximum(np.abs(table), np.abs(wandering)))


def _spaced(count: int) -> npt.NDArray[np.intp]:
    return np.unique(np.linspace(0, max(0, count - 1), min(CHANGES, max(1, count))).astype(np.intp))


def _along(moved: Floats, anchors: list[int], step: int) -> Floats:
    right = min(int(np.searchsorted(anchors, step)), len(anchors) - 1)
    left = max(0, right - 1)
    share = 0.0 if anchors[right] == anchors[left] else (step - anchors[left]) / (anchors[right] - anchors[left])
    return (1 - share) * moved[:, :, left] + share * moved[:, :, right]

"""Gaps: what was known at the time, carried forward; never a look ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .panel import Floats


def filled(values: Floats) -> Floats:
    """[series, time] with every gap holding the newest earlier sample, the first one before it, 0 where there is none.

    The array itself when it has no gaps.
    """
    rows = np.flatnonzero(np.isnan(values.sum(axis=1)))
    if not len(rows):
        return values
    out = values.copy()
    out[rows] = _carried(values[rows])
    return out


def bins_seen(values: Floats) -> npt.NDArray[np.intp]:
    """[series] bins since the first sample; 0 where there is none."""
    return np.asarray(values.shape[1] - _leading_gaps(values))


def bins_silent(values: Floats) -> npt.NDArray[np.intp]:
    """[series] bins since the newest sample, 0 when the newest bin has one, all of them where there is none."""
    return _leading_gaps(values[:, ::-1])


def _leading_gaps(values: Floats) -> npt.NDArray[np.intp]:
    """[series] columns before the first sample. Most series begin with one, so only the others are looked at whole."""
    gaps = np.zeros(len(values), dtype=np.intp)
    if values.shape[1]:
        late = np.flatnonzero(~np.isfinite(values[:, 0]))
        known = np.isfinite(values[late])
        gaps[late] = np.where(known.any(axis=1), known.argmax(axis=1), values.shape[1])
    return gaps


def _carried(values: Floats) -> Floats:
    known = np.isfinite(values)
    newest = np.maximum.accumulate(np.where(known, np.arange(values.shape[1]), -1), axis=1)
    position = np.where(newest < 0, known.argmax(axis=1)[:, None], newest)
    return np.nan_to_num(np.take_along_axis(values, position, axis=1))

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
    known = np.isfinite(values)
    return np.asarray(values.shape[1] - _first(known))


def bins_silent(values: Floats) -> npt.NDArray[np.intp]:
    """[series] bins since the newest sample, 0 when the newest bin has one, all of them where there is none."""
    return _first(np.isfinite(values[:, ::-1]))


def _first(known: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """[series] first true column, the number of columns where there is none."""
    length = known.shape[1]
    if not length:
        return np.zeros(len(known), dtype=np.intp)
    return np.asarray(np.where(known.any(axis=1), known.argmax(axis=1), length), dtype=np.intp)


def _carried(values: Floats) -> Floats:
    known = np.isfinite(values)
    newest = np.maximum.accumulate(np.where(known, np.arange(values.shape[1]), -1), axis=1)
    position = np.where(newest < 0, known.argmax(axis=1)[:, None], newest)
    return np.nan_to_num(np.take_along_axis(values, position, axis=1))

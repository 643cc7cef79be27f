"""Gaps: what was known at the time, carried forward; never a look ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .panel import Floats

# A missed scrape is a gap of all series in a few columns; those are filled in a tenth of the time of the whole array.
FEW_COLUMNS = 50
# Below this share of its size a series does not move, and teaches nothing.
UNMOVED = 1e-9


def filled(values: Floats) -> Floats:
    """[series, time] with every gap holding the latest earlier sample, the first one before it, 0 where there is none.

    The array itself when it has no gaps.
    """
    gaps = np.isnan(values)
    columns = np.flatnonzero(gaps.any(axis=0))
    if not len(columns):
        return values
    out = values.copy()
    if len(columns) <= FEW_COLUMNS:
        _carry_columns(out, gaps, columns)
    else:
        rows = np.flatnonzero(gaps.any(axis=1))
        out[rows] = _carried(values[rows])
    return out


def bins_seen(values: Floats) -> npt.NDArray[np.intp]:
    """[series] bins since the first sample; 0 where there is none."""
    return np.asarray(values.shape[1] - _leading_gaps(values))


def bins_silent(values: Floats) -> npt.NDArray[np.intp]:
    """[series] bins since the latest sample, 0 when the latest bin has one, all of them where there is none."""
    return _leading_gaps(values[:, ::-1])


def _leading_gaps(values: Floats) -> npt.NDArray[np.intp]:
    """[series] columns before the first sample. Most series begin with one, so only the others are looked at whole."""
    gaps = np.zeros(len(values), dtype=np.intp)
    if values.shape[1]:
        late = np.flatnonzero(~np.isfinite(values[:, 0]))
        known = np.isfinite(values[late])
        gaps[late] = np.where(known.any(axis=1), known.argmax(axis=1), values.shape[1])
    return gaps


def _carry_columns(out: Floats, gaps: npt.NDArray[np.bool_], columns: npt.NDArray[np.intp]) -> None:
    """Fill a few columns in place, one after the other."""
    late = np.flatnonzero(gaps[:, 0])
    first = np.minimum(_leading_gaps(out[late]), out.shape[1] - 1)
    out[late, 0] = np.nan_to_num(out[late, first])
    for column in columns[columns > 0].tolist():
        np.copyto(out[:, column], out[:, column - 1], where=gaps[:, column])


def _carried(values: Floats) -> Floats:
    known = np.isfinite(values)
    newest = np.maximum.accumulate(np.where(known, np.arange(values.shape[1]), -1), axis=1)
    position = np.where(newest < 0, known.argmax(axis=1)[:, None], newest)
    return np.nan_to_num(np.take_along_axis(values, position, axis=1))

"""Columns of facts that outlive a cycle: rows on the last axis, with what a new row has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from forecaster.horizontal.numbers import Counts

Column = NDArray[Any]


def taken(column: Column, rows: Counts, nothing: Any) -> Column:
    """The values of these rows in this order; `nothing` for a negative row, which is new."""
    new = rows < 0
    if not new.any():
        return np.asarray(column[..., rows])
    found = np.full((*column.shape[:-1], len(rows)), nothing, column.dtype)
    found[..., ~new] = column[..., rows[~new]]
    return found


def put(column: Column, rows: Counts, values: Column) -> Column:
    """A copy of the column with the values of these rows."""
    copy = column.copy()
    copy[..., rows] = values
    return copy

"""Columns of facts that outlive a cycle: rows on the last axis, with what a new row has; fingerprints of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.horizontal.numbers import Counts

Column = NDArray[Any]
_PRIME = np.uint64(0x100000001B3)


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


def mixed(numbers: NDArray[np.uint64], columns: Iterable[Column]) -> NDArray[np.uint64]:
    """Fingerprints [row] with each column [row] mixed into what is there: FNV-1a by whole numbers."""
    for column in columns:
        wide = column.astype(np.float64 if column.dtype.kind == "f" else np.int64)
        numbers = (numbers ^ wide.view(np.uint64)) * _PRIME
    return numbers

"""Rows of workloads in an array of others: each array that is laid beside another one is aligned here."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray


def rows_among(keys: Collection[Hashable], row: Mapping[Any, int]) -> NDArray[np.intp]:
    """Return the row of each key; -1 where it has none."""
    return np.fromiter(map(row.get, keys, repeat(-1)), np.intp, len(keys))


class CachedRows:
    """`rows_among`, cached while the same keys are looked up in the same rows: a fleet is mostly the one before.

    Rows may be added to a mapping; where one goes or moves, another mapping takes its place.
    """

    def __init__(self) -> None:
        self._keys: Collection[Hashable] = ()
        self._row: Mapping[Any, int] = {}
        self._known, self._rows = 0, np.empty(0, np.intp)

    def of(self, keys: Collection[Hashable], row: Mapping[Any, int]) -> NDArray[np.intp]:
        """Return the row of each key; -1 where it has none."""
        if row is not self._row or len(row) != self._known or keys != self._keys:
            self._keys, self._row, self._known, self._rows = keys, row, len(row), rows_among(keys, row)
            self._rows.flags.writeable = False
        return self._rows

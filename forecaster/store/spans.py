"""Runs of true values, as half-open index pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def spans(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """`[start, stop)` of every run of true values, in order.

    >>> spans(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))

"""From minutes to five minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def means(minutes: NDArray[np.float32], *, size: int, at_least: int) -> NDArray[np.float64]:
    """Mean of every `size` neighbouring columns, over the known ones; NaN where fewer than `at_least` are known.

    [rows, size * n] in, [rows, n] out.
    """
    grouped = minutes.reshape(len(minutes), minutes.shape[1] // size, size)
    known = np.isfinite(grouped)
    count = known.sum(axis=2)
    total = np.where(known, grouped, 0.0).sum(axis=2, dtype=np.float64)
    return np.where(count >= at_least, total / np.maximum(count, 1), np.nan)

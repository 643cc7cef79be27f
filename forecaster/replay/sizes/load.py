"""Recorded usage of containers, one resource at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STEP_SECONDS = 300
POINTS = 86400 // STEP_SECONDS
BEGIN = 1_700_006_400
"""A midnight, in seconds since 1970; the recorded clock does not matter."""
Resource = Literal["cpu", "memory"]


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """`wanted` [row, time] every five minutes, in cores or bytes; NaN where nothing is known.

    It is what the containers wanted: what they got is never more than their limit. The first `warm` columns are history
    that every recommender may read before it has to decide.
    """

    resource: Resource
    names: tuple[str, ...]
    wanted: NDArray[np.float64]
    warm: int

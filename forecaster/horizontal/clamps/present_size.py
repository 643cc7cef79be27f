"""Present size: without an HPA and a stated minimum the smallest allowed count is not known, so the count stays.

One replica of a database that forms a quorum of three is no cheaper size, it is an outage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.horizontal.lazy_numpy import np

if TYPE_CHECKING:
    from forecaster.horizontal.clamps import ClampContext, Step
    from forecaster.horizontal.numbers import Counts


def limited(count: Counts, at: ClampContext) -> Counts:
    """The count [row], not below the present one where nothing states a minimum."""
    return np.maximum(count, at.checked.current) if at.checked.rules.keeps_size else count


def sentence(step: Step) -> str:
    """Say which settings would let the count fall."""
    return f"it has {step.after}, no HPA, and no stated minimum; min_replicas of its policy lets it go down"

"""Known events as floors: raised a lead time before one begins, and held until it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.horizontal.lazy_numpy import np

if TYPE_CHECKING:
    from forecaster.horizontal.clamps.clamp import ClampContext, Step
    from forecaster.horizontal.numbers import Counts


def limited(count: Counts, at: ClampContext) -> Counts:
    """The count [row], raised to the floor of an event."""
    return np.maximum(count, at.seen.event_floor) if at.seen.event_floor.any() else count


def sentence(step: Step) -> str:
    """Which event, and until when."""
    return step.words.event

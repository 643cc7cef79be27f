"""Known events: floors, raised a lead time before one begins, and maxima, above which a forecast raises nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.horizontal.lazy_numpy import np
from forecaster.hpa.numbers import MAX_INT32

if TYPE_CHECKING:
    from forecaster.horizontal.clamps import ClampContext, Step
    from forecaster.horizontal.numbers import Counts


def raised(count: Counts, at: ClampContext) -> Counts:
    """The count [row], raised to the floor of an event."""
    return np.maximum(count, at.checked.event_floor) if at.checked.event_floor.any() else count


def lowered(count: Counts, at: ClampContext) -> Counts:
    """The count [row], lowered to the maximum of an event; below measured demand only where the policy says so."""
    most, bound = at.checked.event_most, at.checked.event_bound
    if (np.minimum(most, bound) == MAX_INT32).all():
        return count
    return np.minimum(count, np.maximum(np.minimum(np.maximum(most, at.desired.reactive), bound), 1))


def sentence(step: Step) -> str:
    """Name the event, its end, and, where it lowers the count, the replicas that measured demand needs."""
    if step.after > step.before:
        return step.row.event
    return f"{step.row.event_most}; measured demand asks for {step.row.reactive}"

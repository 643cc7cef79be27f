"""The clamps in their order, one idea a file: its rule on arrays, and its sentence.

Bounds come last, so that no rule can undo one; floors come after stabilization, so that they end when they end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from forecaster.horizontal.clamps import (
    blast_radius,
    bounds,
    events,
    forecast,
    outage_hold,
    present_size,
    spare,
    stabilization,
)
from forecaster.horizontal.lazy_numpy import np

if TYPE_CHECKING:
    from forecaster.horizontal.checked import Checked
    from forecaster.horizontal.decide import Desired
    from forecaster.horizontal.numbers import Counts
    from forecaster.horizontal.row import DecidedRow
    from forecaster.horizontal.state import State


class ClampContext(NamedTuple):
    """Inputs of a clamp: the rows of this cycle, their proposals, and the state of earlier cycles."""

    checked: Checked
    desired: Desired
    state: State
    """State with this cycle's outages and an empty slot for this cycle."""
    now: float


class Step(NamedTuple):
    """One row in which a clamp changed the count, with the facts for its sentence."""

    before: int
    after: int
    row: DecidedRow

    def policy(self, name: str) -> float:
        """Return a number of the row's policy, by the name of its setting; 0 where it is not stated."""
        return self.row.rules.number(name)


class ClampRule(NamedTuple):
    """One rule that may change a count."""

    name: str
    """Name of the clamp in records."""
    limited: Callable[[Counts, ClampContext], Counts]
    """The count [row] after it, of the count before it."""
    sentence: Callable[[Step], str]
    """Say why the clamp changed the count of a row."""
    of_hpa: bool = False
    """Whether an HPA does it itself to the count that it reads; done twice, it would delay twice."""


CLAMPS = (
    ClampRule("forecast", forecast.limited, forecast.sentence),
    ClampRule("event maximum", events.lowered, events.sentence),
    ClampRule("blast radius", blast_radius.limited, blast_radius.sentence),
    ClampRule("stabilization", stabilization.limited, stabilization.sentence, of_hpa=True),
    ClampRule("outage", outage_hold.limited, outage_hold.sentence),
    ClampRule("event", events.raised, events.sentence),
    ClampRule("spare", spare.limited, spare.sentence),
    ClampRule("present size", present_size.limited, present_size.sentence),
    ClampRule("bounds", bounds.limited, bounds.sentence, of_hpa=True),
)
RECOMMENDATION = [clamp.name for clamp in CLAMPS].index("stabilization") - 1
"""Position of the clamp after which a count is remembered: before stabilization (HPA rules §10)."""


def clamped(count: Counts, at: ClampContext) -> tuple[Counts, ...]:
    """The counts [clamp][row] after each clamp."""
    counts = []
    for clamp in CLAMPS:
        count = clamp.limited(count, at)
        counts.append(count)
    return tuple(counts)


def clamped_for_hpa(recommendation: Counts, at: ClampContext) -> Counts:
    """The count [row] that an HPA is to read: after every clamp but those that it applies itself.

    Of the bounds it applies its own; a maximum that the policy states is ours to keep.
    """
    count = recommendation
    for clamp in CLAMPS[RECOMMENDATION + 1 :]:
        if not clamp.of_hpa:
            count = clamp.limited(count, at)
    return np.minimum(count, at.checked.policy.own_max_replicas)

"""The clamps in their order, one idea a file: its rule on arrays, and its sentence.

Bounds come last, so that no rule can undo one; floors come after stabilization, so that they end when they end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from forecaster.horizontal.clamps.clamp import ClampContext, ClampRule
from forecaster.horizontal.lazy_numpy import np

if TYPE_CHECKING:
    from forecaster.horizontal.numbers import Counts

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

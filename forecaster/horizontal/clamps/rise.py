"""The hourly ceiling for rises: how many pods a forecast may add within an hour, whatever it says in each cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.horizontal.codes import UNKNOWN
from forecaster.horizontal.lazy_numpy import np

if TYPE_CHECKING:
    from forecaster.horizontal.clamps.clamp import ClampContext, Step
    from forecaster.horizontal.numbers import Counts

HOUR = 3600.0


def limited(count: Counts, at: ClampContext) -> Counts:
    """No more above the lowest recommendation of the last hour than the ceiling, but as much as is measured."""
    policy, current = at.seen.policy, at.seen.current
    if "max_rise_per_hour" not in policy.in_use:
        return count
    lowest = current
    for entry in at.state.recommendations.since(at.now - HOUR):
        lowest = np.minimum(lowest, np.where(entry == UNKNOWN, lowest, entry))
    ceiling = np.maximum(lowest + np.nan_to_num(policy["max_rise_per_hour"], nan=np.inf), at.desired.reactive)
    return np.minimum(count, ceiling).astype(np.int64)


def sentence(step: Step) -> str:
    """The ceiling."""
    return f"a forecast adds {step.policy('max_rise_per_hour'):g} pods an hour at most"

"""Stabilization: down only to the highest recommendation of the window (HPA rules §10).

An entry exactly as old as the window still counts. A row that is seen for the first time recommended the size it has.
Unlike the HPA, which keeps an outdated entry until its slot is written again, nothing older than the window counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.horizontal.codes import UNKNOWN
from forecaster.horizontal.lazy_numpy import np

if TYPE_CHECKING:
    from forecaster.horizontal.clamps import ClampContext, Step
    from forecaster.horizontal.numbers import Counts, Floats
    from forecaster.horizontal.state import Ring


def limited(count: Counts, at: ClampContext) -> Counts:
    """Return the highest recommendation of the stabilization window, this one included."""
    policy, state = at.checked.policy, at.state
    window = policy["scale_down_stabilization"] if policy.window is None else policy.window
    highest = np.maximum(count, highest_since(state.recommendations, window, at.now))
    if state.begun.all():
        return highest
    return np.where(state.begun, highest, np.maximum(highest, at.checked.current))


def highest_since(recommendations: Ring, window: float | Floats, now: float) -> Counts:
    """The highest recommendation [row] of the last `window` seconds, one for all rows or one each."""
    if isinstance(window, float):
        slots = recommendations.since(now - window)
    else:
        old = now - window
        by_slot = zip(recommendations.times, recommendations.values, strict=True)
        slots = tuple(np.where(time >= old, value, UNKNOWN) for time, value in by_slot)
    highest = slots[-1].astype(np.int64)
    for slot in slots[:-1]:
        np.maximum(highest, slot, out=highest)
    return highest


def sentence(step: Step) -> str:
    """The length of the window."""
    return f"highest recommendation of the last {step.policy('scale_down_stabilization'):g} s"

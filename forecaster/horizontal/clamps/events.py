"""Known events as floors: raised a lead time before one begins, and held until it is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.horizontal.events import floor_at

if TYPE_CHECKING:
    from forecaster.horizontal.clamps.clamp import ClampContext, Step
    from forecaster.horizontal.numbers import Counts


def limited(count: Counts, at: ClampContext) -> Counts:
    """The count [row], raised to the floor of an event."""
    return np.maximum(count, at.seen.event_floor) if at.seen.event_floor.any() else count


def sentence(step: Step) -> str:
    """Which event, and until when."""
    lead = timedelta(seconds=float(step.decisions.inputs.policy.lead_time[step.row]))
    event = floor_at(step.policy.events, datetime.fromtimestamp(step.decisions.now, UTC), lead)
    return f"{event.event} until {event.until:%H:%M} UTC" if event else ""

"""Known events of lanes that share them: `decisions.events` at every minute of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.events import floor_at, freeze_at
from forecaster.decisions.lead_time import lead_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from forecaster.domain.event import ScheduledEvent
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.replay.fast.numbers import Counts, Flags
    from forecaster.replay.sight import Sight


class Calendar(NamedTuple):
    """[minute, lane] floors, 0 without one, and [minute] whether nothing may change."""

    floors: Counts
    frozen: Flags


def calendar_of(policies: Sequence[HorizontalPolicy], sight: Sight) -> Calendar | None:
    """The calendar of lanes with the same events, each at its own lead time; None without any."""
    events = policies[0].events
    if not events:
        return None
    instants = [sight.instant(minute) for minute in range(sight.minutes)]
    leads = [lead_time(policy).value for policy in policies]
    floors = {lead: _floors(events, instants, lead) for lead in set(leads)}
    frozen = np.array([freeze_at(events, now) is not None for now in instants])
    return Calendar(np.stack([floors[lead] for lead in leads], axis=1), frozen)


def _floors(events: Iterable[ScheduledEvent], instants: Sequence[datetime], lead: timedelta) -> Counts:
    found = (floor_at(events, now, lead) for now in instants)
    return np.array([floor.replicas if floor else 0 for floor in found], np.int64)

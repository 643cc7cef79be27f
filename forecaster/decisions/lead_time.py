"""From asking for a pod until it serves: measured on the workload's own scale-ups, or configured."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from forecaster.domain.policy import HorizontalPolicy

DEFAULT = timedelta(minutes=3)
"""Where nothing was measured: two minutes of start-up, and a cycle."""
RANK = 0.9
LEAST = 5
"""Fewer scale-ups say nothing about a P90."""
KEPT = 50
LADDER = tuple(timedelta(minutes=m) for m in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30))
"""Measured lead times are rounded up to one of these, so that few different spans have to be forecast."""


class LeadTime(NamedTuple):
    """The lead time in force and where it comes from."""

    value: timedelta
    origin: str


def lead_time(
    policy: HorizontalPolicy, start_ups: Sequence[timedelta] = (), *, delay: timedelta = timedelta(minutes=1)
) -> LeadTime:
    """What the policy states, else P90 of the measured start-ups plus `delay` (scrape + cycle + sync)."""
    if policy.lead_time is not None:
        return LeadTime(policy.lead_time, "configured")
    if len(start_ups) < LEAST:
        return LeadTime(DEFAULT, f"assumed; {len(start_ups)} of {LEAST} scale-ups seen")
    ranked = sorted(start_ups)
    slow = ranked[math.ceil(RANK * len(ranked)) - 1] + delay
    value = next((step for step in LADDER if step >= slow), LADDER[-1])
    return LeadTime(value, f"P90 of {len(ranked)} scale-ups, with scrape, cycle and sync")


class Watch(NamedTuple):
    """Scale-ups of one workload: those being waited for as (ready pods needed, asked at), and how long others took."""

    waiting: tuple[tuple[int, datetime], ...] = ()
    took: tuple[timedelta, ...] = ()
    asked: int | None = None


def watched(watch: Watch, replicas: int, ready: int, now: datetime) -> Watch:
    """The same after a look at the workload: a scale-up is over when as many pods are ready as it asked for.

    A scale-up that is taken back before it is over says nothing.
    """
    waiting = tuple(one for one in watch.waiting if one[0] <= replicas)
    done = tuple(now - since for wanted, since in waiting if ready >= wanted)
    still = tuple(one for one in waiting if ready < one[0])
    if watch.asked is not None and replicas > watch.asked and ready < replicas:
        still = (*still, (replicas, now))
    return Watch(still, (*watch.took, *done)[-KEPT:], replicas)

"""From asking for a pod until it serves: measured on the workload's own scale-ups, or configured."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.decision import LeadTime

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from forecaster.domain.policy import HorizontalPolicy

DEFAULT = timedelta(minutes=3)
"""Where nothing was measured: two minutes of start-up, and a cycle."""
DELAY = timedelta(minutes=1)
"""Scrape, cycle and sync, with a cycle a minute."""
RANK = 0.9
LEAST = 5
"""Fewer scale-ups say nothing about a P90."""
ASSUMED = tuple(LeadTime(DEFAULT, f"assumed; {seen} of {LEAST} scale-ups seen") for seen in range(LEAST))
KEPT = 50
LADDER = tuple(timedelta(minutes=m) for m in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 45, 60, 120, 180, 360, 720))
"""Measured lead times are rounded up to one of these, so that few different spans have to be forecast."""
FAR = 1.25
"""A rung that is too short by more than this factor is left at once."""
PATIENCE = 5
"""Any other rung is left after so many scale-ups in a row that speak for another one."""


def lead_time(policy: HorizontalPolicy, start_ups: Sequence[timedelta] = (), *, delay: timedelta = DELAY) -> LeadTime:
    """What the policy states, else P90 of the measured start-ups plus `delay` (scrape + cycle + sync)."""
    if policy.lead_time is not None:
        return LeadTime(policy.lead_time, "configured")
    if len(start_ups) < LEAST:
        return ASSUMED[len(start_ups)]
    return measured(rung_of(slow(start_ups) + delay), len(start_ups))


def measured(rung: timedelta, scale_ups: int) -> LeadTime:
    """A lead time that was measured on so many scale-ups."""
    return LeadTime(rung, f"P90 of {scale_ups} scale-ups, with scrape, cycle and sync")


def slow(start_ups: Sequence[timedelta]) -> timedelta:
    """P90, the lower one between two: the slowest of five may have been an accident."""
    return sorted(start_ups)[int(RANK * (len(start_ups) - 1))]


def rung_of(duration: timedelta) -> timedelta:
    """The step of the ladder that holds this duration; the last one where none does."""
    return next((step for step in LADDER if step >= duration), LADDER[-1])


class Watch(NamedTuple):
    """Scale-ups of one workload: those being waited for as (ready pods needed, asked at), and how long others took.

    `rung` is the lead time in force, None while too few were seen; `off` counts the latest scale-ups in a row after
    which another one would have suited better.
    """

    waiting: tuple[tuple[int, datetime], ...] = ()
    took: tuple[timedelta, ...] = ()
    asked: int | None = None
    rung: timedelta | None = None
    off: int = 0


def watched(watch: Watch, replicas: int, ready: int, now: datetime, *, delay: timedelta = DELAY) -> Watch:
    """The same after a look at the workload: a scale-up is over when as many pods are ready as it asked for.

    A scale-up that is taken back before it is over says nothing. One that is over at the first look took no time that
    can be measured.
    """
    waiting = tuple(one for one in watch.waiting if one[0] <= replicas)
    if watch.asked is not None and replicas > watch.asked:
        waiting = (*waiting, (replicas, now))
    done = [now - since for wanted, since in waiting if ready >= wanted]
    seen = watch._replace(waiting=tuple(one for one in waiting if ready < one[0]), asked=replicas)
    for took in done:
        seen = _settled(seen._replace(took=(*seen.took, took)[-KEPT:]), delay)
    return seen


def interrupted(watch: Watch) -> Watch:
    """The watch after a gap between two looks: what was waited for may have been over long ago."""
    return watch._replace(waiting=(), asked=None)


def _settled(watch: Watch, delay: timedelta) -> Watch:
    """The lead time in force after one more scale-up: it stays until it is clearly or repeatedly wrong."""
    if len(watch.took) < LEAST:
        return watch
    needed = slow(watch.took) + delay
    better = rung_of(needed)
    if watch.rung is None or watch.rung == better:
        return watch._replace(rung=better, off=0)
    if needed > FAR * watch.rung or watch.off + 1 >= PATIENCE:
        return watch._replace(rung=better, off=0)
    return watch._replace(off=watch.off + 1)

"""From asking for a pod until it serves: measured on the workload's own scale-ups, or configured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from forecaster.domain.amounts import duration_text
from forecaster.domain.decision import LeadTime
from forecaster.domain.policy import HorizontalPolicy

DEFAULT_LEAD_TIME = timedelta(minutes=3)
"""Default lead time where nothing was measured: two minutes of start-up, and a cycle."""
DELAY = timedelta(minutes=1)
"""Scrape, cycle and sync, with a cycle a minute."""
SHORT_PEAK = timedelta(minutes=10)
"""A peak of this length is held until it shows in measured demand. Replayed on four recorded series of a cluster with
pods that take an hour, 6.0 % of the demand was short in place of 7.0 %, for 8 % more pod-hours. A nearer window costs 3
% of the pod-hours with pods that take thirteen minutes, and saves nothing."""
SYNC = timedelta(seconds=15)
"""Sync period of the HPA controller."""
RANK = 0.9
MIN_SCALE_UPS = 5
"""Fewer scale-ups say nothing about a P90."""
MAX_SCALE_UPS = 50
MAX_LEAD_TIME = timedelta(minutes=15)
"""Upper bound of measured lead times.

A pod that starts for longer cannot be distinguished from one that waits for a node: a new node takes two to ten
minutes, an image of gigabytes a few. A policy may state a longer lead time.
"""
LEAD_TIME_BUCKETS = tuple(timedelta(minutes=m) for m in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15))
"""Measured lead times are rounded up to one of these, so that few different spans have to be forecast."""
FAR = 1.25
"""A bucket that is too short by more than this factor is left at once."""
PATIENCE = 5
"""Scale-ups in a row in favour of another bucket after which the present one is left."""
MAX_CACHED_TEXTS = 4096
"""Start-ups that are put into words once, as long as they stay the same."""
_LONGEST = duration_text(MAX_LEAD_TIME)


def lead_time(policy: HorizontalPolicy, start_ups: tuple[timedelta, ...] = (), *, delay: timedelta = DELAY) -> LeadTime:
    """Return the lead time of the policy, else P90 of the measured start-ups plus `delay` (scrape + cycle + sync)."""
    if policy.lead_time is not None:
        return LeadTime(policy.lead_time, "configured")
    needed = slow(start_ups)
    return assumed(start_ups) if needed is None else measured(bucket_of(needed + delay), start_ups)


class PeakWindow(NamedTuple):
    """Window of the peak: its beginning after now, and its length."""

    begin: timedelta
    length: timedelta


def peak_window(policy: HorizontalPolicy) -> PeakWindow:
    """Return the window of the peak: from the lead time (earlier where that is long) until lead time + window.

    Pods requested now serve from the lead time on. A recommendation holds for the stabilization window, so with a long
    lead time pods requested for a peak would be removed before it.
    """
    lead = lead_time(policy).value
    begin = min(lead, policy.scale_down_stabilization + SHORT_PEAK)
    return PeakWindow(begin, lead + policy.window - begin)


@lru_cache(maxsize=MAX_CACHED_TEXTS)
def assumed(start_ups: tuple[timedelta, ...]) -> LeadTime:
    """The lead time while too few scale-ups say something about it."""
    counted, waited = len(started(start_ups)), len(start_ups) - len(started(start_ups))
    beside = f"; {waited} more took over {_LONGEST}: pods that wait for a node" if waited else ""
    return LeadTime(DEFAULT_LEAD_TIME, f"assumed; {counted} of {MIN_SCALE_UPS} scale-ups seen{beside}")


@lru_cache(maxsize=MAX_CACHED_TEXTS)
def measured(bucket: timedelta, start_ups: tuple[timedelta, ...]) -> LeadTime:
    """A lead time that was measured on these scale-ups, and which of them do not count."""
    waited = len(start_ups) - len(started(start_ups))
    if 2 * waited > len(start_ups):
        return LeadTime(
            bucket,
            f"{waited} of {len(start_ups)} scale-ups took over {_LONGEST}, the most that is measured; state lead_time "
            "in the policy where pods start so slowly",
        )
    beside = f"; {waited} over {_LONGEST} not counted: pods that wait for a node" if waited else ""
    return LeadTime(bucket, f"P90 of {len(start_ups) - waited} scale-ups, with scrape, cycle and sync{beside}")


def measured_on_pods(bucket: timedelta, took: Sequence[timedelta], which: str = "") -> LeadTime:
    """Return a lead time measured on single pods; `which` names them in its text, e.g. ` with image web:2`."""
    origin = f"P90 of {len(took)} pods{which} from creation to ready, without waiting for a node; cycle and sync"
    return LeadTime(bucket, origin)


def started(start_ups: Sequence[timedelta]) -> list[timedelta]:
    """Select the start-ups that are short enough to exclude a wait for a node."""
    return [took for took in start_ups if took < MAX_LEAD_TIME]


def slow(start_ups: Sequence[timedelta]) -> timedelta | None:
    """P90 of the start-ups, None where too few say something.

    The lower one between two: the slowest of five may have been an accident. Those that may have waited for a node
    count only where most of them did: then the pods are that slow, or the nodes always are.
    """
    if len(start_ups) < MIN_SCALE_UPS:
        return None
    counted = started(start_ups)
    if 2 * len(counted) < len(start_ups):
        return MAX_LEAD_TIME
    return sorted(counted)[int(RANK * (len(counted) - 1))] if len(counted) >= MIN_SCALE_UPS else None


def bucket_of(duration: timedelta) -> timedelta:
    """The step of the ladder that holds this duration; the last one where none does."""
    return next((step for step in LEAD_TIME_BUCKETS if step >= duration), LEAD_TIME_BUCKETS[-1])


class ScaleUp(NamedTuple):
    """A scale-up that is being waited for."""

    replicas: int
    """Ready pods that the scale-up requested."""
    since: datetime
    ready: int
    """The most that were ready since."""
    rose: datetime | None = None
    """Instant when that number last rose; None while no pod is ready."""

    def counted(self, ready: int, now: datetime) -> ScaleUp:
        """Return this scale-up with `ready` pods counted at `now`."""
        return self._replace(ready=ready, rose=now) if ready > self.ready else self

    def took(self, now: datetime) -> timedelta | None:
        """Return the start-up time of its pods; None while the scale-up is not over.

        Pods not ready after the longest lead time may wait for a node. Then the ready pods count; if no pod is ready,
        the result is the elapsed time.
        """
        if self.ready >= self.replicas or now - self.since >= MAX_LEAD_TIME:
            return MAX_LEAD_TIME if self.rose is None else min(self.rose - self.since, MAX_LEAD_TIME)
        return None


class ScaleUpWatch(NamedTuple):
    """Scale-ups of one workload: those being waited for, and how long others took.

    `bucket` is the lead time in force, None while too few were seen; `off` counts the latest scale-ups in a row after
    which another one would have suited better.
    """

    waiting: tuple[ScaleUp, ...] = ()
    took: tuple[timedelta, ...] = ()
    replicas: int | None = None
    bucket: timedelta | None = None
    off: int = 0


def observed(
    watch: ScaleUpWatch, replicas: int, ready: int, now: datetime, *, delay: timedelta = DELAY
) -> ScaleUpWatch:
    """Return the watch after an observation at `now`: a scale-up is over when all pods that it requested are ready.

    A scale-up taken back before it is over counts for nothing. One that is over at the first observation has no
    measurable duration.
    """
    waiting = [scale_up.counted(ready, now) for scale_up in watch.waiting if scale_up.replicas <= replicas]
    if watch.replicas is not None and replicas > watch.replicas:
        at_once = now if ready >= replicas else None
        waiting.append(ScaleUp(replicas, now, ready, at_once))
    took = [scale_up.took(now) for scale_up in waiting]
    still = tuple(scale_up for scale_up, done in zip(waiting, took, strict=True) if done is None)
    watch = watch._replace(waiting=still, replicas=replicas)
    for done in took:
        if done is not None:
            watch = _settled(watch._replace(took=(*watch.took, done)[-MAX_SCALE_UPS:]), delay)
    return watch


def with_pods(watch: ScaleUpWatch, took: Sequence[timedelta], *, delay: timedelta) -> ScaleUpWatch:
    """Return the observation with pods that became ready; together they support another lead-time bucket."""
    watch = watch._replace(took=(*watch.took, *(min(duration, MAX_LEAD_TIME) for duration in took))[-MAX_SCALE_UPS:])
    return _settled(watch, delay)


def interrupted(watch: ScaleUpWatch) -> ScaleUpWatch:
    """Return the watch after a gap between two observations: its scale-up may have ended long ago."""
    return watch._replace(waiting=(), replicas=None)


def _settled(watch: ScaleUpWatch, delay: timedelta) -> ScaleUpWatch:
    """The lead time in force after one more scale-up: it stays until it is clearly or repeatedly wrong."""
    slowest = slow(watch.took)
    if slowest is None:
        return watch
    needed = slowest + delay
    better = bucket_of(needed)
    if watch.bucket is None or watch.bucket == better or needed > FAR * watch.bucket or watch.off + 1 >= PATIENCE:
        return watch._replace(bucket=better, off=0)
    return watch._replace(off=watch.off + 1)

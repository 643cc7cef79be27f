"""Censored demand: where the measurement is the served load, and demand is only known to be at least that.

Three signs: usage equals what the ready pods can carry; replicas stand at their maximum with every pod full; or a
series stays on its own ceiling. A fourth kind is an outage: load that is gone and comes back larger than it was.
Arrays are [workload, column], latest last; masks are True where demand is censored. Columns are of five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.workload import ContainerFacts, WorkloadId

Floats = NDArray[np.floating]
Mask = NDArray[np.bool_]

AT_CAPACITY = 0.005
"""Usage this close to the capacity of the ready pods is cut off by it. Demand that merely passes by is as close in one
minute of a hundred."""
BEYOND = 1.25
"""Growth of assumed demand per minute while it is cut off, until it can be measured again."""
FULL_SHARE = 0.95
PLATEAU, CEILING = 4, 2e-4
"""Columns within this share of the highest value of a series. Neither noise nor the top of a smooth day stays there."""
MOSTLY = 0.5
GONE, BACK = 0.1, 1.5
BRIEFLY = 2
"""Columns without load that are an outage; one may be a missed scrape."""
LONGEST_OUTAGE = 36
"""Three hours: load that stays away longer has moved."""
THUNDER = 6
"""Columns after an outage, half an hour, in which callers that come back count twice."""


def full(usage: Floats, pods: Floats, capacity: Floats) -> Mask:
    """Ready pods use nearly all of `capacity` [workload] each; NaN where the capacity of a pod is not known."""
    with np.errstate(invalid="ignore"):
        return np.asarray((pods > 0) & (usage >= FULL_SHARE * pods * capacity[:, None]))


def at_limit(usage: Floats, pods: Floats, limit: Floats) -> Mask:
    """All pods at their CPU limit, [workload]. Usage clearly above it is of a time when the limit was another."""
    with np.errstate(invalid="ignore"):
        return np.asarray(full(usage, pods, limit) & (usage <= pods * limit[:, None] / FULL_SHARE))


def at_maximum(usage: Floats, pods: Floats, most: Floats, capacity: Floats) -> Mask:
    """Whether replicas are at `most` [workload] and pods are full: no more pods could be requested."""
    with np.errstate(invalid="ignore"):
        return np.asarray((pods >= most[:, None]) & full(usage, pods, capacity))


def throttled(share: float, tolerated: float = 0.25) -> bool:
    """Whether the share of CPU periods in which a container was throttled is above what bursts explain."""
    return share > tolerated


def ceiling_of(values: Floats) -> Floats:
    """[workload] the highest value of each series; NaN where it is mostly there, for then it is constant."""
    high = np.fmax.reduce(values, axis=1, initial=0.0)
    with np.errstate(invalid="ignore"):
        share = np.count_nonzero(values >= high[:, None] * (1 - CEILING), axis=1) / max(1, values.shape[1])
    return np.where((high > 0) & (share < MOSTLY), high, np.nan)


def on_ceiling(values: Floats, ceiling: Floats) -> Mask:
    """Stretches on the `ceiling` [workload] that are too long for chance."""
    with np.errstate(invalid="ignore"):
        there = np.abs(values - ceiling[:, None]) <= CEILING * ceiling[:, None]
    return _runs(there, PLATEAU) if there.any() else there


def outages(values: Floats, least: Floats, usual: Floats) -> Mask:
    """Columns without load, beside the `least` of other days, and the return above the `usual` one.

    Missing samples are no load that is gone, but callers that come back after them count twice as well. Load that stays
    away for longer than a few hours has moved and is no outage.
    """
    with np.errstate(invalid="ignore"):
        gone = (values < GONE * least) & (least > 0)
        loud = values > BACK * usual
    away = gone | np.isnan(values)
    briefly = _runs(away, BRIEFLY) & ~_runs(away, LONGEST_OUTAGE + 1)
    after = np.zeros_like(briefly)
    for late in range(1, THUNDER + 1):
        after[:, late:] |= briefly[:, :-late]
    return np.asarray((gone & briefly) | (after & loud))


def may_hold_outages(values: Floats, level: Floats) -> Mask:
    """[workload] whether it is worth a look: load far below its own `level` [workload], or high after a silence."""
    away = np.isnan(values)
    after = np.zeros_like(away)
    for late in range(1, THUNDER + 1):
        after[:, late:] |= away[:, :-late]
    with np.errstate(invalid="ignore"):
        low, high = values < GONE * level[:, None], values > level[:, None]
    return np.asarray(low.any(axis=1) | (after & high).any(axis=1))


def _runs(true: Mask, least: int) -> Mask:
    """Return where a mask is true for at least `least` columns in a row."""
    columns = np.arange(true.shape[1], dtype=np.int32)
    before = np.maximum.accumulate(np.where(true, np.int32(-1), columns), axis=1)
    after = np.minimum.accumulate(np.where(true, np.int32(true.shape[1]), columns)[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(true & (after - before > least))


CENSORED_SPAN = timedelta(hours=1)
"""Span covered by one reading."""
THROTTLED_FOR = timedelta(days=14)


class ThrottledTime(NamedTuple):
    """Time in which a workload was throttled: after `begin`, up to `end`."""

    begin: datetime
    end: datetime


def _over(hours: list[ThrottledTime], at: datetime) -> list[ThrottledTime]:
    recent = [hour for hour in hours if hour.begin < at < hour.end + THROTTLED_FOR]
    return [ThrottledTime(hour.begin, min(hour.end, at)) for hour in recent]


@dataclass(slots=True)
class Throttling:
    """The throttled hours of the workloads that had any, in their order; forgotten at a restart."""

    hours: dict[WorkloadId, list[ThrottledTime]] = field(default_factory=dict)
    read_at: datetime | None = None

    def follow(self, facts: ContainerFacts, at: datetime | None) -> None:
        """Take in the facts about the hour before `at`, once; None when nothing was read.

        Where the clock was set back, hours that are still to come are forgotten.
        """
        if at is None or at == self.read_at:
            return
        self.read_at = at
        past = {id_: _over(hours, at) for id_, hours in self.hours.items()}
        self.hours = {id_: hours for id_, hours in past.items() if hours}
        for workload in {id_.workload for id_, share in facts.held_back.items() if throttled(share)}:
            before = self.hours.setdefault(workload, [])
            if before and before[-1].end >= at - CENSORED_SPAN:
                before[-1] = ThrottledTime(before[-1].begin, at)
            else:
                before.append(ThrottledTime(at - CENSORED_SPAN, at))

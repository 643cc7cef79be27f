"""How long pods take until they serve: measured on pods that are watched, else on the scale-ups of each workload."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from forecaster.domain.workload import WorkloadId
from forecaster.horizontal.lead_time import (
    LONGEST,
    SYNC,
    ScaleUpWatch,
    interrupted,
    lead_time,
    measured,
    measured_on_pods,
    watched,
    with_pods,
)

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.cycle.targets import Targets
    from forecaster.domain.decision import LeadTime
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload

UNWATCHED = ScaleUpWatch()
SECOND = timedelta(seconds=1)
LONGEST_BLINK = 3
"""Intervals between two looks up to which what happened in between is still timed."""


class PersistedStartUps(msgspec.Struct, frozen=True):
    """What outlives the process of one watch; durations in seconds. What is waited for does not."""

    id: tuple[str, str, str]
    took: tuple[float, ...]
    rung: float | None
    off: int


class WrittenWatch(NamedTuple):
    """A watch as it was persisted: it stands until another scale-up is over."""

    took: tuple[timedelta, ...]
    off: int
    text: msgspec.Raw

    @classmethod
    def of(cls, id_: WorkloadId, watch: ScaleUpWatch) -> WrittenWatch:
        """What is persisted of a watch."""
        took = tuple(one / SECOND for one in watch.took)
        told = PersistedStartUps(id_, took, None if watch.rung is None else watch.rung / SECOND, watch.off)
        return cls(watch.took, watch.off, msgspec.Raw(msgspec.json.encode(told)))


@dataclass(slots=True)
class LeadTimes:
    """What was watched of every workload, and the one place that says which lead time is in force."""

    interval: timedelta = timedelta(minutes=1)
    """From one look to the next: it is part of what a scale-up takes."""
    watches: dict[WorkloadId, ScaleUpWatch] = field(default_factory=dict)
    pods: dict[WorkloadId, ScaleUpWatch] = field(default_factory=dict)
    """What was measured on single pods, where the API server tells them; it counts before what counts show."""
    looked: datetime | None = None
    seen: dict[WorkloadId, tuple[int, int]] = field(default_factory=dict)
    written: dict[WorkloadId, WrittenWatch] = field(default_factory=dict)
    """As it was persisted last."""

    def look(self, targets: Targets, now: datetime) -> None:
        """Look at the workloads whose count or readiness moved; a source that is down shows nothing."""
        if targets.down:
            return
        if self.looked is None or now - self.looked > LONGEST_BLINK * self.interval:
            self.watches = {id_: interrupted(watch) for id_, watch in self.watches.items()}
            self.seen = {}
        self.looked = now
        for id_, took in targets.inventory.started.items():
            self.pods[id_] = with_pods(self.pods.get(id_, UNWATCHED), took, delay=self.interval + SYNC)
        for workload in targets.inventory.workloads:
            pods = (workload.replicas, workload.ready_replicas)
            if self.seen.get(workload.id) != pods:
                self.seen[workload.id] = pods
                self.watches[workload.id] = self._watched(workload, now)

    def of(self, id_: WorkloadId, policy: HorizontalPolicy) -> LeadTime:
        """The lead time in force and where it comes from; `policy` as its owner states it."""
        watch, pods = self.watches.get(id_, UNWATCHED), self.pods.get(id_, UNWATCHED)
        if policy.lead_time is None and pods.rung is not None:
            return measured_on_pods(pods.rung, pods.took)
        if watch.rung is None or policy.lead_time is not None:
            return lead_time(policy, watch.took)
        return measured(watch.rung, watch.took)

    def identities(self, ids: Sequence[WorkloadId]) -> NDArray[np.int64]:
        """[row] a number that stays while the scale-ups and pods of a workload that were timed stay."""
        took = ((self.watches.get(id_, UNWATCHED).took, self.pods.get(id_, UNWATCHED).took) for id_ in ids)
        return np.fromiter((id(ups) ^ (id(pods) << 1) for ups, pods in took), np.int64, len(ids))

    def rungs(self) -> dict[WorkloadId, timedelta]:
        """The lead times that were measured."""
        each = (*self.watches.items(), *self.pods.items())
        return {id_: watch.rung for id_, watch in each if watch.rung is not None}

    def persisted_pods(self) -> tuple[msgspec.Raw, ...]:
        """The same of what was measured on pods."""
        return tuple(WrittenWatch.of(id_, pods).text for id_, pods in self.pods.items())

    def persisted(self) -> tuple[msgspec.Raw, ...]:
        """What was measured, as `PersistedStartUps`, without the workloads of which nothing was.

        What has not changed since it was asked for last is not written anew.
        """
        written = self.written
        self.written = {
            id_: before
            if (before := written.get(id_)) and before.took is watch.took and before.off == watch.off
            else WrittenWatch.of(id_, watch)
            for id_, watch in self.watches.items()
            if watch.took
        }
        return tuple(one.text for one in self.written.values())

    def restore(self, kept: tuple[PersistedStartUps, ...], pods: tuple[PersistedStartUps, ...] = ()) -> None:
        """Take over what an earlier process has measured."""
        self.watches, self.pods = _restored(kept), _restored(pods)

    def _watched(self, workload: Workload, now: datetime) -> ScaleUpWatch:
        before = self.watches.get(workload.id, UNWATCHED)
        return watched(before, workload.replicas, workload.ready_replicas, now, delay=self.interval)

    def forget_others(self, known: Container[WorkloadId]) -> None:
        """Keep these workloads only."""
        self.watches = {id_: watch for id_, watch in self.watches.items() if id_ in known}
        self.pods = {id_: watch for id_, watch in self.pods.items() if id_ in known}
        self.seen = {id_: pods for id_, pods in self.seen.items() if id_ in known}


def _restored(kept: tuple[PersistedStartUps, ...]) -> dict[WorkloadId, ScaleUpWatch]:
    return {
        WorkloadId(*one.id): ScaleUpWatch(
            took=tuple(seconds * SECOND for seconds in one.took),
            rung=None if one.rung is None else min(one.rung * SECOND, LONGEST),
            off=one.off,
        )
        for one in kept
    }

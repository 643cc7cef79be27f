"""How long pods take until they serve: measured on pods that are watched, else on the scale-ups of each workload."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
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
    measured_on_image,
    measured_on_pods,
    watched,
    with_pods,
)

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.cycle.targets import Targets
    from forecaster.domain.decision import LeadTime
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload

UNWATCHED = ScaleUpWatch()
NO_WORKLOAD = WorkloadId("", "", "")
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
    images: dict[str, ScaleUpWatch] = field(default_factory=dict)
    """The same of the pods of all workloads with an image: for workloads of which too little was seen."""
    image_of: Mapping[WorkloadId, str] = field(default_factory=dict)
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
            if image := targets.inventory.images.get(id_):
                before = self.images.get(image, UNWATCHED)
                self.images[image] = with_pods(before, took, delay=self.interval + SYNC)
        self.image_of = targets.inventory.images or self.image_of
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
            image = self._of_image(id_)
            if policy.lead_time is None and image.rung is not None:
                return measured_on_image(image.rung, image.took, self.image_of[id_])
            return lead_time(policy, watch.took)
        return measured(watch.rung, watch.took)

    def identities(self, ids: Sequence[WorkloadId]) -> NDArray[np.int64]:
        """[row] a number that stays while the scale-ups and pods of a workload that were timed stay."""
        every = ((self.watches.get(id_, UNWATCHED), self.pods.get(id_, UNWATCHED), self._of_image(id_)) for id_ in ids)
        timed = (id(ups.took) ^ (id(pods.took) << 1) ^ (id(image.took) << 2) for ups, pods, image in every)
        return np.fromiter(timed, np.int64, len(ids))

    def rungs(self) -> dict[WorkloadId, timedelta]:
        """The lead times that were measured; of a workload of which too little was seen, that of its image."""
        of_images = ((id_, self.images.get(image, UNWATCHED)) for id_, image in self.image_of.items())
        each = (*of_images, *self.watches.items(), *self.pods.items())
        return {id_: watch.rung for id_, watch in each if watch.rung is not None}

    def persisted_pods(self) -> tuple[msgspec.Raw, ...]:
        """The same of what was measured on pods."""
        return tuple(WrittenWatch.of(id_, pods).text for id_, pods in self.pods.items())

    def persisted_images(self) -> dict[str, msgspec.Raw]:
        """The same of images."""
        return {image: WrittenWatch.of(NO_WORKLOAD, pods).text for image, pods in self.images.items()}

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

    def restore(
        self,
        kept: tuple[PersistedStartUps, ...],
        pods: tuple[PersistedStartUps, ...] = (),
        images: Mapping[str, PersistedStartUps] = MappingProxyType({}),
    ) -> None:
        """Take over what an earlier process has measured."""
        self.watches, self.pods = _restored(kept), _restored(pods)
        self.images = {image: _watch(one) for image, one in images.items()}

    def _of_image(self, id_: WorkloadId) -> ScaleUpWatch:
        return self.images.get(self.image_of.get(id_, ""), UNWATCHED)

    def _watched(self, workload: Workload, now: datetime) -> ScaleUpWatch:
        before = self.watches.get(workload.id, UNWATCHED)
        return watched(before, workload.replicas, workload.ready_replicas, now, delay=self.interval)

    def forget_others(self, known: Container[WorkloadId]) -> None:
        """Keep these workloads only."""
        self.watches = {id_: watch for id_, watch in self.watches.items() if id_ in known}
        self.pods = {id_: watch for id_, watch in self.pods.items() if id_ in known}
        self.seen = {id_: pods for id_, pods in self.seen.items() if id_ in known}
        used = {image for id_, image in self.image_of.items() if id_ in known}
        self.images = {image: watch for image, watch in self.images.items() if image in used}


def _restored(kept: tuple[PersistedStartUps, ...]) -> dict[WorkloadId, ScaleUpWatch]:
    return {WorkloadId(*one.id): _watch(one) for one in kept}


def _watch(one: PersistedStartUps) -> ScaleUpWatch:
    return ScaleUpWatch(
        took=tuple(seconds * SECOND for seconds in one.took),
        rung=None if one.rung is None else min(one.rung * SECOND, LONGEST),
        off=one.off,
    )

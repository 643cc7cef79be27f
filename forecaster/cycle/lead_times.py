"""Time until new pods serve: measured on observed pods, else on the scale-ups of each workload."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from forecaster.cycle.targets import Targets
from forecaster.demand.latest import SPARE_ROWS
from forecaster.domain.decision import LeadTime
from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.window import SECOND, StartedPod
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.horizontal.lead_time import (
    MAX_LEAD_TIME,
    MAX_SCALE_UPS,
    SYNC,
    ScaleUpWatch,
    interrupted,
    lead_time,
    measured,
    measured_on_pods,
    observed,
    with_pods,
)

UNWATCHED = ScaleUpWatch()
NO_WORKLOAD = WorkloadId("", "", "")
LONGEST_BLINK = 3
"""Longest gap between two observations, in intervals, across which a scale-up is still timed."""


class PersistedStartUps(msgspec.Struct, frozen=True):
    """The persisted part of one scale-up watch; durations in seconds. Pods that are still starting are left out."""

    id: tuple[str, str, str]
    took: tuple[float, ...]
    bucket: float | None = msgspec.field(name="rung")
    off: int

    @classmethod
    def of(cls, id_: WorkloadId, watch: ScaleUpWatch) -> PersistedStartUps:
        """Return the persisted part of a watch."""
        took = tuple([duration / SECOND for duration in watch.took])
        return cls(id_, took, None if watch.bucket is None else watch.bucket / SECOND, watch.off)


class PoolStartUps(NamedTuple):
    """Pods of one workload by the node pool that they are on."""

    landed: tuple[str, ...] = ()
    """The pools of the latest pods."""
    by_pool: Mapping[str, ScaleUpWatch] = MappingProxyType({})

    def after(self, pods: Sequence[StartedPod], delay: timedelta) -> PoolStartUps:
        """Return start-ups with pods that became ready; pools on which no pod landed lately are left out."""
        landed = (*self.landed, *(pod.pool for pod in pods if pod.pool))[-MAX_SCALE_UPS:]
        by_pool = {}
        for pool in dict.fromkeys(landed):
            new = [pod.took for pod in pods if pod.pool == pool]
            before = self.by_pool.get(pool, UNWATCHED)
            by_pool[pool] = with_pods(before, new, delay=delay) if new else before
        return PoolStartUps(landed, by_pool)

    def slowest(self) -> str:
        """The pool on which pods take longest; empty where there are not several, or too little is known of them."""
        if len(self.by_pool) <= 1:
            return ""
        known = {pool: watch.bucket for pool, watch in self.by_pool.items() if watch.bucket is not None}
        return max(known, key=lambda pool: (known[pool], pool), default="")


UNPOOLED = PoolStartUps()


def _image_key(id_: WorkloadId, image: str) -> str:
    return f"{id_.namespace} {image}"


@dataclass(slots=True)
class LeadTimes:
    """Start-up times of every workload, and the one rule for the lead time in force."""

    interval: timedelta = timedelta(minutes=1)
    """Time between two observations of the pods: it is part of the duration of a scale-up."""
    watches: dict[WorkloadId, ScaleUpWatch] = field(default_factory=dict)
    pods: dict[WorkloadId, ScaleUpWatch] = field(default_factory=dict)
    """Start-up times of single pods, where the API server reports them; they take precedence over scale-ups."""
    images: dict[str, ScaleUpWatch] = field(default_factory=dict)
    """Start-up times by namespace and image, for workloads of which too few pods were seen.

    Not by image alone: slow pods of one tenant would set the lead time of all that run a public image.
    """
    image_of: Mapping[WorkloadId, str] = field(default_factory=dict)
    pools: dict[WorkloadId, PoolStartUps] = field(default_factory=dict)
    """Start-up times of each workload by node pool: the slowest pool counts."""
    observed_at: datetime | None = None
    counts: dict[WorkloadId, tuple[int, int]] = field(default_factory=dict)

    def observe(self, targets: Targets, now: datetime) -> None:
        """Observe the workloads with a changed count or readiness; a source that is down shows nothing."""
        if targets.down:
            return
        if self.observed_at is None or not timedelta() <= now - self.observed_at <= LONGEST_BLINK * self.interval:
            self.watches = {id_: interrupted(watch) for id_, watch in self.watches.items()}
            self.counts = {}
        self.observed_at = now
        for id_, pods in targets.inventory.started.items():
            took = [pod.took for pod in pods]
            self.pods[id_] = with_pods(self.pods.get(id_, UNWATCHED), took, delay=self.interval + SYNC)
            if any(pod.pool for pod in pods):
                self.pools[id_] = self.pools.get(id_, UNPOOLED).after(pods, self.interval + SYNC)
            if image := targets.inventory.images.get(id_):
                key = _image_key(id_, image)
                before = self.images.get(key, UNWATCHED)
                self.images[key] = with_pods(before, took, delay=self.interval + SYNC)
        self.image_of = targets.inventory.images or self.image_of
        if len(self.images) > 2 * len(self.image_of) + SPARE_ROWS:  # an owner may name others all the time
            self._forget_images(self.image_of)
        for workload in targets.inventory.workloads:
            counts = (workload.replicas, workload.ready_replicas)
            if self.counts.get(workload.id) != counts:
                self.counts[workload.id] = counts
                self.watches[workload.id] = self._observed(workload, now)

    def of(self, id_: WorkloadId, policy: HorizontalPolicy) -> LeadTime:
        """The lead time in force and where it comes from; `policy` as its owner states it."""
        if policy.lead_time is not None:
            return lead_time(policy)
        if slower := self._slower_pool(id_):
            by_pool = self.pools[id_].by_pool
            which = f" on node pool {slower}, the slowest of {len(by_pool)},"
            return measured_on_pods(by_pool[slower].bucket or MAX_LEAD_TIME, by_pool[slower].took, which)
        watch, pods = self.watches.get(id_, UNWATCHED), self.pods.get(id_, UNWATCHED)
        if pods.bucket is not None:
            return measured_on_pods(pods.bucket, pods.took)
        if watch.bucket is not None:
            return measured(watch.bucket, watch.took)
        image = self._of_image(id_)
        if image.bucket is not None:
            return measured_on_pods(image.bucket, image.took, f" with image {self.image_of[id_]}")
        return lead_time(policy, watch.took)

    def buckets(self) -> dict[WorkloadId, timedelta]:
        """The lead times that were measured; of a workload of which too little was seen, that of its image."""
        of_images = ((id_, self._of_image(id_)) for id_ in self.image_of)
        slower = ((id_, self.pools[id_].by_pool[pool]) for id_ in self.pools if (pool := self._slower_pool(id_)))
        each = (*of_images, *self.watches.items(), *self.pods.items(), *slower)
        return {id_: watch.bucket for id_, watch in each if watch.bucket is not None}

    def persisted(self) -> dict[str, Any]:
        """Return the measured start-up times by the parameters of `restore`; workloads without any are left out."""
        pools: dict[str, list[PersistedStartUps]] = defaultdict(list)
        for id_, start_ups in self.pools.items():
            for pool, watch in start_ups.by_pool.items():
                pools[pool].append(PersistedStartUps.of(id_, watch))
        return {
            "lead_times": tuple(PersistedStartUps.of(id_, watch) for id_, watch in self.watches.items() if watch.took),
            "pods": tuple(PersistedStartUps.of(id_, pods) for id_, pods in self.pods.items()),
            "images": {image: PersistedStartUps.of(NO_WORKLOAD, pods) for image, pods in self.images.items()},
            "pools": pools,
        }

    def restore(
        self,
        lead_times: tuple[PersistedStartUps, ...],
        pods: tuple[PersistedStartUps, ...] = (),
        images: Mapping[str, PersistedStartUps] = MappingProxyType({}),
        pools: Mapping[str, tuple[PersistedStartUps, ...]] = MappingProxyType({}),
    ) -> None:
        """Restore the start-up times measured by an earlier process."""
        self.watches, self.pods = _restored(lead_times), _restored(pods)
        self.images = {image: _watch(watch) for image, watch in images.items()}
        self.pools = _restored_pools(pools)

    def _slower_pool(self, id_: WorkloadId) -> str:
        """Return the node pool on which pods start slower than the workload's pods as a whole; empty without one."""
        pools, pods = self.pools.get(id_), self.pods.get(id_, UNWATCHED)
        pool = pools.slowest() if pools else ""
        if not pools or not pool or pods.bucket is None:
            return ""
        return pool if (pools.by_pool[pool].bucket or pods.bucket) > pods.bucket else ""

    def _of_image(self, id_: WorkloadId) -> ScaleUpWatch:
        image = self.image_of.get(id_)
        return self.images.get(_image_key(id_, image), UNWATCHED) if image else UNWATCHED

    def _observed(self, workload: Workload, now: datetime) -> ScaleUpWatch:
        before = self.watches.get(workload.id, UNWATCHED)
        return observed(before, workload.replicas, workload.ready_replicas, now, delay=self.interval)

    def forget_others(self, known: Container[WorkloadId]) -> None:
        """Keep these workloads only."""
        self.watches = {id_: watch for id_, watch in self.watches.items() if id_ in known}
        self.pods = {id_: watch for id_, watch in self.pods.items() if id_ in known}
        self.pools = {id_: pools for id_, pools in self.pools.items() if id_ in known}
        self.counts = {id_: pods for id_, pods in self.counts.items() if id_ in known}
        self._forget_images(known)

    def _forget_images(self, known: Container[WorkloadId]) -> None:
        """Keep the images that these workloads have now."""
        used = {_image_key(id_, image) for id_, image in self.image_of.items() if id_ in known}
        self.images = {image: watch for image, watch in self.images.items() if image in used}


def _restored(persisted: tuple[PersistedStartUps, ...]) -> dict[WorkloadId, ScaleUpWatch]:
    return {WorkloadId(*watch.id): _watch(watch) for watch in persisted}


def _restored_pools(persisted: Mapping[str, tuple[PersistedStartUps, ...]]) -> dict[WorkloadId, PoolStartUps]:
    """Restore start-ups by pool; as many pods count as latest as were timed."""
    pools: dict[WorkloadId, PoolStartUps] = {}
    for pool, each in persisted.items():
        for watch in each:
            before = pools.get(WorkloadId(*watch.id), UNPOOLED)
            landed = (*before.landed, *[pool] * len(watch.took))[-MAX_SCALE_UPS:]
            pools[WorkloadId(*watch.id)] = PoolStartUps(landed, {**before.by_pool, pool: _watch(watch)})
    return pools


def _watch(persisted: PersistedStartUps) -> ScaleUpWatch:
    return ScaleUpWatch(
        took=tuple(seconds * SECOND for seconds in persisted.took),
        bucket=None if persisted.bucket is None else min(persisted.bucket * SECOND, MAX_LEAD_TIME),
        off=persisted.off,
    )

"""Whether to evict a pod from a node that cannot grant its size, so that its successor starts with it. Pure.

Off by default (`vertical.evict`), late, one pod of a workload after the other, never its only ready one. Whether its
PodDisruptionBudgets let it go is for the API server to say, which asks none about a restart in place.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forecaster.actuators.marks import LONG_AGO
from forecaster.actuators.resize.sized_pod import ResizablePod, ResizeWrite
from forecaster.actuators.settings import ResizeSettings
from forecaster.actuators.writes import Change, RefusalReason, WriteRefusal
from forecaster.domain.amounts import duration_text
from forecaster.domain.workload import WorkloadId
from forecaster.vertical.cluster_rules.resize import ResizeStatus

STUCK = frozenset({ResizeStatus.DEFERRED, ResizeStatus.INFEASIBLE})
EVICTION_INTERVAL = timedelta(minutes=10)
"""Time between two attempts to evict a pod that a PodDisruptionBudget kept."""
MAX_EVICTIONS = 5
"""Pods that one cycle evicts."""


@dataclass(frozen=True, slots=True)
class EvictionTerms:
    """Conditions of an eviction beside the pod itself."""

    allowed: Callable[[WorkloadId], bool] = lambda _: False
    """Whether the policy of a workload allows evictions."""
    ready: Mapping[WorkloadId, int] = field(default_factory=dict)
    """Ready pods of a workload."""
    tried: Mapping[tuple[str, ...], datetime] = field(default_factory=dict)
    """Instant of the last attempt to evict each pod."""
    sized: Container[WorkloadId] = frozenset()
    """Workloads whose requests a VPA may write: it would size the successor of an evicted pod."""

    def concern(self, pod: ResizablePod) -> bool:
        """Whether this pod may have to go."""
        return pod.status in STUCK and self.allowed(pod.workload) and pod.workload not in self.sized


def is_moving(pod: ResizablePod) -> bool:
    """Whether a pod goes, or does not serve yet."""
    return pod.deleted or not pod.ready


def waits(
    pod: ResizablePod, moving: Mapping[WorkloadId, int], now: datetime, after: timedelta, terms: EvictionTerms
) -> str:
    """Say why a pod that cannot get its size is not evicted yet; empty where it may be.

    `moving` counts the pods of each workload that are leaving or do not serve yet, this one among them.
    """
    if pod.resized is None or pod.resized.age(now) < after:
        return f"evicted {duration_text(after)} after its size was changed"
    if moving.get(pod.workload, 0) > is_moving(pod):
        return "another pod of its workload is on its way"
    if terms.ready.get(pod.workload, 0) <= 1:
        return "it is the only ready pod of its workload, so it is not evicted"
    tried = terms.tried.get(pod.key)
    if tried is not None and abs(now - tried) < EVICTION_INTERVAL:
        return f"not evicted, tried again at {tried + EVICTION_INTERVAL:%H:%M} UTC"
    return ""


def no_restart(pod: ResizablePod, rules: ResizeSettings) -> str:
    """Say why no container of a pod is restarted for its size now; empty where one may be."""
    if not rules.restarts:
        return "resize.restarts allows that"
    if pod.unready is None:
        return "it waits, whether the pods of its workload are ready is not known"
    return f"it waits until all pods of its workload are ready, {pod.unready} not yet" if pod.unready else ""


def with_bounded_evictions(
    writes: Iterable[ResizeWrite], tried: Mapping[tuple[str, ...], datetime]
) -> tuple[list[ResizeWrite], list[WriteRefusal]]:
    """Return the writes with at most one eviction per workload, `MAX_EVICTIONS` in all; the others wait for a cycle."""
    chosen: list[ResizeWrite] = []
    waiting: list[WriteRefusal] = []
    gone: set[WorkloadId] = set()
    for write in sorted(writes, key=lambda write: tried.get(write.subject.key, LONG_AGO)):
        if write.change is not Change.EVICT:
            chosen.append(write)
        elif write.subject.workload in gone or len(gone) == MAX_EVICTIONS:
            why = f"{write.subject} waits with its eviction for the next cycle"
            waiting.append(WriteRefusal(write.subject, RefusalReason.RATE_LIMIT, why))
        else:
            gone.add(write.subject.workload)
            chosen.append(write)
    return chosen, waiting

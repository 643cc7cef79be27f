"""Whether to evict a pod from a node that cannot grant its size, so that its successor starts with it. Pure.

Off by default (`vertical.evict`), late, one pod of a workload after the other, never its only ready one. Whether its
PodDisruptionBudgets let it go is for the API server to say, which asks none about a restart in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.actuators.marks import LONG_AGO
from forecaster.actuators.writes import Change, RefusalReason, WriteRefusal
from forecaster.domain.amounts import duration_text
from forecaster.vertical.cluster_rules.resize import ResizeStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from forecaster.actuators.resize.sized_pod import ResizablePod, ResizeWrite
    from forecaster.actuators.settings import ResizeSettings
    from forecaster.domain.workload import WorkloadId

STUCK = frozenset({ResizeStatus.DEFERRED, ResizeStatus.INFEASIBLE})
AGAIN = timedelta(minutes=10)
"""Time between two attempts to evict a pod that a PodDisruptionBudget kept."""
MOST = 5
"""Pods that one cycle evicts."""


@dataclass(frozen=True, slots=True)
class EvictionTerms:
    """What an eviction depends on beside the pod."""

    allowed: Callable[[WorkloadId], bool] = lambda _: False
    """Whether the policy of a workload allows evictions."""
    ready: Mapping[WorkloadId, int] = field(default_factory=dict)
    """Ready pods of a workload."""
    tried: Mapping[tuple[str, ...], datetime] = field(default_factory=dict)
    """Instant of the last attempt to evict each pod."""
    sized: Container[WorkloadId] = frozenset()
    """Workloads whose requests a VPA may write: it would size the successor of an evicted pod."""

    def concern(self, one: ResizablePod) -> bool:
        """Whether this pod may have to go."""
        return one.status in STUCK and self.allowed(one.workload) and one.workload not in self.sized


def is_moving(one: ResizablePod) -> bool:
    """Whether a pod goes, or does not serve yet."""
    return one.deleted or not one.ready


def waits(
    one: ResizablePod,
    moving: Mapping[WorkloadId, int],
    now: datetime,
    after: timedelta,
    terms: EvictionTerms,
) -> str:
    """Why a pod that does not get its size is not evicted yet; empty where it is.

    `moving` counts the pods of each workload that go or do not serve yet, this one among them.
    """
    if one.resized is None or one.resized.age(now) < after:
        return f"evicted {duration_text(after)} after its size was changed"
    if moving.get(one.workload, 0) > is_moving(one):
        return "another pod of its workload is on its way"
    if terms.ready.get(one.workload, 0) <= 1:
        return "it is the only ready pod of its workload, so it is not evicted"
    tried = terms.tried.get(one.key)
    if tried is not None and abs(now - tried) < AGAIN:
        return f"not evicted, tried again at {tried + AGAIN:%H:%M} UTC"
    return ""


def no_restart(one: ResizablePod, rules: ResizeSettings) -> str:
    """Why no container of a pod is restarted for its size now; empty where one may be."""
    if not rules.restarts:
        return "resize.restarts allows that"
    if one.unready is None:
        return "it waits, whether the pods of its workload are ready is not known"
    return f"it waits until all pods of its workload are ready, {one.unready} not yet" if one.unready else ""


def one_each(
    writes: Iterable[ResizeWrite], tried: Mapping[tuple[str, ...], datetime]
) -> tuple[list[ResizeWrite], list[WriteRefusal]]:
    """The writes with one eviction of a workload, and `MOST` in all, tried longest ago; the others wait for a cycle."""
    kept: list[ResizeWrite] = []
    waiting: list[WriteRefusal] = []
    gone: set[WorkloadId] = set()
    for write in sorted(writes, key=lambda each: tried.get(each.subject.key, LONG_AGO)):
        if write.change is not Change.EVICT:
            kept.append(write)
        elif write.subject.workload in gone or len(gone) == MOST:
            why = f"{write.subject} waits with its eviction for the next cycle"
            waiting.append(WriteRefusal(write.subject, RefusalReason.RATE_LIMIT, why))
        else:
            gone.add(write.subject.workload)
            kept.append(write)
    return kept, waiting

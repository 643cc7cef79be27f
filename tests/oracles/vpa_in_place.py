"""Pods that the VPA's updater may disrupt, and its decision about a pod in a loop (spec/vertical.md §1.15)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from forecaster.vertical.cluster_rules.resize import ResizeStatus, resize_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.vertical.cluster_rules.resize import PodCondition

DEFERRED_FOR = timedelta(minutes=5)
IN_PROGRESS_FOR = timedelta(hours=1)
IN_PLACE = "InPlace"
IN_PLACE_OR_RECREATE = "InPlaceOrRecreate"


@dataclass(frozen=True, slots=True)
class ReplicaGroup:
    """Pods of one controller in one loop of the updater.

    `tolerance` is how many may be missing; `disrupted` those evicted or being resized in this loop.
    """

    configured: int
    running: int
    tolerance: int
    disrupted: int = 0
    below_minimum: bool = False
    """Fewer live pods than must be there: resizes in place may be allowed, evictions are not."""

    @property
    def disruptable(self) -> bool:
        """Whether one more pod may be disrupted; a first one always, where all run and none may be missing."""
        enough = self.running - self.disrupted > self.configured - self.tolerance
        return enough or (self.configured == self.running and self.tolerance == 0 and self.disrupted == 0)

    def disrupt(self) -> ReplicaGroup:
        """One pod less."""
        return replace(self, disrupted=self.disrupted + 1)


def replica_group(
    *,
    configured: int,
    live: int,
    running: int,
    tolerance: float,
    min_replicas: int,
    boosting: bool = False,
    skip_minimum: bool = False,
) -> ReplicaGroup | None:
    """The pods of a controller; None where fewer live than have to, so that none may be touched.

    `skip_minimum`: the updater resizes in place and may ignore disruption budgets.
    """
    below = live < min_replicas
    if below and not boosting and not skip_minimum:
        return None
    return ReplicaGroup(configured, running, int(float(configured) * tolerance), below_minimum=below and not boosting)


def can_evict(group: ReplicaGroup | None, *, pending: bool) -> bool:
    """Whether a pod may be evicted; one that does not run yet always may."""
    return group is not None and (pending or (group.disruptable and not group.below_minimum))


class InPlaceDecision(StrEnum):
    """Decision about a pod in this loop."""

    APPROVED = "Approved"
    DEFERRED = "Deferred"
    EVICT = "Evict"
    INFEASIBLE = "Infeasible"
    INFEASIBLE_CACHED = "InfeasibleCached"


@dataclass(frozen=True, slots=True)
class InPlaceSituation:
    """Facts that a decision about one pod depends on. `group` is None where the updater leaves the controller alone."""

    mode: str
    group: ReplicaGroup | None
    conditions: Sequence[PodCondition] = ()
    since_last_attempt: timedelta = timedelta(0)
    pending: bool = False
    has_recommendation: bool = True
    known_infeasible: bool = False
    """An attempt with no lower target than today's was refused by the node."""
    skip_budget: bool = False
    restarts: bool = False
    """A container has to restart for its resize."""


def decide_resize(pod: InPlaceSituation) -> InPlaceDecision:
    """Approve, wait, evict, or give up until the recommendation becomes lower."""
    if pod.mode not in {IN_PLACE, IN_PLACE_OR_RECREATE}:
        return InPlaceDecision.EVICT
    if pod.group is None or pod.pending or not pod.has_recommendation:
        return InPlaceDecision.DEFERRED
    if pod.mode == IN_PLACE and pod.known_infeasible:
        return InPlaceDecision.INFEASIBLE_CACHED
    status = resize_status(pod.conditions)
    if status is not ResizeStatus.NONE:
        return _under_way(pod.mode, status, pod.group, pod.since_last_attempt)
    allowed = (pod.skip_budget and not pod.restarts) or pod.group.disruptable
    return InPlaceDecision.APPROVED if allowed else InPlaceDecision.DEFERRED


def _under_way(mode: str, status: ResizeStatus, group: ReplicaGroup, since: timedelta) -> InPlaceDecision:
    """Decide during a resize: a resize that failed or takes too long ends in an eviction, unless in place only."""
    if mode == IN_PLACE:
        return InPlaceDecision.INFEASIBLE if status is ResizeStatus.INFEASIBLE else InPlaceDecision.DEFERRED
    patience = {ResizeStatus.DEFERRED: DEFERRED_FOR, ResizeStatus.IN_PROGRESS: IN_PROGRESS_FOR}.get(status)
    failed = patience is None or since > patience
    return InPlaceDecision.EVICT if failed and group.disruptable else InPlaceDecision.DEFERRED

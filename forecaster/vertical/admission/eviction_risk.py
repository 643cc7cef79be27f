"""What a change of requests does to oom_score_adj and to the order of eviction (§6.4, §6.5)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.vertical.admission.checks import Finding, note, passes, unknown
from forecaster.vertical.cluster_rules.memory_pressure import MemoryUser, eviction_order, oom_score_adj
from forecaster.vertical.cluster_rules.node import scheduled
from forecaster.vertical.cluster_rules.pod_resources import pod_requests
from forecaster.vertical.cluster_rules.resource_list import MEMORY_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from forecaster.vertical.admission.context import AdmissionContext
    from forecaster.vertical.cluster_rules.node import Node
    from forecaster.vertical.cluster_rules.pod import Pod

OOM, EVICTION = "oom_score_adj", "eviction order"
_THIS_POD = "(this pod)"


@dataclass(frozen=True, slots=True)
class EvictionRisk:
    """Before and after the change, on the node where most of the pods are."""

    node: str
    scores_before: Mapping[str, int]
    scores_after: Mapping[str, int]
    rank_before: int | None
    """Position among the node's pods when its memory runs short, 1 is evicted first; None where usage is unknown."""
    rank_after: int | None
    pods: int


def eviction_risk(pod: Pod, before: Pod, context: AdmissionContext) -> EvictionRisk | None:
    """None where no node is known that says how much memory it has."""
    node = usual_node(context)
    if node is None:
        return None
    memory = node.memory_capacity or node.scheduler_allocatable.get(MEMORY_RESOURCE, 0)
    if not memory:
        return None
    users = _neighbours(node, context)
    return EvictionRisk(
        node=node.name,
        scores_before=oom_score_adj(before, memory, context.server),
        scores_after=oom_score_adj(pod, memory, context.server),
        rank_before=_rank(before, users, context),
        rank_after=_rank(pod, users, context),
        pods=len(users) + 1,
    )


def usual_node(context: AdmissionContext) -> Node | None:
    """Return the node of most of the workload's pods; else the largest node, which a request weighs least on."""
    occupancy = context.occupancy
    if occupancy is None:
        return None
    counted = Counter(one.node for one in occupancy.of(context.workload) if one.node in occupancy.by_name)
    if counted:
        return occupancy.by_name[counted.most_common(1)[0][0]]
    return max(occupancy.kinds, key=lambda node: node.scheduler_allocatable.get(MEMORY_RESOURCE, 0), default=None)


def _neighbours(node: Node, context: AdmissionContext) -> list[MemoryUser]:
    occupancy = context.occupancy.on(node.name, context.workload) if context.occupancy else []
    return [
        MemoryUser(one.name, one.memory_bytes, one.requests.get(MEMORY_RESOURCE, 0), one.priority) for one in occupancy
    ]


def _rank(pod: Pod, users: list[MemoryUser], context: AdmissionContext) -> int | None:
    if context.memory_usage is None:
        return None
    request = scheduled(pod_requests(pod, context.server)).get(MEMORY_RESOURCE, 0)
    order = eviction_order([*users, MemoryUser(_THIS_POD, context.memory_usage, request, pod.priority)])
    return [user.name for user in order].index(_THIS_POD) + 1


def findings(killed: EvictionRisk | None) -> Iterator[Finding]:
    """What of it is worth saying."""
    if killed is None:
        yield unknown(OOM, "no node is known that says how much memory it has")
        return
    changed = {
        name: (score, killed.scores_after[name])
        for name, score in killed.scores_before.items()
        if killed.scores_after[name] != score
    }
    for name, (old, new) in changed.items():
        exposed = "more" if new > old else "less"
        yield note(OOM, f"{name}: {old} → {new} on {killed.node}, {exposed} exposed when the node runs out of memory")
    if not changed:
        yield passes(OOM, "unchanged")
    if killed.rank_before is None or killed.rank_after is None:
        yield unknown(EVICTION, "the pod's memory usage is not known")
    elif killed.rank_before != killed.rank_after:
        said = f"{killed.rank_before} → {killed.rank_after} of {killed.pods} pods on {killed.node}"
        yield note(EVICTION, f"evicted as number {said} under memory pressure")
    else:
        yield passes(EVICTION, f"stays number {killed.rank_after} of {killed.pods} on {killed.node}")

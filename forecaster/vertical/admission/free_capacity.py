"""Effect of recommended requests on the nodes.

Whether the replicas fit now, and once more nodes like these exist (§6.13); the effect of changed requests on
oom_score_adj and on the order of eviction (§6.4, §6.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from forecaster.domain.amounts import counted
from forecaster.vertical.admission.checks import Finding, note, passes, refused, unknown
from forecaster.vertical.admission.context import AdmissionContext
from forecaster.vertical.cluster_rules.node import HOSTNAME, Node, Occupancy, Resident, scheduled
from forecaster.vertical.cluster_rules.node_fit import Fit, Preemption, fit, node_refuses, places_left, preemptions
from forecaster.vertical.cluster_rules.pod import Pod, pod_requests
from forecaster.vertical.cluster_rules.qos import MemoryUser, eviction_order, oom_score_adj
from forecaster.vertical.cluster_rules.resource_list import MEMORY_RESOURCE, Amounts, added, text_of

NODE_FIT, PRIORITY = "node fit", "priority"
_SHOWN = 3
MAX_PREEMPTIONS = 20
"""Preemptions worked out one by one; a workload that needs more of them needs nodes."""


@dataclass(frozen=True, slots=True)
class FreeCapacity:
    """Nodes that have place for the replicas. `desired == now + waiting`."""

    desired: int
    now: int
    per_new_node: int
    """Pods that one more node of the largest kind takes, its daemons already on it; 0: not even one."""
    refused: tuple[str, ...] = ()
    """Filters that excluded nodes, with the number of nodes."""
    preempted: tuple[Preemption, ...] = ()

    @property
    def waiting(self) -> int:
        """Replicas without a node today."""
        return self.desired - self.now

    @property
    def new_nodes(self) -> int | None:
        """Nodes that must be added for the rest; None where no node would do."""
        if not self.waiting:
            return 0
        return -(-self.waiting // self.per_new_node) if self.per_new_node else None


def free_capacity(pod: Pod, context: AdmissionContext) -> FreeCapacity | None:
    """Return the nodes for the replicas once the workload's present pods are gone; None where no nodes are known."""
    occupancy, replicas = context.occupancy, context.rollout.replicas
    if occupancy is None:
        return None
    placed = fit(pod, replicas, occupancy, context.server, without=context.workload)
    request = scheduled(pod_requests(pod, context.server))
    empty = ((node.scheduler_allocatable, occupancy.daemons(node.name)) for node in kinds_for(pod, occupancy))
    return FreeCapacity(
        desired=replicas,
        now=placed.count,
        per_new_node=max((places_left(amounts, _requests(on), len(on), request) for amounts, on in empty), default=0),
        refused=tuple(f"{why} ({count})" for why, count in sorted(placed.refused.items()) if why),
        preempted=_preempted(pod, placed, occupancy, context) if placed.count < replicas and pod.preempts else (),
    )


def _requests(residents: Sequence[Resident]) -> Amounts:
    return added(*(resident.requests for resident in residents))


def kinds_for(pod: Pod, occupancy: Occupancy) -> list[Node]:
    """One of each kind of node that the pod may run on; a cordon does not count, it passes."""
    nodes = occupancy.nodes if _names_hosts(pod) else occupancy.kinds
    return [node for node in nodes if not node_refuses(replace(node, unschedulable=False), pod.placement)]


def _names_hosts(pod: Pod) -> bool:
    """Whether it is bound to nodes by name, so that two of a kind are not alike to it."""
    terms = pod.placement.node_terms or ()
    return HOSTNAME in pod.placement.node_selector or any(
        term.fields or any(condition.key == HOSTNAME for condition in term.labels) for term in terms
    )


def _preempted(pod: Pod, placed: Fit, occupancy: Occupancy, context: AdmissionContext) -> tuple[Preemption, ...]:
    """One preemption after the other on nodes with pods of lower priority; those that found a node already on it."""
    resident = Resident.of(pod, "", context.server)
    there = (
        (node, [*occupancy.on(node.name, context.workload), *[resident] * placed.placed.get(node.name, 0)])
        for node in occupancy.nodes
    )
    waiting = context.rollout.replicas - placed.count
    return tuple(preemptions(pod, resident.requests, there, min(waiting, MAX_PREEMPTIONS)))


def node_fit(pod: Pod, context: AdmissionContext, free: FreeCapacity | None) -> Iterator[Finding]:
    """Refuse only if no node could ever take one pod; report a wait for nodes."""
    if free is None:
        yield unknown(NODE_FIT, "no nodes are known")
    elif not free.per_new_node:
        yield refused(NODE_FIT, f"a pod needs {_needs(pod, context)}; no node takes one even when empty: {_why(free)}")
    elif free.waiting:
        yield note(
            NODE_FIT,
            f"{free.now} of {free.desired} replicas fit now, {free.waiting} wait for {free.new_nodes} more nodes"
            f" ({_why(free)})",
        )
    else:
        yield passes(NODE_FIT, f"all {free.desired} replicas fit now")


def priority(pod: Pod, free: FreeCapacity | None) -> Iterator[Finding]:
    """Report the pods that would be preempted for the replicas that do not fit."""
    if free is None or not free.preempted:
        return
    victims = [victim for preemption in free.preempted for victim in preemption.victims]
    names = ", ".join(sorted({victim.workload or victim.name for victim in victims})[:_SHOWN])
    yield note(PRIORITY, f"at priority {pod.priority} it would preempt {counted(len(victims), 'pod')}: {names}")


def _needs(pod: Pod, context: AdmissionContext) -> str:
    requests = pod_requests(pod, context.server)
    return ", ".join(f"{name} {text_of(milli, name)}" for name, milli in requests.items() if milli) or "nothing"


def _why(free: FreeCapacity) -> str:
    return ", ".join(free.refused[:_SHOWN]) or "nothing in the way"


def empty_capacities(pod: Pod, occupancy: Occupancy) -> list[dict[str, int]]:
    """Return the capacity of each kind of node for the pod, without daemons, in the scheduler's units."""
    empty = (
        (node.scheduler_allocatable, _requests(occupancy.daemons(node.name))) for node in kinds_for(pod, occupancy)
    )
    return [{name: amount - taken.get(name, 0) for name, amount in allocatable.items()} for allocatable, taken in empty]


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
    occupancy = context.occupancy
    node = None if occupancy is None else usual_node(occupancy, context.workload)
    memory = 0 if node is None else node.memory_capacity or node.scheduler_allocatable.get(MEMORY_RESOURCE, 0)
    if occupancy is None or node is None or not memory:
        return None
    users = [
        MemoryUser(resident.name, resident.memory_bytes, resident.requests.get(MEMORY_RESOURCE, 0), resident.priority)
        for resident in occupancy.on(node.name, context.workload)
    ]
    return EvictionRisk(
        node=node.name,
        scores_before=oom_score_adj(before, memory, context.server),
        scores_after=oom_score_adj(pod, memory, context.server),
        rank_before=_rank(before, users, context),
        rank_after=_rank(pod, users, context),
        pods=len(users) + 1,
    )


def usual_node(occupancy: Occupancy, workload: str) -> Node | None:
    """Return the node of most of a workload's pods; else the largest node, which a request weighs least on."""
    pods = {name: len(on) for name, on in occupancy.of(workload).items() if name in occupancy.by_name}
    if pods:
        return occupancy.by_name[max(pods, key=pods.__getitem__)]
    return max(occupancy.kinds, key=lambda node: node.scheduler_allocatable.get(MEMORY_RESOURCE, 0), default=None)


def _rank(pod: Pod, users: list[MemoryUser], context: AdmissionContext) -> int | None:
    if context.memory_usage is None:
        return None
    request = scheduled(pod_requests(pod, context.server)).get(MEMORY_RESOURCE, 0)
    order = eviction_order([*users, MemoryUser(_THIS_POD, context.memory_usage, request, pod.priority)])
    return [user.name for user in order].index(_THIS_POD) + 1


def eviction_findings(killed: EvictionRisk | None) -> Iterator[Finding]:
    """Report the risk of eviction where it is notable."""
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
    if killed.rank_before is None:
        yield unknown(EVICTION, "the pod's memory usage is not known")
    elif killed.rank_before != killed.rank_after:
        rank = f"{killed.rank_before} → {killed.rank_after} of {killed.pods} pods on {killed.node}"
        yield note(EVICTION, f"evicted as number {rank} under memory pressure")
    else:
        yield passes(EVICTION, f"stays number {killed.rank_after} of {killed.pods} on {killed.node}")

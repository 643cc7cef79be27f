"""Whether running pods can be resized where they are (§6.9)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from forecaster.vertical.admission.checks import Finding, note, passes, refused, unknown
from forecaster.vertical.admission.context import with_values
from forecaster.vertical.cluster_rules.node import scheduled
from forecaster.vertical.cluster_rules.pod_resources import pod_requests
from forecaster.vertical.cluster_rules.qos import exclusive_cpus
from forecaster.vertical.cluster_rules.resize import resize
from forecaster.vertical.cluster_rules.resource_list import COMPUTE, MEMORY, added, text_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.vertical.admission.context import AdmissionContext, ProposedRequirements
    from forecaster.vertical.cluster_rules.node import Node
    from forecaster.vertical.cluster_rules.pod import Pod

RESIZE = "in-place resize"
APPLIED, DEFERRED, INFEASIBLE = "applied", "deferred", "infeasible"


def in_place(pod: Pod, proposed: ProposedRequirements, context: AdmissionContext) -> Iterator[Finding]:
    """What the API server says of the first running pod, then what each pod's node would do."""
    if not context.running:
        yield unknown(RESIZE, "no running pod is known")
        return
    first = context.running[0][0]
    answer = resize(first, with_values(first, proposed), context.server)
    if not answer.allowed:
        yield from (refused(RESIZE, str(one)) for one in answer.refusals)
        return
    yield from _on_nodes(pod, context)
    if answer.restarts:
        yield note(RESIZE, f"restarts {', '.join(answer.restarts)}, as their resize policy says")
    yield from _memory_shrink(first, pod, context)


def _on_nodes(pod: Pod, context: AdmissionContext) -> Iterator[Finding]:
    if context.occupancy is None:
        yield unknown(RESIZE, "no nodes are known")
        return
    nodes = context.occupancy.by_name
    outcomes = Counter(_outcome(pod, nodes[name], context) for _, name in context.running if name in nodes)
    said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    if outcomes[INFEASIBLE]:
        yield refused(RESIZE, f"{said}: a node can never grant it")
    elif outcomes[DEFERRED]:
        yield note(RESIZE, f"{said} until there is free capacity on the node")
    else:
        yield passes(RESIZE, said)


def _outcome(pod: Pod, node: Node, context: AdmissionContext) -> str:
    """What the kubelet of this node would answer."""
    if context.cpu_manager.is_static and any(exclusive_cpus(pod, context.cpu_manager, context.server).values()):
        return INFEASIBLE
    request = scheduled(pod_requests(pod, context.server))
    if any(request.get(name, 0) > node.scheduler_allocatable.get(name, 0) for name in COMPUTE):
        return INFEASIBLE
    others = context.occupancy.taken(node.name, context.workload) if context.occupancy else {}
    siblings = sum(name == node.name for _, name in context.running) - 1
    taken = added(others, *([scheduled(pod_requests(context.template, context.server))] * siblings))
    fits = all(taken.get(name, 0) + request.get(name, 0) <= node.scheduler_allocatable.get(name, 0) for name in COMPUTE)
    return APPLIED if fits else DEFERRED


def _memory_shrink(before: Pod, after: Pod, context: AdmissionContext) -> Iterator[Finding]:
    """A memory limit below what is in use is not applied; the kubelet reports an error and tries again."""
    for old, new in zip(before.every_container(), after.every_container(), strict=True):
        limit = new.resources.limits.get(MEMORY)
        if limit is None or limit >= old.resources.limits.get(MEMORY, 0) or new.restarts_on(MEMORY):
            continue
        said = f"{new.name}: the memory limit shrinks to {text_of(limit, MEMORY)} without a restart"
        used = context.memory_usage
        if used is not None and used > whole(limit):
            yield note(RESIZE, f"{said}, below the {text_of(used * 1000, MEMORY)} in use: the node will not apply it")
        else:
            yield note(RESIZE, f"{said}; if usage grows meanwhile, the kernel may kill it")

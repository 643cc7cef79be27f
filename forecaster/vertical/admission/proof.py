"""The admission proof: every rule that a recommendation must pass, in order, with reasons.

proof = prove({"app": Requirements(...)}, context)

proof.accepted, proof.findings, proof.nearest
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forecaster.vertical.admission import checks, free_capacity
from forecaster.vertical.admission.checks import Finding, Verdict, note, passes, refused, unknown
from forecaster.vertical.admission.context import WHOLE_POD, compute_only, with_values
from forecaster.vertical.admission.nearest import Refused, nearest
from forecaster.vertical.cluster_rules.node import scheduled
from forecaster.vertical.cluster_rules.pod import Pod, Requirements, pod_requests
from forecaster.vertical.cluster_rules.qos import QosClass, computed_qos, exclusive_cpus
from forecaster.vertical.cluster_rules.resize import resize
from forecaster.vertical.cluster_rules.resource_list import (
    COMPUTE,
    CPU_RESOURCE,
    MEMORY_RESOURCE,
    added,
    text_of,
    whole,
)
from forecaster.vertical.cluster_rules.validation import defaulted

if TYPE_CHECKING:
    from forecaster.vertical.admission.context import AdmissionContext, ProposedRequirements
    from forecaster.vertical.admission.free_capacity import EvictionRisk, FreeCapacity
    from forecaster.vertical.cluster_rules.resource_list import Amounts

RESIZE = "in-place resize"
APPLIED, DEFERRED, INFEASIBLE = "applied", "deferred", "infeasible"


def in_place(proposed: ProposedRequirements, context: AdmissionContext) -> Iterator[Finding]:
    """Report the API server's answer for the first running pod, then that of each pod's node.

    A running pod may have containers that its template lacks: a mesh injects its own.
    """
    if not context.running:
        yield unknown(RESIZE, "no running pod is known")
        return
    first = context.running[0][0]
    resized = with_values(first, proposed)
    answer = resize(first, resized, context.server)
    if not answer.allowed:
        yield from (refused(RESIZE, str(refusal)) for refusal in answer.refusals)
        return
    resized = defaulted(resized, context.server)
    yield from _on_nodes(resized, first, context)
    if answer.restarts:
        yield note(RESIZE, f"restarts {', '.join(answer.restarts)}, as their resize policy says")
    yield from _memory_shrink(first, resized, context)


def _on_nodes(pod: Pod, before: Pod, context: AdmissionContext) -> Iterator[Finding]:
    if context.occupancy is None:
        yield unknown(RESIZE, "no nodes are known")
        return
    nodes = context.occupancy.by_name
    outcomes: Counter[str] = Counter()
    for name, pods in Counter(name for _, name in context.running if name in nodes).items():
        others = added(
            context.occupancy.taken(name, context.workload),
            *([scheduled(pod_requests(before, context.server))] * (pods - 1)),
        )
        outcomes[_outcome(pod, nodes[name].scheduler_allocatable, others, context)] += pods
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    if outcomes[INFEASIBLE]:
        yield refused(RESIZE, f"{counts}: a node can never grant it")
    elif outcomes[DEFERRED]:
        yield note(RESIZE, f"{counts} until there is free capacity on the node")
    else:
        yield passes(RESIZE, counts)


def _outcome(pod: Pod, allocatable: Amounts, others: Amounts, context: AdmissionContext) -> str:
    """Return the kubelet's answer, given the requests of the other pods on its node."""
    if context.static_cpu and any(exclusive_cpus(pod, context.server).values()):
        return INFEASIBLE
    request = scheduled(pod_requests(pod, context.server))
    if any(request.get(name, 0) > allocatable.get(name, 0) for name in COMPUTE):
        return INFEASIBLE
    fits = all(others.get(name, 0) + request.get(name, 0) <= allocatable.get(name, 0) for name in COMPUTE)
    return APPLIED if fits else DEFERRED


def _memory_shrink(before: Pod, after: Pod, context: AdmissionContext) -> Iterator[Finding]:
    """A memory limit below what is in use is not applied; the kubelet reports an error and tries again."""
    for old, new in zip(before.every_container(), after.every_container(), strict=True):
        limit = new.resources.limits.get(MEMORY_RESOURCE)
        if limit is None or limit >= old.resources.limits.get(MEMORY_RESOURCE, 0) or new.restarts_on(MEMORY_RESOURCE):
            continue
        warning = f"{new.name}: the memory limit shrinks to {text_of(limit, MEMORY_RESOURCE)} without a restart"
        used = context.memory_usage
        if used is not None and used > whole(limit):
            yield note(
                RESIZE,
                f"{warning}, below the {text_of(used * 1000, MEMORY_RESOURCE)} in use: the node will not apply it",
            )
        else:
            yield note(RESIZE, f"{warning}; if usage grows meanwhile, the kernel may kill it")


MAX_ROUNDS = 8
"""Moving one value for one rule may break another; a few rounds settle it, or nothing does."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The cluster's answer to a recommendation, and the effect of the recommendation."""

    values: Mapping[str, Requirements]
    """Stored values: proposed values completed by defaults and LimitRanges, cpu and memory of each container."""
    findings: tuple[Finding, ...]
    qos_before: QosClass
    qos_after: QosClass
    free: FreeCapacity | None
    """Nodes for the replicas; None where no nodes are known."""
    risk: EvictionRisk | None
    nearest: Mapping[str, Requirements] | None
    """Feasible values: the proposed ones if accepted; None if there are none near."""

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """Findings of every rule that refuses, in the order of the rules."""
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.REFUSED)

    @property
    def accepted(self) -> bool:
        """No rule refuses. A rule that lacks its facts is `unknown` among the findings, which is no refusal."""
        return not self.refusals


def prove(proposed: ProposedRequirements, context: AdmissionContext) -> Proof:
    """Every rule about these values; if one refuses, the nearest values that all of them admit."""
    proof = _judged(proposed, context)
    return proof if proof.accepted else replace(proof, nearest=_nearest(proposed, context))


def _judged(proposed: ProposedRequirements, context: AdmissionContext) -> Proof:
    before, pod = context.completed({}), context.completed(proposed)
    free, risk = free_capacity.free_capacity(pod, context), free_capacity.eviction_risk(pod, before, context)
    findings = (
        *checks.limit_ranges(pod, proposed, context),
        *checks.validation(pod, context),
        *checks.qos(pod, before, context),
        *checks.quotas(pod, before, context),
        *checks.static_cpu(pod, before, context),
        *free_capacity.node_fit(pod, context, free),
        *(in_place(proposed, context) if context.in_place else ()),
        *free_capacity.priority(pod, free),
        *free_capacity.eviction_findings(risk),
    )
    blocks = {container.name: container.resources for container in pod.every_container()}
    return Proof(
        values={
            name: Requirements(compute_only(block.requests), compute_only(block.limits))
            for name, block in blocks.items()
        },
        findings=findings,
        qos_before=computed_qos(before, context.server),
        qos_after=computed_qos(pod, context.server),
        free=free,
        risk=risk,
        nearest=proposed,
    )


def _nearest(proposed: ProposedRequirements, context: AdmissionContext) -> Mapping[str, Requirements] | None:
    """Move the values until all rules pass; where that fails, keep today's of one resource, or of both.

    None only if today's values do not pass either.
    """
    before = context.completed({})
    rounds = 0 if WHOLE_POD in proposed else MAX_ROUNDS  # what a whole pod states has no cells to move
    for _ in range(rounds):
        moved = nearest(Refused(context.completed(proposed), before, proposed, context))
        if _judged(moved, context).accepted:
            return moved
        if moved == proposed:
            break
        proposed = moved
    alternatives = (_keeping(names, proposed, before) for names in ((MEMORY_RESOURCE,), (CPU_RESOURCE,), COMPUTE))
    return next((sizes for sizes in alternatives if _judged(sizes, context).accepted), None)


def _keeping(names: Sequence[str], proposed: ProposedRequirements, before: Pod) -> dict[str, Requirements]:
    """The proposed values, today's of these resources."""
    stated = {container.name: container.resources for container in before.every_container()} | {
        WHOLE_POD: before.pod_level
    }
    today = {name: block for name, block in stated.items() if block is not None and name in proposed}
    return {
        container: Requirements(
            _mixed(names, proposed[container].requests, block.requests),
            _mixed(names, proposed[container].limits, block.limits),
        )
        for container, block in today.items()
    }


def _mixed(names: Sequence[str], proposed: Amounts, today: Amounts) -> dict[str, int]:
    return {name: side[name] for name in COMPUTE for side in [today if name in names else proposed] if name in side}

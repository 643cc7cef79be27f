"""The admission context of a workload: its template, its namespace's objects, the nodes and the pods on them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from forecaster.vertical.cluster_rules.limit_range import LimitRange, stored, with_defaults
from forecaster.vertical.cluster_rules.node import Occupancy
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.quota import Quota, matches, usage
from forecaster.vertical.cluster_rules.resource_list import COMPUTE, Amounts
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server
from forecaster.vertical.cluster_rules.validation import with_early_defaults, with_late_defaults

ProposedRequirements: TypeAlias = Mapping[str, Requirements]
"""New requests and limits of cpu and memory by container; those left out stay unchanged."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """Limits of a rollout: at most `surge` pods more than `replicas`, at most `unavailable` fewer."""

    replicas: int = 1
    surge: int = 1
    unavailable: int = 0
    made_by: str = ""
    """Kind and name of the object that the workload is made from; empty where no object makes it."""


@dataclass(frozen=True, slots=True)
class ApplyTerms:
    """The way of applying sizes: a choice, and not a fact of the cluster."""

    in_place: bool = False
    """Whether running pods are resized, instead of rolling out a new template."""
    accepts_qos_change: bool = False
    """Whether another QoS class is accepted; a resize in place never changes it."""
    static_cpu: bool = False
    """Whether kubelets run the static CPU manager, which reserves whole CPUs for containers of Guaranteed pods."""


ROLLED_OUT = ApplyTerms()


@dataclass(frozen=True, slots=True)
class AdmissionContext:
    """Facts that the proof reads besides the recommendation itself. None is a fact that is not known."""

    template: Pod
    rollout: Rollout = Rollout()
    workload: str = ""
    """Namespace, kind and name; its pods among the residents are replaced by the new ones."""
    limit_ranges: tuple[LimitRange, ...] | None = ()
    quotas: tuple[Quota, ...] | None = ()
    occupancy: Occupancy | None = None
    """Nodes and the pods on them; shared between workloads."""
    static_cpu: bool = False
    server: Server = LATEST_SERVER
    running: tuple[tuple[Pod, str], ...] = ()
    """Pods that run and their nodes; needed for a resize in place only."""
    in_place: bool = False
    accepts_qos_change: bool = False
    memory_usage: int | None = None
    """Bytes that one pod uses, or is forecast to use at its peak."""

    def completed(self, proposed: ProposedRequirements) -> Pod:
        """The pod as the API server would store it: with the proposed values, its own defaults and LimitRanges'."""
        pod = with_values(self.template, proposed)
        ranges = [stored(limit_range) for limit_range in self.limit_ranges or ()]
        return with_late_defaults(with_defaults(with_early_defaults(pod, self.server), ranges), self.server)

    def added_limits(self, proposed: ProposedRequirements, stated: ProposedRequirements) -> str:
        """Limits with these values beside those `stated`: LimitRanges complete running pods, too, when resized."""
        added = _limits(self.completed(proposed)) - _limits(with_values(self.template, stated))
        return ", ".join(sorted(added))


def _limits(pod: Pod) -> set[str]:
    """Containers and resources that have a limit."""
    return {f"{container.name} {name}" for container in pod.every_container() for name in container.resources.limits}


WHOLE_POD = "the pod"
"""Name for a pod's own sizes as a whole; no container can be called so."""
PART_SIZED = "it states its resources as a whole, and not each of its containers has a size"


def with_values(pod: Pod, proposed: ProposedRequirements) -> Pod:
    """Return the pod with other cpu and memory where containers, or the pod as a whole, are named."""
    if WHOLE_POD in proposed:
        pod = replace(pod, pod_level=_merged(pod.pod_level or Requirements({}, {}), proposed[WHOLE_POD]))

    def resized(container: Container) -> Container:
        block = proposed.get(container.name)
        return replace(container, resources=_merged(container.resources, block)) if block else container

    return pod.with_containers(resized)


def as_stated(pod: Pod, sizes: ProposedRequirements) -> ProposedRequirements:
    """Sizes of containers in the form in which a pod states its resources.

    What a pod states for itself as a whole is the sum of its containers, where each of them has a size; a limit keeps
    its ratio to the request where one of them has none. A container keeps to the resources that it states.
    """
    if pod.pod_level is None or not pod.has_pod_level:
        return sizes
    running = [*pod.containers, *(container for container in pod.init_containers if container.sidecar)]
    known = [sizes[container.name] for container in running if container.name in sizes]
    block = pod.pod_level
    if len(known) < len(running):
        return {}
    requests = {name: milli for name in compute_only(block.requests) if (milli := _sum(name, known))}
    limits = compute_only(block.limits)
    for name in limits.keys() & requests.keys():
        in_ratio = limits[name] * requests[name] // max(block.requests[name], 1)
        limits[name] = max(_sum(name, known, of_limits=True) or in_ratio, requests[name])
    own = {container.name: _kept_to(container.resources, sizes[container.name]) for container in running}
    stated = {name: block for name, block in own.items() if block.requests or block.limits}
    return {WHOLE_POD: Requirements(compute_only(block.requests) | requests, limits), **stated}


def _sum(name: str, blocks: Sequence[Requirements], *, of_limits: bool = False) -> int:
    """Sum of a resource; 0 where one of the blocks does not state it."""
    amounts = [block.limits if of_limits else block.requests for block in blocks]
    return sum(amount[name] for amount in amounts) if all(name in amount for amount in amounts) else 0


def _kept_to(now: Requirements, size: Requirements) -> Requirements:
    """Return the amounts of a size that are stated now."""
    requests, limits = (
        {name: milli for name, milli in new.items() if name in old}
        for new, old in ((size.requests, now.requests), (size.limits, now.limits))
    )
    return Requirements(requests, limits)


def compute_only(amounts: Amounts) -> dict[str, int]:
    """Return only cpu and memory."""
    return {name: amounts[name] for name in COMPUTE if name in amounts}


def _merged(block: Requirements, proposed: Requirements) -> Requirements:
    requests, limits = (
        {name: milli for name, milli in now.items() if name not in COMPUTE} | compute_only(new)
        for now, new in ((block.requests, proposed.requests), (block.limits, proposed.limits))
    )
    return Requirements(requests, limits)


def least_needed(rollout: Rollout, old: int, new: int) -> int:
    """The charge that a rollout cannot do without, one new pod at a time, in the unit of `old` and `new`.

    With j new pods there are still `replicas - unavailable - (j - 1)` old ones. That sum is convex in j, so its
    largest value is at the first new pod or at the last.
    """
    replicas = rollout.replicas
    if not replicas:
        return 0
    return max(_old_beside(rollout, j) * old + j * new for j in (1, replicas))


def most_needed(rollout: Rollout, old: int, new: int) -> int:
    """The charge of a rollout that nothing slows down: `surge` pods on top of the larger generation."""
    return rollout.replicas * max(old, new) + rollout.surge * min(old, new) if rollout.replicas else 0


def pods_until_stall(rollout: Rollout, old: int, new: int, left: int) -> int:
    """Return how many new pods, larger than the old ones, fit before a rollout stalls; all of them if it does not."""
    charges = range(1, rollout.replicas + 1)
    return bisect_right(charges, left, key=lambda j: _old_beside(rollout, j) * old + j * new)


def _old_beside(rollout: Rollout, j: int) -> int:
    return max(rollout.replicas - rollout.unavailable - (j - 1), 0)


def most_charged_per_pod(quota: Quota, name: str, pod: Pod, before: Pod, context: AdmissionContext) -> int | None:
    """Return the charge per pod in milli-units; None where this quota does not limit it. Never below today's charge."""
    if name not in quota.tracked or not matches(quota, pod, context.server) or not context.rollout.replicas:
        return None
    old = usage(before, context.server).get(name, 0) if matches(quota, before, context.server) else 0
    replicas = context.rollout.replicas
    left = quota.hard[name] - max(quota.used.get(name, 0) - replicas * old, 0)
    if context.in_place:
        return max(left // replicas, old)
    beside_first = max(replicas - context.rollout.unavailable, 0) * old
    beside_last = max(1 - context.rollout.unavailable, 0) * old
    return max(min(left - beside_first, (left - beside_last) // replicas), old)

"""Objects of a cluster, and the admission context of one workload made from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from forecaster.vertical.admission.context import ROLLED_OUT, AdmissionContext, ApplyTerms, Rollout
from forecaster.vertical.cluster_rules.node import Node, Occupancy, Resident
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.resource_list import COMPUTE, CPU_RESOURCE, MEMORY_RESOURCE, MILLI, Amounts
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server

if TYPE_CHECKING:
    from forecaster.domain.workload import Resources, Workload, WorkloadId
    from forecaster.vertical.admission.context import ProposedRequirements
    from forecaster.vertical.cluster_rules.limit_range import LimitRange
    from forecaster.vertical.cluster_rules.quota import Quota
    from forecaster.vertical.recommenders.baselines import VpaSizes

POD = "pod"
"""Name of the single container that represents a pod without known containers."""

HEADROOM = "forecaster-headroom"
"""Prefix of the names of headroom Deployments and their ReplicaSets."""


REPLACED_ONE_BY_ONE = ("DaemonSet", "StatefulSet")
ONE_BY_ONE = Rollout(surge=0, unavailable=1)
"""Default of controllers that replace pods one by one: the old pod is removed first."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Objects by namespace or workload; None was not read."""

    nodes: tuple[Node, ...] | None = None
    residents: tuple[Resident, ...] = ()
    limit_ranges: Mapping[str, tuple[LimitRange, ...] | None] | None = None
    """LimitRanges by namespace; None also where one of them could not be understood."""
    quotas: Mapping[str, tuple[Quota, ...] | None] | None = None
    templates: Mapping[WorkloadId, Pod] = field(default_factory=dict)
    rollouts: Mapping[WorkloadId, Rollout] = field(default_factory=dict)
    running: Mapping[WorkloadId, tuple[tuple[Pod, str], ...]] = field(default_factory=dict)
    vpas: Mapping[WorkloadId, tuple[VpaSizes, ...]] = field(default_factory=dict)
    """Recommendations by VPAs of the cluster."""
    server: Server = LATEST_SERVER
    faults: tuple[str, ...] = ()
    """Objects that could not be understood, one sentence each."""
    occupancy: Occupancy | None = field(init=False, repr=False, compare=False)
    """Nodes and residents, indexed once; None where no nodes are known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "occupancy", Occupancy(self.nodes, self.lasting) if self.nodes else None)

    @property
    def lasting(self) -> tuple[Resident, ...]:
        """Residents without headroom pods, which every other pod preempts."""
        named = ((resident, resident.workload.rpartition("/")[2]) for resident in self.residents)
        return tuple(resident for resident, name in named if not name.startswith(HEADROOM))

    def context_of(
        self,
        workload: Workload,
        replicas: int,
        memory_usage: float | None = None,
        containers: Mapping[str, Resources] | None = None,
        terms: ApplyTerms = ROLLED_OUT,
    ) -> AdmissionContext:
        """Return the admission context of a workload with these replicas; `containers` as they are, if known."""
        id_ = workload.id
        rollout = self.rollouts.get(id_, ONE_BY_ONE if id_.kind in REPLACED_ONE_BY_ONE else Rollout())
        namespace = id_.namespace
        return AdmissionContext(
            template=self.template_of(workload, containers),
            rollout=replace(rollout, replicas=replicas),
            workload=id_.path,
            limit_ranges=None if self.limit_ranges is None else self.limit_ranges.get(namespace, ()),
            quotas=None if self.quotas is None else self.quotas.get(namespace, ()),
            occupancy=self.occupancy,
            server=self.server,
            running=self.running.get(id_, ()),
            memory_usage=None if memory_usage is None else round(memory_usage),
            in_place=terms.in_place,
            accepts_qos_change=terms.accepts_qos_change,
            static_cpu=terms.static_cpu,
        )

    def template_of(self, workload: Workload, containers: Mapping[str, Resources] | None = None) -> Pod:
        """Return its template; where none is known, its containers, or one container with the sums of the pod."""
        known = containers or {POD: workload.resources}
        return self.templates.get(workload.id) or Pod(
            tuple(Container(name, requirements_of(now)) for name, now in known.items())
        )


def requirements_of(resources: Resources) -> Requirements:
    """Convert cores and bytes to milli-units, rounded up to a value that an object can hold."""
    requests, limits = (
        {name: milli_of(name, value) for name, value in zip(COMPUTE, amounts, strict=True) if value is not None}
        for amounts in (resources.amounts[0::2], resources.amounts[1::2])
    )
    return Requirements(requests, limits)


def milli_of(name: str, value: float) -> int:
    """Milli-units of cores or bytes: whole thousandths of a core, whole bytes."""
    if name == CPU_RESOURCE:
        return -int(-round(value * MILLI, 6) // 1)
    return -int(-round(value, 3) // 1) * MILLI


def split(resources: Resources, template: Pod) -> ProposedRequirements | str:
    """Divide a pod's recommended sums among its containers, by their present shares; or say why not.

    Sidecars keep what they have, and so does a resource that a container does not state, or of which there is no sum.
    """
    whole, containers = requirements_of(resources), template.containers
    if not containers:
        return "its template has no containers"
    if len(containers) == 1:
        return {containers[0].name: _part(containers[0].resources, whole, dict.fromkeys(COMPUTE, Fraction(1)))}
    stated = {name: sum(container.resources.requests.get(name, 0) for container in containers) for name in COMPUTE}
    if unstated := [name for name in whole.requests if not stated[name]]:
        return f"{len(containers)} containers, none of which requests {' or '.join(unstated)}: no share to split by"
    return {
        container.name: _part(
            container.resources,
            whole,
            {name: Fraction(container.resources.requests.get(name, 0), stated[name] or 1) for name in COMPUTE},
        )
        for container in containers
    }


def _part(today: Requirements, whole: Requirements, shares: Mapping[str, Fraction]) -> Requirements:
    def parts(now: Amounts, sums: Amounts) -> dict[str, int]:
        unit = {CPU_RESOURCE: 1, MEMORY_RESOURCE: MILLI}
        requests = {name: now[name] for name in COMPUTE if name in now and (name in sums or name not in whole.requests)}
        shared = {name for name in sums if shares[name] and (name in whole.requests or name not in now)}
        return requests | {name: math.ceil(sums[name] * shares[name] / unit[name]) * unit[name] for name in shared}

    return Requirements(parts(today.requests, whole.requests), parts(today.limits, whole.limits))

"""Advice about requests and limits from a cycle's recommendations, history, and the cluster; joint choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.cycle.load_forecast import POINTS_A_DAY, SharedLoad, carried_at, demand_samples, shared_load
from forecaster.demand.capacity import per_pod
from forecaster.demand.fresh import values_of
from forecaster.domain.decision import Hold, Reason, Recommendation, Resize
from forecaster.domain.signal import CPU, MEMORY, PODS
from forecaster.domain.window import FIVE_MINUTES, HOUR
from forecaster.domain.workload import Resources, TargetType, Workload, WorkloadId
from forecaster.horizontal.targets import Unusable, UtilizationTarget, targets_of
from forecaster.ports import Histories
from forecaster.vertical.admission.advice import Advice, advise
from forecaster.vertical.admission.cluster import Cluster
from forecaster.vertical.admission.context import ROLLED_OUT, ApplyTerms
from forecaster.vertical.recommenders.baselines import KRR, LIVE_VPA, VPA, krr, vpa
from forecaster.vertical.sizing.joint import (
    Infeasible,
    JointBounds,
    LoadStretch,
    PodModel,
    ResourceCosts,
    SizePlan,
    joint_choice,
    size_plan,
)
from forecaster.vertical.sizing.memory import load_share
from forecaster.vertical.sizing.panel import days_of

if TYPE_CHECKING:
    from forecaster.cycle.load_forecast import DemandSamples
    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import Policy
    from forecaster.forecasting.forecaster import Forecaster


@dataclass(frozen=True, slots=True, eq=False)
class PodUsage:
    """Usage of one pod of each workload: float64 [workload, time], and the seconds since 1970 of its columns."""

    ids: tuple[WorkloadId, ...]
    cpu: NDArray[np.float64]
    memory: NDArray[np.float64]
    instants: NDArray[np.int64]

    def peak_memory(self) -> dict[WorkloadId, float]:
        """The most bytes that one pod of each used; workloads without a measurement are absent."""
        highest = np.where(np.isnan(self.memory), -np.inf, self.memory).max(axis=1, initial=-np.inf)
        return {id_: value for id_, value in zip(self.ids, highest.tolist(), strict=True) if np.isfinite(value)}


def pod_usage(history: Histories, ids: Sequence[WorkloadId]) -> PodUsage:
    """Read the usage of these workloads from history, in steps of five minutes."""
    weeks = {name: history.window(name, FIVE_MINUTES) for name in (CPU, MEMORY, PODS)}
    pods = values_of(weeks[PODS], ids)
    totals = (values_of(weeks[name], ids) for name in (CPU, MEMORY))
    cpu, memory = (np.asarray(per_pod(total, pods), float) for total in totals)
    columns = min(cpu.shape[1], memory.shape[1])
    latest = int(weeks[CPU].end.timestamp())
    instants = latest - int(weeks[CPU].step.total_seconds()) * np.arange(columns - 1, -1, -1, dtype=np.int64)
    return PodUsage(tuple(ids), cpu[:, cpu.shape[1] - columns :], memory[:, memory.shape[1] - columns :], instants)


def baselines(usage: PodUsage, workloads: Sequence[Workload]) -> dict[WorkloadId, dict[str, Resources | None]]:
    """Compute the requests that the VPA and KRR would recommend for each workload."""
    targeted = [_targeted(workload) for workload in workloads]
    pairs = zip(
        usage.ids, vpa(usage.cpu, usage.memory, usage.instants), krr(usage.cpu, usage.memory, targeted), strict=True
    )
    return {id_: {VPA: of_vpa, KRR: of_krr} for id_, of_vpa, of_krr in pairs}


def live_vpa_sizes(id_: WorkloadId, cluster: Cluster) -> dict[str, Resources | None]:
    """Return the VPA's recommendation for one pod of a workload, by the name of the VPA.

    The value is None where the workload has no VPA or several, or its VPA is not known. The mapping is empty where the
    cluster has no VPAs.
    """
    if not cluster.vpas:
        return {}
    vpas, template = cluster.vpas.get(id_, ()), cluster.templates.get(id_)
    if len(vpas) != 1 or template is None:
        return {LIVE_VPA: None}
    return {LIVE_VPA: vpas[0].pod([container.name for container in template.containers])}


def _targeted(workload: Workload) -> frozenset[str]:
    """Resources that its HPA scales by."""
    targets = workload.autoscaler.targets if workload.autoscaler else ()
    return frozenset(target.metric for target in targets if target.type is TargetType.UTILIZATION)


def advices(
    workloads: Sequence[Workload],
    recommendations: Sequence[Recommendation],
    history: Histories,
    cluster: Cluster,
    *,
    previous: Mapping[WorkloadId, Resources] | None = None,
    compared: bool = True,
    terms: ApplyTerms = ROLLED_OUT,
) -> list[Advice]:
    """Advice for each workload, in their order; `compared` with VPA and KRR on the same history, and with its VPA."""
    usage = pod_usage(history, [workload.id for workload in workloads])
    others = baselines(usage, workloads) if compared else {}
    peaks = usage.peak_memory()
    return [
        advise(
            workload,
            recommendation,
            cluster,
            memory_usage=peaks.get(workload.id),
            baselines=others.get(workload.id, {}) | live_vpa_sizes(workload.id, cluster) if compared else None,
            previous=(previous or {}).get(workload.id),
            terms=terms,
        )
        for workload, recommendation in zip(workloads, recommendations, strict=True)
    ]


KNOWN_LOAD_TIMES = 2.0
"""Largest ratio between a pod's load and loads that a pod has carried: beyond it the memory for a load is not known."""
GAIN = 0.05
"""Share of the present cost that a plan must save to be worth a rollout and another scale point."""


@dataclass(frozen=True, slots=True)
class JointAdvice:
    """One workload: what today's size would cost over the coming day, the plan, and where its HPA then acts.

    `scale_point` is the load per pod in cores at which the HPA acts, now and with the plan; its utilization target
    stays. `reason` says why there is no plan.
    """

    now: SizePlan | None = None
    plan: SizePlan | None = None
    advice: Advice | None = None
    """The plan as the cluster sees it, with its proof."""
    utilization: float = 0.0
    scale_point: tuple[float, float] = (0.0, 0.0)
    reason: str = ""


class JointInputs(NamedTuple):
    """Inputs of joint choices, computed once for all workloads."""

    demand: DemandSamples
    usage: PodUsage
    policies: Policies
    cluster: Cluster
    costs: ResourceCosts
    terms: ApplyTerms


def joint_advice(
    workloads: Sequence[Workload],
    recommendations: Sequence[Recommendation],
    history: Histories,
    forecaster: Forecaster,
    policies: Policies,
    cluster: Cluster,
    now: datetime,
    costs: ResourceCosts,
    terms: ApplyTerms,
) -> list[JointAdvice]:
    """Return joint advice for each workload, in their order."""
    demand = demand_samples(workloads, history, forecaster, policies, now)
    usage = pod_usage(history, [workload.id for workload in workloads])
    known = JointInputs(demand, usage, policies, cluster, costs, terms)
    return [
        _joint_advice(workload, recommendation, row, known)
        for row, (workload, recommendation) in enumerate(zip(workloads, recommendations, strict=True))
    ]


def _joint_advice(workload: Workload, recommendation: Recommendation, row: int, known: JointInputs) -> JointAdvice:
    policy = known.policies.of(workload.id)
    shared = _scaled_by_cpu(workload, policy)
    if isinstance(shared, str):
        return JointAdvice(reason=shared)
    stretches = _stretches(workload, policy, known.demand)
    memory = _recommended_memory(recommendation)
    highest = _highest_load(known.usage, row)
    request = workload.resources.cpu_request
    if not stretches or memory is None or highest is None or not request:
        return JointAdvice(reason=_unknown(forecast=bool(stretches), memory=memory, highest=highest))
    model = _model(known.usage, row, memory, highest)
    bounds = JointBounds(int(shared.least), int(shared.most), highest / KNOWN_LOAD_TIMES, highest * KNOWN_LOAD_TIMES)
    utilization = shared.per_pod / request
    costs = replace(known.costs, utilization=utilization)
    now = size_plan(stretches, request, memory, model, bounds, costs, workload.replicas)
    refusal = partial(_refusal, workload, recommendation, known)
    plan = joint_choice(stretches, model, bounds, costs, workload.replicas, refusal)
    if isinstance(plan, Infeasible):
        return JointAdvice(now, reason=plan.reason)
    if plan.cost > now.cost * (1 - GAIN):
        return JointAdvice(now, reason=f"nothing saves {GAIN * 100:.0f} % of what today's size costs")
    points = (shared.per_pod, plan.cpu * utilization)
    return JointAdvice(now, plan, _proved(plan, workload, recommendation, known), utilization, points)


def _scaled_by_cpu(workload: Workload, policy: Policy) -> SharedLoad | str:
    """Return the load that decides the count, or why size and count cannot be chosen together."""
    targets = targets_of(workload, policy.horizontal)
    others = [
        target.metric if isinstance(target, Unusable) else str(target.signal)
        for target in targets
        if isinstance(target, Unusable) or carried_at(target, CPU) is None
    ]
    if others:
        return f"its count also follows {' and '.join(others)}, which no CPU request moves"
    if not any(isinstance(target, UtilizationTarget) for target in targets):
        return "no utilization of a CPU request decides its count"
    shared = shared_load(workload, policy.horizontal)
    if shared is None or np.isnan(shared.per_pod):
        return "it is not scaled: it has no HPA, and its policy states no max_replicas"
    return shared


def _stretches(workload: Workload, policy: Policy, demand: DemandSamples) -> list[LoadStretch]:
    """The policy's quantile of each window's peak; empty where nothing is forecast."""
    level, name = policy.horizontal.quantile, workload.id.path
    return [
        LoadStretch((window.until - window.begin) / HOUR, float(np.quantile(window.cpu[window.rows[name]], level)))
        for window in demand.windows
        if name in window.rows
    ]


def _recommended_memory(recommendation: Recommendation) -> float | None:
    """Bytes that are recommended for one pod, else those that it requests."""
    decided = recommendation.resources
    memory = decided.resources.memory_request if isinstance(decided, Resize) else None
    return memory or recommendation.resources_now.memory_request


def _highest_load(usage: PodUsage, row: int) -> float | None:
    """The most cores that one pod has used."""
    cores = usage.cpu[row][np.isfinite(usage.cpu[row])]
    return float(cores.max()) if cores.size and cores.max() > 0 else None


def _model(usage: PodUsage, row: int, memory: float, highest: float) -> PodModel:
    """Use the memory chosen at the highest observed load; it follows the load where its peaks do."""
    cpu, used = (days_of(part[row : row + 1], POINTS_A_DAY) for part in (usage.cpu, usage.memory))
    slope = float(load_share(used.peaks(), cpu.peaks(), used.weights).bytes_per_core[0])
    return PodModel(0.0, max(memory - slope * highest, 0.0), 1.0, min(slope, memory / highest))


def _refusal(workload: Workload, recommendation: Recommendation, known: JointInputs, plan: SizePlan) -> str:
    """Return why the cluster would refuse a plan; empty if it would accept it, or if that is not known."""
    proof = _proved(plan, workload, recommendation, known).proof
    return "" if proof is None or proof.accepted else str(proof.refusals[0])


def _proved(plan: SizePlan, workload: Workload, recommendation: Recommendation, known: JointInputs) -> Advice:
    """Advice with the plan as recommendation: limits keep their ratio to the requests."""
    today = recommendation.resources_now
    sizes = Resources(
        plan.cpu,
        _in_ratio(plan.cpu, today.cpu_request, today.cpu_limit),
        plan.memory,
        _in_ratio(plan.memory, today.memory_request, today.memory_limit),
    )
    decided = Resize(sizes, Reason.SIZED, "chosen together with the count")
    count = Hold(Reason.FITS, "chosen together with the size")
    recommended = replace(recommendation, resources=decided, replicas=count, replicas_now=plan.replicas)
    return advise(workload, recommended, known.cluster, terms=known.terms)


def _in_ratio(request: float, before: float | None, limit: float | None) -> float | None:
    return None if limit is None or not before else request * max(limit / before, 1.0)


def _unknown(*, forecast: bool, memory: float | None, highest: float | None) -> str:
    if not forecast:
        return "its CPU is not forecast"
    if memory is None:
        return "no memory request, and none is recommended"
    return "no CPU request" if highest is not None else "no usage of a pod is known"

"""Advice about requests and limits from a cycle's recommendations, the history behind them, and the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forecaster.demand.capacity import per_pod
from forecaster.demand.fresh import values_of
from forecaster.domain.decision import Recommendation
from forecaster.domain.signal import CPU, MEMORY, PODS
from forecaster.domain.window import FIVE_MINUTES
from forecaster.domain.workload import Resources, TargetType, Workload, WorkloadId
from forecaster.ports import Histories
from forecaster.vertical.admission.advice import Advice, advise
from forecaster.vertical.admission.cluster import Cluster
from forecaster.vertical.admission.context import ROLLED_OUT, ApplyTerms
from forecaster.vertical.recommenders.baselines import KRR, VPA, krr, vpa
from forecaster.vertical.recommenders.live_vpa import LIVE_VPA


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

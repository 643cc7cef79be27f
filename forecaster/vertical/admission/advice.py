"""Advice for one workload: its present and recommended size, the distance between them, and the cluster's answer.

`patch` and `kustomization` write it as a strategic-merge patch a workload and an overlay of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from forecaster.domain.decision import Hold, Recommendation, Resize
from forecaster.domain.workload import ContainerSize, Prices, Resources, Target, Workload, WorkloadId
from forecaster.vertical.admission.cluster import POD, Cluster, requirements_of, split
from forecaster.vertical.admission.context import PART_SIZED, ROLLED_OUT, WHOLE_POD, ApplyTerms, Rollout, as_stated
from forecaster.vertical.admission.proof import Proof, prove
from forecaster.vertical.cluster_rules.resource_list import COMPUTE, MILLI, texts
from forecaster.vertical.recommenders.baselines import Severity, severity_of, worst

if TYPE_CHECKING:
    from forecaster.vertical.admission.context import ProposedRequirements
    from forecaster.vertical.cluster_rules.pod import Pod, Requirements
    from forecaster.vertical.recommenders.baselines import VpaSizes

MIB = 2**20
_DIGITS = 6
"""Digits compared; a rest beyond them comes from double arithmetic."""
AMOUNTS = (("cpu", "cpu_request"), ("cpu", "cpu_limit"), ("memory", "memory_request"), ("memory", "memory_limit"))


def rounded(resources: Resources) -> Resources:
    """Return the resources rounded up; unset ones stay unset."""
    units = (whole_millicores, whole_millicores, whole_mebibytes, whole_mebibytes)
    pairs = zip(resources.amounts, units, strict=True)
    return Resources(*(None if amount is None else up(amount) for amount, up in pairs))


def whole_millicores(value: float) -> float:
    """Cores, up to a whole thousandth."""
    return math.ceil(round(value * 1000, _DIGITS)) / 1000


def whole_mebibytes(value: float) -> float:
    """Bytes, up to a whole mebibyte."""
    return float(-(-math.ceil(round(value, _DIGITS)) // MIB) * MIB)


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommendation for one workload with its proof. Amounts are those of one pod, in cores and bytes."""

    id: WorkloadId
    replicas: int
    now: Resources
    recommended: Resources | None
    """Recommended resources, rounded up; None while the workload is held."""
    reason: str
    message: str
    severity: Severity
    sizes: tuple[ContainerSize, ...] = ()
    """Chosen size of each container, and its risk."""
    targets: tuple[Target, ...] = ()
    """The HPA's utilization targets that go with these sizes; empty where its targets may stay."""
    proof: Proof | None = None
    """None while it holds, or where a pod's sum cannot be split over its containers."""
    unproved: str = ""
    """Reason why there is no proof."""
    made_by: str = ""
    """Object that the workload is made from, and whose controller would take a patch back; empty for none."""
    sidecars: frozenset[str] = frozenset()
    """Containers that are init containers of the template and run beside the others."""
    baselines: Mapping[str, Resources | None] = field(default_factory=dict)
    vpas: tuple[VpaSizes, ...] = ()
    """Recommendations by VPAs of the cluster for the workload."""
    previous: Resources | None = None

    @property
    def values(self) -> ProposedRequirements | None:
        """Requests and limits to write, by container: the proposed ones, or the nearest that the cluster takes."""
        return None if self.proof is None else self.proof.nearest

    @property
    def applied(self) -> Resources | None:
        """Sums of `values`: the resources that one pod would have. None where nothing would be written."""
        return None if self.values is None else sum_of(self.values)

    def cost_a_month(self, resources: Resources, prices: Prices) -> float | None:
        """Monthly cost of its pods; None where a request is not known, and of a CronJob, which runs now and then."""
        return None if self.id.kind == CRON_JOB else prices.a_month(resources, self.replicas)

    @property
    def refused(self) -> bool:
        """The cluster would not take the proposed values."""
        return self.proof is not None and not self.proof.accepted


def advise(
    workload: Workload,
    recommendation: Recommendation,
    cluster: Cluster,
    *,
    memory_usage: float | None = None,
    baselines: Mapping[str, Resources | None] | None = None,
    previous: Resources | None = None,
    terms: ApplyTerms = ROLLED_OUT,
) -> Advice:
    """Return advice from a recommendation and the known facts about the cluster."""
    decided = recommendation.resources
    holding = Advice(
        id=recommendation.id,
        replicas=recommendation.recommended_replicas,
        now=recommendation.resources_now,
        recommended=None,
        reason=str(decided.reason),
        message=decided.message,
        severity=Severity.UNKNOWN,
        baselines=baselines or {},
        vpas=() if baselines is None else cluster.vpas.get(recommendation.id, ()),
        previous=previous,
    )
    if isinstance(decided, Hold):
        return holding
    recommended = rounded(decided.resources)
    # A run of a CronJob is taken to be one pod.
    replicas = 1 if workload.id.kind == CRON_JOB else recommendation.recommended_replicas
    proof, unproved = _proved(workload, decided, replicas, cluster, memory_usage, terms)
    return replace(
        holding,
        recommended=recommended,
        severity=severity_between(recommendation.resources_now, recommended),
        sizes=decided.containers,
        targets=decided.targets,
        proof=proof,
        unproved=unproved,
        made_by=cluster.rollouts.get(workload.id, Rollout()).made_by,
        sidecars=frozenset(_sidecars(cluster.template_of(workload))),
    )


def _sidecars(template: Pod) -> set[str]:
    return {container.name for container in template.init_containers if container.sidecar}


def _proved(
    workload: Workload,
    decided: Resize,
    replicas: int,
    cluster: Cluster,
    memory_usage: float | None,
    terms: ApplyTerms,
) -> tuple[Proof | None, str]:
    named = {size.name: size for size in decided.containers if size.name}
    context = cluster.context_of(
        workload, replicas, memory_usage, {name: size.now for name, size in named.items()}, terms
    )
    running = {container.name for container in context.template.containers} | _sidecars(context.template)
    by_container = _by_container(named, running) or split(rounded(decided.resources), context.template)
    if isinstance(by_container, str):
        return None, by_container
    stated = as_stated(context.template, by_container)
    return (prove(stated, context), "") if stated else (None, PART_SIZED)


def _by_container(named: Mapping[str, ContainerSize], running: set[str]) -> ProposedRequirements:
    """Sizes of the template's containers, without those that only its pods have; none where the names are others."""
    if not (named.keys() <= running or running <= named.keys()):
        return {}
    return {name: requirements_of(rounded(size.recommended)) for name, size in named.items() if name in running}


def severity_between(now: Resources, recommended: Resources) -> Severity:
    """The worst of the four amounts, by KRR's steps: half a core or 500 MiB off is critical."""
    names = [name for name, _ in AMOUNTS]
    return worst([severity_of(*row) for row in zip(names, now.amounts, recommended.amounts, strict=True)])


def moved(before: Resources, after: Resources, share: float) -> bool:
    """Whether an amount changes by more than a share of its former value, appears, or disappears."""
    for old, new in zip(before.amounts, after.amounts, strict=True):
        if old is None or new is None:
            if old is not new:
                return True
        elif round(abs(new - old), _DIGITS) > share * old:
            return True
    return False


def sum_of(values: ProposedRequirements) -> Resources:
    """Return one pod's sums, or its own values as a whole; a limit only where every container has one."""
    values = {WHOLE_POD: values[WHOLE_POD]} if WHOLE_POD in values else values
    sums: list[float | None] = []
    for name in COMPUTE:
        requests = [block.requests[name] for block in values.values() if name in block.requests]
        limits = [block.limits[name] for block in values.values() if name in block.limits]
        sums += [
            sum(requests) / MILLI if requests else None,
            sum(limits) / MILLI if len(limits) == len(values) else None,
        ]
    return Resources(*sums)


CRON_JOB = "CronJob"
API_VERSIONS = {
    CRON_JOB: "batch/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Rollout": "argoproj.io/v1alpha1",
    "StatefulSet": "apps/v1",
}
BASE = "../base"


def patchable(advice: Advice) -> bool:
    """Whether there is something to write, containers are known by name, and no controller writes the template."""
    written = advice.values is not None and advice.id.kind in API_VERSIONS and not advice.made_by
    return written and POD not in (advice.values or {})


def patch(advice: Advice) -> dict[str, Any]:
    """Changes nothing but requests and limits of cpu and memory; a limit that goes away is null, which removes it.

    Sidecars are among the init containers of a template.
    """
    values = advice.values or {}
    names = values.keys() - {WHOLE_POD}
    lists = {"containers": names - advice.sidecars, "initContainers": names & advice.sidecars}
    whole = {"resources": _block(values[WHOLE_POD])} if WHOLE_POD in values else {}
    sized = {
        kind: [{"name": name, "resources": _block(sizes)} for name, sizes in values.items() if name in names]
        for kind, names in lists.items()
        if names
    }
    spec = {"template": {"spec": whole | sized}}
    return {
        "apiVersion": API_VERSIONS[advice.id.kind],
        "kind": advice.id.kind,
        "metadata": {"name": advice.id.name, "namespace": advice.id.namespace},
        "spec": {"jobTemplate": {"spec": spec}} if advice.id.kind == CRON_JOB else spec,
    }


def _block(values: Requirements) -> dict[str, Any]:
    limits: dict[str, str | None] = dict.fromkeys(("cpu", "memory"), None)
    return {"requests": texts(values.requests), "limits": limits | texts(values.limits)}


def file_name(advice: Advice) -> str:
    """Return the file name of a patch: labels of series may hold characters that no object's name has.

    Namespaces and kinds have dashes and no dots, so that no two workloads share a file.
    """
    return f"{advice.id.namespace}.{advice.id.kind.lower()}.{advice.id.name}.yaml".replace("/", "-")


def kustomization(advices: Iterable[Advice], base: str = BASE) -> dict[str, Any]:
    """Return the overlay: the base, and a patch for every workload of it that changes."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [base],
        "patches": [{"path": file_name(advice)} for advice in advices],
    }

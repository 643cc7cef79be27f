"""The documents of `forecaster recommend -o json` and `-o csv`: cores, whole bytes, money at the given prices.

A value that is not known is null, and a text beside it says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from forecaster.domain.workload import ContainerSize, Prices, Resources, WorkloadId
from forecaster.publish.beside import VpaView, vpa_view
from forecaster.publish.views import AMOUNT_FIELDS, AmountsView, RiskView, amounts_view, risk_view
from forecaster.vertical.cluster_rules.resource_list import texts

if TYPE_CHECKING:
    from forecaster.cycle.advice import JointAdvice
    from forecaster.vertical.admission.advice import Advice
    from forecaster.vertical.sizing.joint import SizePlan


class SizedView(msgspec.Struct, frozen=True):
    """`resources` of a container as a manifest spells them."""

    requests: dict[str, str]
    limits: dict[str, str]


class ContainerRisk(msgspec.Struct, frozen=True):
    """One container, or the pod as a whole where its name is null."""

    container: str | None
    recommended: AmountsView | None
    cpu: RiskView | None
    memory: RiskView | None
    message: str


class HpaTarget(msgspec.Struct, frozen=True):
    """A utilization target with which the HPA acts at the same load per pod as before; `value` is a ratio."""

    metric: str
    type: str
    value: float
    container: str
    signal: str


class FindingView(msgspec.Struct, frozen=True):
    """The finding of one rule of the cluster."""

    rule: str
    verdict: str
    message: str


class QosChange(msgspec.Struct, frozen=True):
    """The class of a pod before and after."""

    now: str
    recommended: str


class FreeReplicas(msgspec.Struct, frozen=True):
    """Pods that fit on the nodes there are, pods that wait, and nodes that they wait for; null where not known."""

    fit_now: int
    wait: int
    new_nodes: int | None


class Admission(msgspec.Struct, frozen=True):
    """Whether the cluster takes the size; null where that cannot be known, and `why` says why."""

    accepted: bool | None
    why: str
    findings: list[FindingView]
    qos: QosChange | UnsetType = UNSET
    replicas: FreeReplicas | UnsetType | None = UNSET


class MonthlyCost(msgspec.Struct, frozen=True):
    """Monthly cost of all pods; null where an amount is not known."""

    now: float | None
    recommended: float | None


class SizePlanView(msgspec.Struct, frozen=True):
    """Pods at the peak and at the least, the requests of one, and the cost of the coming day."""

    replicas: int
    least_replicas: int
    cpu_request_cores: float
    memory_request_bytes: int
    cost: float


class JointView(msgspec.Struct, frozen=True):
    """Count and size chosen together; null where there is none, and `reason` says why."""

    now: SizePlanView | None
    plan: SizePlanView | None
    hpa_utilization_ratio: float | None
    scale_point_now_cores: float | None
    scale_point_cores: float | None
    accepted: bool | None
    reason: str


class AdviceView(msgspec.Struct, frozen=True):
    """One workload."""

    namespace: str
    kind: str
    name: str
    replicas: int
    severity: str
    reason: str
    message: str
    now: AmountsView | None
    recommended: AmountsView | None
    containers: dict[str, SizedView] | None
    risks: list[ContainerRisk]
    hpa_targets: list[HpaTarget]
    admission: Admission
    cost_a_month: MonthlyCost | None
    others: dict[str, AmountsView | None]
    vpas: list[VpaView]
    previous: AmountsView | None
    joint: JointView | None = None


class Sum(msgspec.Struct, frozen=True):
    """Sum over all pods; an addition is no negative saving."""

    now: float
    recommended: float
    freed: float
    added: float

    def rounded(self, digits: int) -> Sum:
        """Return the sum with so many digits behind the point."""
        return Sum(*(round(amount, digits) for amount in msgspec.structs.astuple(self)))


class WholeSum(msgspec.Struct, frozen=True):
    """Sum over all pods in whole bytes."""

    now: int
    recommended: int
    freed: int
    added: int


class Totals(msgspec.Struct, frozen=True):
    """Totals of workloads with known present and recommended sizes; no cost where no price was given."""

    workloads: int
    with_a_recommendation: int
    cpu_request_cores: Sum
    memory_request_bytes: WholeSum
    cost_a_month: Sum | None
    without_a_request: int
    """Workloads with a recommendation that request no CPU or no memory today, and so are in no sum of it."""


class AdvicesView(msgspec.Struct, frozen=True):
    """All workloads that were chosen. Without a new version a field may come, and none goes or changes its meaning."""

    schema_version: Literal[1]
    recommendations: list[AdviceView]
    totals: Totals


def document(
    advices: Sequence[Advice], prices: Prices | None, joint: Mapping[WorkloadId, JointAdvice] | None = None
) -> AdvicesView:
    """Return the document of all advice; `read_previous` reads it."""
    views = [_advice(advice, prices, (joint or {}).get(advice.id)) for advice in advices]
    return AdvicesView(1, views, totals(advices, prices))


def _advice(advice: Advice, prices: Prices | None, joint: JointAdvice | None) -> AdviceView:
    values = advice.values
    return AdviceView(
        *advice.id,
        replicas=advice.replicas,
        severity=str(advice.severity),
        reason=advice.reason,
        message=advice.message,
        now=amounts(advice.now),
        recommended=amounts(advice.recommended),
        containers=None
        if values is None
        else {name: SizedView(texts(size.requests), texts(size.limits)) for name, size in values.items()},
        risks=[_container(size) for size in advice.sizes],
        hpa_targets=[
            HpaTarget(target.metric, str(target.type), target.value, target.container, target.signal)
            for target in advice.targets
        ],
        admission=_admission(advice),
        cost_a_month=_cost(advice, prices),
        others={name: amounts(baseline) for name, baseline in advice.baselines.items()},
        vpas=[vpa_view(vpa) for vpa in advice.vpas],
        previous=amounts(advice.previous),
        joint=None if joint is None else _joint(joint),
    )


def _container(size: ContainerSize) -> ContainerRisk:
    risks = risk_view(size.cpu), risk_view(size.memory)
    return ContainerRisk(size.name or None, amounts(size.recommended), *risks, size.message)


def amounts(resources: Resources | None) -> AmountsView | None:
    """Cores and whole bytes; null where none is set."""
    return None if resources is None else amounts_view(resources)


def _admission(advice: Advice) -> Admission:
    proof = advice.proof
    if proof is None:
        return Admission(None, advice.unproved or "nothing is recommended", [])
    free = proof.free
    return Admission(
        proof.accepted,
        "; ".join(str(finding) for finding in proof.refusals),
        [FindingView(finding.rule, str(finding.verdict), finding.message) for finding in proof.findings],
        QosChange(str(proof.qos_before), str(proof.qos_after)),
        None if free is None else FreeReplicas(free.now, free.waiting, free.new_nodes),
    )


def _cost(advice: Advice, prices: Prices | None) -> MonthlyCost | None:
    """Money in cents."""
    if prices is None:
        return None
    costs = (advice.cost_a_month(size, prices) if size else None for size in (advice.now, advice.recommended))
    return MonthlyCost(*(None if cost is None else round(cost, 2) for cost in costs))


def _joint(joint: JointAdvice) -> JointView:
    """Cores, bytes, and costs of the coming day in the prices that were given."""
    return JointView(
        now=_plan(joint.now),
        plan=_plan(joint.plan),
        hpa_utilization_ratio=joint.utilization or None,
        scale_point_now_cores=joint.scale_point[0] or None,
        scale_point_cores=joint.scale_point[1] or None,
        accepted=joint.advice.proof.accepted if joint.advice and joint.advice.proof else None,
        reason=joint.reason,
    )


def _plan(plan: SizePlan | None) -> SizePlanView | None:
    return (
        None if plan is None else SizePlanView(plan.replicas, plan.least, plan.cpu, math.ceil(plan.memory), plan.cost)
    )


def totals(advices: Sequence[Advice], prices: Prices | None) -> Totals:
    """Requests of all pods, where both what is and what should be are known; what is added is no negative saving."""
    known = [advice for advice in advices if advice.recommended is not None]
    costs = [cost for advice in known if (cost := _cost(advice, prices))]
    return Totals(
        len(advices),
        len(known),
        _requested(known, "cpu_request"),
        WholeSum(*map(math.ceil, msgspec.structs.astuple(_requested(known, "memory_request")))),
        None if prices is None else _sum((cost.now, cost.recommended, 1) for cost in costs).rounded(2),
        sum(advice.now.cpu_request is None or advice.now.memory_request is None for advice in known),
    )


def _requested(known: Sequence[Advice], name: str) -> Sum:
    return _sum((getattr(advice.now, name), getattr(advice.recommended, name), advice.replicas) for advice in known)


def _sum(each: Iterable[tuple[float | None, float | None, int]]) -> Sum:
    """Sum amounts now and as recommended, each times its number of pods."""
    both = [(now, then, count) for now, then, count in each if now is not None and then is not None]
    return Sum(
        now=sum(now * count for now, _, count in both),
        recommended=sum(then * count for _, then, count in both),
        freed=sum(max(now - then, 0.0) * count for now, then, count in both),
        added=sum(max(then - now, 0.0) * count for now, then, count in both),
    )


def flat(advice: Advice, prices: Prices | None) -> dict[str, Any]:
    """One row of a CSV file."""
    cost = _cost(advice, prices) or MonthlyCost(None, None)
    others = {
        f"{name}_{public}": _by_name(baseline)[public]
        for name, baseline in advice.baselines.items()
        for public in ("cpu_request_cores", "memory_request_bytes")
    }
    return {
        **advice.id._asdict(),
        "replicas": advice.replicas,
        "severity": str(advice.severity),
        **{f"{public}_now": value for public, value in _by_name(advice.now).items()},
        **_by_name(advice.recommended),
        "cost_a_month_now": cost.now,
        "cost_a_month": cost.recommended,
        "accepted": None if advice.proof is None else advice.proof.accepted,
        "refused_because": "; ".join(str(finding) for finding in advice.proof.refusals) if advice.proof else "",
        **others,
        **{f"previous_{public}": value for public, value in _by_name(advice.previous).items()},
        "reason": advice.reason,
        "message": advice.message,
    }


def _by_name(resources: Resources | None) -> dict[str, float | None]:
    """Amounts by their public names."""
    known: dict[str, float | None] = msgspec.to_builtins(amounts(resources)) or {}
    return {public: known.get(public) for public in AMOUNT_FIELDS.values()}


def read_previous(value: Any) -> dict[WorkloadId, Resources]:
    """Return the recommendations of an earlier document; raises ValueError where it is none."""
    try:
        return {
            WorkloadId(recommendation["namespace"], recommendation["kind"], recommendation["name"]): Resources(
                **{name: recommendation["recommended"][public] for name, public in AMOUNT_FIELDS.items()}
            )
            for recommendation in value["recommendations"]
            if recommendation.get("recommended")
        }
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a document of `forecaster recommend -o json`: {error}") from error


def changes(advice: Advice) -> Mapping[str, tuple[float | None, float | None]]:
    """Amounts that differ from the previous run: before and after; empty without one."""
    if advice.previous is None or advice.recommended is None:
        return {}
    pairs = {name: (getattr(advice.previous, name), getattr(advice.recommended, name)) for name in AMOUNT_FIELDS}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

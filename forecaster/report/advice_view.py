"""Advice as plain values for machines: JSON and CSV have the same numbers, in cores and bytes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from forecaster.domain.workload import Resources, WorkloadId
from forecaster.publish.views import AMOUNT_FIELDS
from forecaster.vertical.cluster_rules.resource_list import texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.cycle.joint_sizes import JointAdvice
    from forecaster.domain.workload import ContainerSize, Risk, Target
    from forecaster.report.advice_document import (
        Admission,
        AdviceDocument,
        AdvicesDocument,
        Amounts,
        Bytes,
        ContainerRisk,
        FreeReplicas,
        HpaTarget,
        JointDocument,
        MonthlyCost,
        Requests,
        RiskDocument,
        SizedView,
        SizePlanDocument,
        Sum,
        Totals,
        VpaContainerDocument,
        VpaDocument,
    )
    from forecaster.vertical.admission.advice import Advice, ResourcePrices
    from forecaster.vertical.admission.proof import Proof
    from forecaster.vertical.recommenders.live_vpa import VpaSizes
    from forecaster.vertical.sizing.joint import SizePlan

Json = dict[str, Any]


def document(
    advices: Sequence[Advice], prices: ResourcePrices | None, joint: Mapping[WorkloadId, JointAdvice] | None = None
) -> AdvicesDocument:
    """All of it; `read_previous` understands it."""
    views = [view(one, prices, (joint or {}).get(one.id)) for one in advices]
    return {"recommendations": views, "totals": totals(advices, prices)}


def view(one: Advice, prices: ResourcePrices | None, joint: JointAdvice | None = None) -> AdviceDocument:
    """One workload. What is not known is null, and a text beside it says why."""
    return {
        "namespace": one.id.namespace,
        "kind": one.id.kind,
        "name": one.id.name,
        "replicas": one.replicas,
        "severity": str(one.severity),
        "reason": one.reason,
        "message": one.message,
        "now": amounts(one.now),
        "recommended": amounts(one.recommended),
        "containers": None if one.values is None else {name: _block(of) for name, of in one.values.items()},
        "risks": [_container(size) for size in one.sizes],
        "hpa_targets": [_target(target) for target in one.targets],
        "admission": _proof(one),
        "cost_a_month": _cost(one, prices),
        "others": {name: amounts(said) for name, said in one.baselines.items()},
        "vpas": [_vpa(of) for of in one.vpas],
        "previous": amounts(one.previous),
        "joint": joint_view(joint),
    }


def _container(size: ContainerSize) -> ContainerRisk:
    """One container: shares of time for CPU, chances that a peak passes for memory, and idle hours; null if unknown."""
    return {
        "container": size.name or None,
        "recommended": amounts(size.recommended),
        "cpu": _risk(size.cpu),
        "memory": _risk(size.memory),
        "message": size.message,
    }


def _risk(one: Risk | None) -> RiskDocument | None:
    if one is None:
        return None
    return {"over_request": one.over_request, "over_limit": one.over_limit, "slack_hours": one.slack_hours}


def _vpa(one: VpaSizes) -> VpaDocument:
    found: list[VpaContainerDocument] = [
        {
            "container": of.container,
            "target": _requests(of.target),
            "lower_bound": _requests(of.lower),
            "upper_bound": _requests(of.upper),
        }
        for of in one.containers
    ]
    return {"name": one.name, "update_mode": one.mode, "containers": found, "message": one.why}


def _requests(one: Resources) -> Requests:
    return {"cpu_request_cores": one.cpu_request, "memory_request_bytes": _whole(one.memory_request)}


def _target(one: Target) -> HpaTarget:
    return {
        "metric": one.metric,
        "type": str(one.type),
        "value": one.value,
        "container": one.container,
        "signal": one.signal,
    }


def amounts(resources: Resources | None) -> Amounts | None:
    """Cores and whole bytes; null where none is set."""
    if resources is None:
        return None
    return {
        "cpu_request_cores": resources.cpu_request,
        "cpu_limit_cores": resources.cpu_limit,
        "memory_request_bytes": _whole(resources.memory_request),
        "memory_limit_bytes": _whole(resources.memory_limit),
    }


def _whole(value: float | None) -> int | None:
    """Bytes, rounded up."""
    return None if value is None else math.ceil(value)


def totals(advices: Sequence[Advice], prices: ResourcePrices | None) -> Totals:
    """Requests of all pods, where both what is and what should be are known; what is added is no negative saving."""
    known = [one for one in advices if one.recommended is not None]
    costs = [cost for one in known if (cost := _cost(one, prices))]
    return {
        "workloads": len(advices),
        "with_a_recommendation": len(known),
        "cpu_request_cores": _requested(known, "cpu_request"),
        "memory_request_bytes": _in_bytes(_requested(known, "memory_request")),
        "cost_a_month": None if prices is None else _money(_sum((one["now"], one["recommended"], 1) for one in costs)),
    }


def _requested(known: Sequence[Advice], name: str) -> Sum:
    return _sum((getattr(one.now, name), getattr(one.recommended, name), one.replicas) for one in known)


def _sum(each: Iterable[tuple[float | None, float | None, int]]) -> Sum:
    """Sum amounts now and as recommended, each times its number of pods."""
    both = [(now, then, count) for now, then, count in each if now is not None and then is not None]
    return {
        "now": sum(now * count for now, _, count in both),
        "recommended": sum(then * count for _, then, count in both),
        "freed": sum(max(now - then, 0.0) * count for now, then, count in both),
        "added": sum(max(then - now, 0.0) * count for now, then, count in both),
    }


def _in_bytes(one: Sum) -> Bytes:
    return {
        "now": math.ceil(one["now"]),
        "recommended": math.ceil(one["recommended"]),
        "freed": math.ceil(one["freed"]),
        "added": math.ceil(one["added"]),
    }


def _money(one: Sum) -> Sum:
    """Return the sum in cents."""
    return {
        "now": round(one["now"], 2),
        "recommended": round(one["recommended"], 2),
        "freed": round(one["freed"], 2),
        "added": round(one["added"], 2),
    }


def _cost(one: Advice, prices: ResourcePrices | None) -> MonthlyCost | None:
    if prices is None:
        return None
    now = prices.a_month(one.now, one.replicas)
    wanted = None if one.recommended is None else prices.a_month(one.recommended, one.replicas)
    return {"now": _cents(now), "recommended": _cents(wanted)}


def _cents(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _block(values: Any) -> SizedView:
    return {"requests": texts(values.requests), "limits": texts(values.limits)}


def _proof(one: Advice) -> Admission:
    if one.proof is None:
        return {"accepted": None, "why": one.unproved or "nothing is recommended", "findings": []}
    return {
        "accepted": one.proof.accepted,
        "why": "; ".join(str(finding) for finding in one.proof.refusals),
        "qos": {"now": str(one.proof.qos_before), "recommended": str(one.proof.qos_after)},
        "replicas": _replicas(one.proof),
        "findings": [
            {"rule": finding.rule, "verdict": str(finding.verdict), "message": finding.message}
            for finding in one.proof.findings
        ],
    }


def _replicas(proof: Proof) -> FreeReplicas | None:
    free = proof.free
    return None if free is None else {"fit_now": free.now, "wait": free.waiting, "new_nodes": free.new_nodes}


def flat(one: Advice, prices: ResourcePrices | None) -> Json:
    """One row of a CSV file."""
    cost = _cost(one, prices) or {"now": None, "recommended": None}
    others = {
        f"{name}_{public}": _amount(said, public)
        for name, said in one.baselines.items()
        for public in ("cpu_request_cores", "memory_request_bytes")
    }
    return {
        **one.id._asdict(),
        "replicas": one.replicas,
        "severity": str(one.severity),
        **{f"{public}_now": _amount(one.now, public) for public in AMOUNT_FIELDS.values()},
        **{public: _amount(one.recommended, public) for public in AMOUNT_FIELDS.values()},
        "cost_a_month_now": cost["now"],
        "cost_a_month": cost["recommended"],
        "accepted": None if one.proof is None else one.proof.accepted,
        "refused_because": "; ".join(str(finding) for finding in one.proof.refusals) if one.proof else "",
        **others,
        **{f"previous_{public}": _amount(one.previous, public) for public in AMOUNT_FIELDS.values()},
        "reason": one.reason,
        "message": one.message,
    }


def _amount(resources: Resources | None, public: str) -> object:
    return dict(amounts(resources) or {}).get(public)


def read_previous(value: Any) -> dict[WorkloadId, Resources]:
    """What an earlier document recommended; raises ValueError where it is none."""
    try:
        return {
            WorkloadId(one["namespace"], one["kind"], one["name"]): Resources(
                **{name: one["recommended"][public] for name, public in AMOUNT_FIELDS.items()}
            )
            for one in value["recommendations"]
            if one.get("recommended")
        }
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a document of `forecaster recommend -o json`: {error}") from error


def changes(one: Advice) -> Mapping[str, tuple[float | None, float | None]]:
    """Amounts that differ from the previous run: before and after; empty without one."""
    if one.previous is None or one.recommended is None:
        return {}
    pairs = {name: (getattr(one.previous, name), getattr(one.recommended, name)) for name in AMOUNT_FIELDS}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def joint_view(one: JointAdvice | None) -> JointDocument | None:
    """Cores, bytes, and costs of the coming day in the prices that were given; null where it was not asked for."""
    if one is None:
        return None
    return {
        "now": _plan(one.now),
        "plan": _plan(one.plan),
        "hpa_utilization_ratio": one.utilization or None,
        "scale_point_now_cores": one.scale_point[0] or None,
        "scale_point_cores": one.scale_point[1] or None,
        "accepted": one.advice.proof.accepted if one.advice and one.advice.proof else None,
        "reason": one.reason,
    }


def _plan(one: SizePlan | None) -> SizePlanDocument | None:
    if one is None:
        return None
    return {
        "replicas": one.replicas,
        "least_replicas": one.least,
        "cpu_request_cores": one.cpu,
        "memory_request_bytes": math.ceil(one.memory),
        "cost": one.cost,
    }

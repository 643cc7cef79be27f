"""Advice as plain values for machines: JSON and CSV have the same numbers, in cores and bytes."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from forecaster.domain.workload import Resources, WorkloadId
from forecaster.publish.views import AMOUNTS
from forecaster.vertical.cluster_rules.resource_list import texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.cycle.joint_sizes import JointAdvice
    from forecaster.domain.workload import ContainerSize
    from forecaster.vertical.admission.advice import Advice, ResourcePrices
    from forecaster.vertical.admission.proof import Proof

Json = dict[str, Any]


def document(
    advices: Sequence[Advice], prices: ResourcePrices | None, joint: Mapping[WorkloadId, JointAdvice] | None = None
) -> Json:
    """All of it; `read_previous` understands it."""
    views = [view(one, prices) | {"joint": joint_view((joint or {}).get(one.id))} for one in advices]
    return {"recommendations": views, "totals": totals(advices, prices)}


def view(one: Advice, prices: ResourcePrices | None) -> Json:
    """One workload. What is not known is null, and a text beside it says why."""
    return {
        **one.id._asdict(),
        "replicas": one.replicas,
        "severity": str(one.severity),
        "reason": one.reason,
        "message": one.message,
        "now": amounts(one.now),
        "recommended": amounts(one.recommended),
        "containers": None if one.values is None else {name: _block(of) for name, of in one.values.items()},
        "risks": [_risk(size) for size in one.sizes],
        "hpa_targets": [asdict(target) for target in one.targets],
        "admission": _proof(one),
        "cost_a_month": _cost(one, prices),
        "others": {name: amounts(said) for name, said in one.baselines.items()},
        "previous": amounts(one.previous),
    }


def _risk(size: ContainerSize) -> Json:
    """One container: shares of time for CPU, chances that a peak passes for memory, and idle hours; null if unknown."""
    return {
        "container": size.name or None,
        "recommended": amounts(size.recommended),
        "cpu": None if size.cpu is None else asdict(size.cpu),
        "memory": None if size.memory is None else asdict(size.memory),
        "message": size.message,
    }


def amounts(resources: Resources | None) -> Json | None:
    """Cores and whole bytes; null where none is set."""
    if resources is None:
        return None
    return {public: _public(resources, name) for name, public in AMOUNTS.items()}


def _public(resources: Resources | None, name: str) -> float | int | None:
    """Whole bytes, rounded up, or cores."""
    value = None if resources is None else getattr(resources, name)
    return math.ceil(value) if value is not None and name.startswith("memory") else value


def totals(advices: Sequence[Advice], prices: ResourcePrices | None) -> Json:
    """Requests of all pods, where both what is and what should be are known; what is added is no negative saving."""
    known = [one for one in advices if one.recommended is not None]
    found: Json = {"workloads": len(advices), "with_a_recommendation": len(known)}
    for name in ("cpu_request", "memory_request"):
        pairs = [(getattr(one.now, name), getattr(one.recommended, name), one.replicas) for one in known]
        both = [(before, after, count) for before, after, count in pairs if before is not None and after is not None]
        public = AMOUNTS[name]
        found[f"{public}_now"] = sum(before * count for before, _, count in both)
        found[public] = sum(after * count for _, after, count in both)
        found[f"{public}_freed"] = sum(max(before - after, 0.0) * count for before, after, count in both)
        found[f"{public}_added"] = sum(max(after - before, 0.0) * count for before, after, count in both)
    if prices is not None:
        costs = [cost for one in known if (cost := _cost(one, prices)) and None not in cost.values()]
        found["cost_a_month_now"] = round(sum(cost["now"] for cost in costs), 2)
        found["cost_a_month"] = round(sum(cost["recommended"] for cost in costs), 2)
        less = [cost["now"] - cost["recommended"] for cost in costs]
        found["cost_a_month_saved"] = round(sum(one for one in less if one > 0), 2)
        found["cost_a_month_added"] = round(-sum(one for one in less if one < 0), 2)
    return found


def _cost(one: Advice, prices: ResourcePrices | None) -> Json | None:
    if prices is None:
        return None
    now = prices.a_month(one.now, one.replicas)
    wanted = None if one.recommended is None else prices.a_month(one.recommended, one.replicas)
    return {"now": _cents(now), "recommended": _cents(wanted)}


def _cents(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _block(values: Any) -> Json:
    return {"requests": texts(values.requests), "limits": texts(values.limits)}


def _proof(one: Advice) -> Json:
    if one.proof is None:
        return {"accepted": None, "why": one.unproved or "nothing is recommended", "findings": []}
    return {
        "accepted": one.proof.accepted,
        "why": "; ".join(str(finding) for finding in one.proof.refusals),
        "qos": {"now": str(one.proof.qos_before), "recommended": str(one.proof.qos_after)},
        "replicas": _replicas(one.proof),
        "findings": [finding._asdict() for finding in one.proof.findings],
    }


def _replicas(proof: Proof) -> Json | None:
    free = proof.free
    return None if free is None else {"fit_now": free.now, "wait": free.waiting, "new_nodes": free.new_nodes}


def flat(one: Advice, prices: ResourcePrices | None) -> Json:
    """One row of a CSV file."""
    cost = _cost(one, prices) or {"now": None, "recommended": None}
    others = {
        f"{name}_{AMOUNTS[amount]}": _public(said, amount)
        for name, said in one.baselines.items()
        for amount in ("cpu_request", "memory_request")
    }
    return {
        **one.id._asdict(),
        "replicas": one.replicas,
        "severity": str(one.severity),
        **{f"{public}_now": _public(one.now, name) for name, public in AMOUNTS.items()},
        **{public: _public(one.recommended, name) for name, public in AMOUNTS.items()},
        "cost_a_month_now": cost["now"],
        "cost_a_month": cost["recommended"],
        "accepted": None if one.proof is None else one.proof.accepted,
        "refused_because": "; ".join(str(finding) for finding in one.proof.refusals) if one.proof else "",
        **others,
        **{f"previous_{public}": _public(one.previous, name) for name, public in AMOUNTS.items()},
        "reason": one.reason,
        "message": one.message,
    }


def read_previous(value: Any) -> dict[WorkloadId, Resources]:
    """What an earlier document recommended; raises ValueError where it is none."""
    try:
        return {
            WorkloadId(one["namespace"], one["kind"], one["name"]): Resources(
                **{name: one["recommended"][public] for name, public in AMOUNTS.items()}
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
    pairs = {name: (getattr(one.previous, name), getattr(one.recommended, name)) for name in AMOUNTS}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def joint_view(one: JointAdvice | None) -> dict[str, Any] | None:
    """Cores, bytes, and costs of the coming day in the prices that were given; null where it was not asked for."""
    if one is None:
        return None
    return {
        "now": None if one.now is None else one.now._asdict(),
        "plan": None if one.plan is None else one.plan._asdict(),
        "hpa_utilization": one.utilization or None,
        "scale_point_now": one.scale_point[0] or None,
        "scale_point": one.scale_point[1] or None,
        "accepted": one.advice.proof.accepted if one.advice and one.advice.proof else None,
        "reason": one.reason,
    }

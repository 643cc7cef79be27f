"""Replicas and size chosen together, in lines for people and in numbers for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forecaster.domain.amounts import amount
from forecaster.domain.signal import Signal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.cycle.joint import JointAdvice
    from forecaster.domain.workload import WorkloadId
    from forecaster.vertical.joint import Plan


def joint_lines(found: Iterable[tuple[WorkloadId, JointAdvice]]) -> list[str]:
    """One paragraph for each workload."""
    return [f"{id_}: {joint_line(one)}" for id_, one in found]


def joint_line(one: JointAdvice) -> str:
    """`4 to 9 pods of 700m and 1Gi ...`, or why size and count stay as they are."""
    if one.plan is None or one.now is None:
        return f"count and size are not changed together: {one.reason}"
    before, after = (amount(point, Signal.CPU) for point in one.scale_point)
    saved = 1 - one.plan.cost / one.now.cost
    return (
        f"{_pods(one.plan)} instead of {_pods(one.now)} over the coming day, {_percent(saved)} cheaper; the HPA's "
        f"target stays {_percent(one.utilization)} and acts at {after} a pod instead of {before}; {_cluster(one)}"
    )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _pods(plan: Plan) -> str:
    count = str(plan.replicas) if plan.least == plan.replicas else f"{plan.least} to {plan.replicas}"
    return f"{count} pods of {amount(plan.cpu, Signal.CPU)} and {amount(plan.memory, Signal.MEMORY)}"


def _cluster(one: JointAdvice) -> str:
    advice = one.advice
    if advice is None or advice.proof is None:
        return f"not proved: {advice.unproved if advice else 'nothing is known of the cluster'}"
    return "the cluster accepts it"


def joint_view(one: JointAdvice | None) -> dict[str, Any] | None:
    """Cores, bytes, and costs of the coming day in the prices that were given; null where nobody asked."""
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

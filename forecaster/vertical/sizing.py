"""Requests and limits from what one pod used: a quantile of the coming day plus a margin.

The coming day is taken to be like the most demanding of the last seven days at that quantile, so a weekly peak is
remembered for a week. Each resource is sized alone; one that cannot be sized keeps what it has, with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.decision import Hold, Reason, Resize
from forecaster.domain.workload import Resources, TargetType

if TYPE_CHECKING:
    from forecaster.domain.policy import VerticalPolicy
    from forecaster.domain.workload import Workload


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What one pod used, at the policy's quantiles, on the most demanding day; None where nothing is known.

    `days` is how much history stands behind it.
    """

    cpu: float | None
    memory: float | None
    days: float


NO_USAGE = PodUsage(None, None, 0.0)
LEAST_DAYS = 1.0


class _Sized(NamedTuple):
    """A request and limit, and in words how they came about."""

    request: float | None
    limit: float | None
    message: str
    changed: bool


def size(workload: Workload, usage: PodUsage, policy: VerticalPolicy) -> Resize | Hold:
    """Requests and limits per pod for the coming day."""
    if usage.cpu is None and usage.memory is None:
        return Hold(Reason.NO_DATA, "no usage per pod is known yet")
    if usage.days < LEAST_DAYS:
        return Hold(Reason.SHORT_HISTORY, f"{usage.days * 24:.1f} h of usage per pod; a day is the least")
    cpu, memory = _cpu(workload, usage.cpu, policy), _memory(workload, usage.memory, policy)
    message = f"cpu: {cpu.message}; memory: {memory.message}"
    if not (cpu.changed or memory.changed):
        return Hold(Reason.SCALED_BY_SIZE, message)
    return Resize(Resources(cpu.request, cpu.limit, memory.request, memory.limit), Reason.SIZED, message)


def _cpu(workload: Workload, used: float | None, policy: VerticalPolicy) -> _Sized:
    now = workload.resources
    if used is None:
        return _Sized(now.cpu_request, now.cpu_limit, "no usage known, kept", changed=False)
    if scales_on_utilization(workload, "cpu"):
        return _Sized(now.cpu_request, now.cpu_limit, "kept, the HPA acts on its utilization", changed=False)
    request = max(used * (1 + policy.margin), policy.min_cpu)
    limit = _in_ratio(request, now.cpu_request, now.cpu_limit) if policy.cpu_limit == "keep-ratio" else None
    return _Sized(request, limit, _clause(used, policy.cpu_quantile, policy.margin, "{:.3g} cores"), changed=True)


def _memory(workload: Workload, used: float | None, policy: VerticalPolicy) -> _Sized:
    now = workload.resources
    if used is None:
        return _Sized(now.memory_request, now.memory_limit, "no usage known, kept", changed=False)
    if scales_on_utilization(workload, "memory"):
        return _Sized(now.memory_request, now.memory_limit, "kept, the HPA acts on its utilization", changed=False)
    request = max(used * (1 + policy.margin), policy.min_memory)
    limits = {
        "request": request,
        "keep-ratio": _in_ratio(request, now.memory_request, now.memory_limit),
        "none": None,
    }
    message = _clause(used / 2**20, policy.memory_quantile, policy.margin, "{:.4g} Mi")
    return _Sized(request, limits[policy.memory_limit], message, changed=True)


def scales_on_utilization(workload: Workload, metric: str) -> bool:
    """Whether an HPA acts on a share of this request, so that a new request would move the point at which it acts."""
    targets = workload.autoscaler.targets if workload.autoscaler else ()
    return any(target.metric == metric and target.type is TargetType.UTILIZATION for target in targets)


def _in_ratio(request: float, old_request: float | None, old_limit: float | None) -> float | None:
    """The limit in today's ratio to the request; none where there is none today."""
    if not old_request or old_limit is None:
        return None
    return request * max(old_limit / old_request, 1.0)


def _clause(used: float, quantile: float, margin: float, amount: str) -> str:
    rank = "peak" if quantile == 1 else f"p{quantile * 100:g}"
    return f"{rank} of one pod on the most demanding of seven days {amount.format(used)} + {margin * 100:g} %"

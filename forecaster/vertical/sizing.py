"""Requests and limits from what one pod used: a quantile of the coming day plus a margin.

The coming day is taken to be like the most demanding of the last seven days at that quantile, so a weekly peak is
remembered for a week. Each resource is sized alone; one that cannot be sized keeps what it has, with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from forecaster.domain.amounts import amount
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


LimitRule = Literal["request", "keep-ratio", "none"]
NO_USAGE = PodUsage(None, None, 0.0)
LEAST_DAYS = 1.0


class _Rule(NamedTuple):
    """What the policy says about one resource."""

    metric: str
    quantile: float
    margin: float
    least: float
    limit: LimitRule


class _Sized(NamedTuple):
    """Request and limit of one resource, and in words how they came about; `kept` when they are today's."""

    request: float | None
    limit: float | None
    message: str
    kept: bool = False


def size(workload: Workload, usage: PodUsage, policy: VerticalPolicy) -> Resize | Hold:
    """Requests and limits per pod for the coming day."""
    if usage.cpu is None and usage.memory is None:
        return Hold(Reason.NO_DATA, "no usage per pod is known yet")
    if usage.days < LEAST_DAYS:
        return Hold(Reason.SHORT_HISTORY, f"{usage.days * 24:.1f} h of usage per pod; a day is the least")
    now = workload.resources
    cpu_rule = _Rule("cpu", policy.cpu_quantile, policy.margin, policy.min_cpu, policy.cpu_limit)
    memory_rule = _Rule("memory", policy.memory_quantile, policy.margin, policy.min_memory, policy.memory_limit)
    cpu = _size_one(cpu_rule, usage.cpu, workload, now.cpu_request, now.cpu_limit)
    memory = _size_one(memory_rule, usage.memory, workload, now.memory_request, now.memory_limit)
    message = f"cpu: {cpu.message}; memory: {memory.message}"
    if cpu.kept and memory.kept:
        return Hold(Reason.SCALED_BY_SIZE, message)
    return Resize(Resources(cpu.request, cpu.limit, memory.request, memory.limit), Reason.SIZED, message)


def _size_one(
    rule: _Rule, used: float | None, workload: Workload, request: float | None, limit: float | None
) -> _Sized:
    if used is None:
        return _Sized(request, limit, "no usage known, kept", kept=True)
    if scales_on_utilization(workload, rule.metric):
        return _Sized(request, limit, "kept, the HPA acts on its utilization", kept=True)
    wanted = max(used * (1 + rule.margin), rule.least)
    return _Sized(wanted, _limit(rule.limit, wanted, request, limit), _clause(rule, used))


def scales_on_utilization(workload: Workload, metric: str) -> bool:
    """Whether an HPA acts on a share of this request, so that a new request would move the point at which it acts."""
    targets = workload.autoscaler.targets if workload.autoscaler else ()
    return any(target.metric == metric and target.type is TargetType.UTILIZATION for target in targets)


def _limit(rule: LimitRule, wanted: float, request: float | None, limit: float | None) -> float | None:
    """The limit that goes with the wanted request, from today's request and limit; None for no limit."""
    match rule:
        case "request":
            return wanted
        case "keep-ratio":
            return wanted * max(limit / request, 1.0) if request and limit is not None else None
        case "none":
            return None


def _clause(rule: _Rule, used: float) -> str:
    rank = "peak" if rule.quantile == 1 else f"p{rule.quantile * 100:g}"
    pod = f"one pod on the most demanding of seven days {amount(used, rule.metric)}"
    raised = f", at least {amount(rule.least, rule.metric)}" if used * (1 + rule.margin) < rule.least else ""
    return f"{rank} of {pod} + {rule.margin * 100:g} %{raised}"

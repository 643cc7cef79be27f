"""Requests and limits of a workload's containers from their chosen sizes, in numbers and in words.

Each resource of each container is sized alone; one that cannot be sized keeps what it has, with a reason.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from math import isclose
from typing import NamedTuple

from forecaster.domain.amounts import duration_text, resource_amount
from forecaster.domain.decision import Hold, Reason, Resize
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.window import DAY
from forecaster.domain.workload import (
    Autoscaler,
    ContainerSize,
    Resources,
    Risk,
    Target,
    TargetType,
    Workload,
    WorkloadId,
    sum_if_all,
    total,
)
from forecaster.vertical.sizing.containers import OWN_DAYS, ContainerSizing, PodSizing
from forecaster.vertical.sizing.memory import Mechanism

_YEAR = timedelta(days=365)
_ROUNDED = 0.05
"""OOM kills a year above one that are still said to be one."""
_MIN_CHANGE = 0.05
"""Smallest change of a pod's load, as a ratio, that is mentioned."""
_BECAUSE = {
    Mechanism.STEADY: "",
    Mechanism.LEAK: ", its lows rise day by day since the last restart",
    Mechanism.CACHE: ", it fills its limit without being killed: a cache, and usage does not show its need",
    Mechanism.LOAD: ", it follows the load",
}


def size(workload: Workload, sizing: PodSizing, policy: VerticalPolicy) -> Resize | Hold:
    """Requests and limits per pod until the next change, or why they stay."""
    known = [each for each in sizing if any(each.of(name) and each.knows(name) for name in ("cpu", "memory"))]
    if not known:
        return _not_known(sizing)
    beside = beside_hpa(workload, tuple(container for container in sizing if container.runs), policy)
    sized = [_sized(container, beside, policy.horizon) for container in sizing]
    message = "; ".join(size.message if len(sized) == 1 else f"{size.name}: {size.message}" for size in sized)
    containers = tuple(each for container, each in zip(sizing, sized, strict=True) if container.runs)
    if all(size.recommended == size.now for size in containers):
        acted_on = bool(utilization_targets(workload)) and policy.beside_hpa == "keep"
        return Hold(Reason.SCALED_BY_SIZE if acted_on else Reason.FITS, message)
    return Resize(total(size.recommended for size in containers), Reason.SIZED, message, containers, beside.targets)


class _Entry(NamedTuple):
    """Inputs of a decision, and the decision."""

    autoscaler: Autoscaler | None
    sizing: PodSizing
    policy: VerticalPolicy
    answer: Resize | Hold


@dataclass(slots=True)
class SizeCache:
    """Decisions of `size`, computed again only for a workload of which an input has changed."""

    entries: dict[WorkloadId, _Entry] = field(default_factory=dict)

    def size(self, workload: Workload, sizing: PodSizing, policy: VerticalPolicy) -> Resize | Hold:
        """Return the same as `size` for these arguments, computed once."""
        before = self.entries.get(workload.id)
        if (
            before is not None
            and before.sizing is sizing
            and before.policy is policy
            and before.autoscaler == workload.autoscaler
        ):
            return before.answer
        answer = size(workload, sizing, policy)
        self.entries[workload.id] = _Entry(workload.autoscaler, sizing, policy, answer)
        return answer

    def forget_others(self, ids: Container[WorkloadId]) -> None:
        """Keep only the decisions of these workloads."""
        self.entries = {id_: entry for id_, entry in self.entries.items() if id_ in ids}


def _why_no_size(metric: str, container: ContainerSizing, beside: BesideHpa) -> str:
    if container.of(metric) is None:
        return "no usage known, unchanged"
    if metric in beside.stay:
        return "unchanged, the HPA acts on its utilization"
    return "" if container.knows(metric) else f"{container.days * 24:.1f} h of usage, unchanged; it takes a day"


def _sized(container: ContainerSizing, beside: BesideHpa, horizon: timedelta) -> ContainerSize:
    cpu, cpu_said = _resource("cpu", container, beside, horizon)
    memory, memory_said = _resource("memory", container, beside, horizon)
    now = container.now.amounts
    chosen = Resources(*(cpu or now[:2]), *(memory or now[2:]))
    return ContainerSize(
        container.name,
        container.now,
        chosen,
        _risk("cpu", container, beside, horizon),
        _risk("memory", container, beside, horizon),
        container.note or f"cpu: {cpu_said}; memory: {memory_said}",
        tuple(resource for resource in ("cpu", "memory") if _why_no_size(resource, container, beside)),
    )


def _resource(
    metric: str, container: ContainerSizing, beside: BesideHpa, horizon: timedelta
) -> tuple[tuple[float, float | None] | None, str]:
    """Request and limit, None for today's, and how they came about."""
    sized, why = container.of(metric), _why_no_size(metric, container, beside)
    if sized is None or why:
        return None, why
    factor = beside.factors.get(metric, 1.0)
    if factor != 1:
        limit = None if sized.limit is None else sized.limit * factor
        chosen, nearest = resource_amount(sized.request, metric), resource_amount(sized.request * factor, metric)
        return (sized.request * factor, limit), f"{nearest}, nearest to {chosen} that keeps the HPA's scale point"
    if metric in container.explained:
        text = f"{resource_amount(sized.request, metric)}, {container.explained[metric]}"
        return (None, f"{text}; kept") if sized.unchanged else ((sized.request, sized.limit), text)
    text = clause(metric, sized.request, sized.over_request, sized.over_limit, sized.mechanism, horizon)
    if metric == "cpu" or sized.mechanism is Mechanism.LOAD:
        text += load_clause(container.load_ratio)
    return (None, f"{text}; kept") if sized.unchanged else ((sized.request, sized.limit), text)


def _not_known(sizing: PodSizing) -> Hold:
    longest = max((container.days for container in sizing), default=0.0)
    notes = [container.note for container in sizing if container.note]
    if longest:
        return Hold(Reason.SHORT_HISTORY, "; ".join([f"{longest * 24:.1f} h of usage; a day is the least", *notes]))
    return Hold(Reason.NO_DATA, "; ".join(dict.fromkeys(notes)) or "no usage per pod is known yet")


def _risk(metric: str, container: ContainerSizing, beside: BesideHpa, horizon: timedelta) -> Risk | None:
    """None also where the size is another than that of which the risk is known."""
    sized = container.of(metric)
    if sized is None or beside.factors.get(metric, 1.0) != 1 or container.days < OWN_DAYS:
        return None
    slack_hours = sized.slack * horizon.total_seconds() / 3600
    bound = sized.over_request if sized.over_limit is None else sized.over_limit
    kills = None if metric == "cpu" or bound is None or sized.mechanism is Mechanism.CACHE else _kills(bound, horizon)
    return Risk(sized.over_request, sized.over_limit, slack_hours, kills)


def clause(
    metric: str,
    request: float,
    over_request: float | None,
    over_limit: float | None,
    mechanism: Mechanism,
    horizon: timedelta,
) -> str:
    """`400m, 4 % of the coming 24h above it`, or the chance of a peak for memory."""
    span = duration_text(horizon)
    if metric == "cpu":
        return f"{resource_amount(request, metric)}, {share_text(over_request)} of the coming {span} above it"
    bound = over_request if over_limit is None else over_limit
    subject = "it" if over_limit is None or over_limit == over_request else "its limit"
    risk = f"a {share_text(bound)} chance that a peak of the coming {span} passes {subject}"
    if mechanism is not Mechanism.CACHE and bound is not None:
        a_year = _kills(bound, horizon)
        few = a_year <= 1 + _ROUNDED
        risk += ": at most one OOM kill a year" if few else f": an OOM kill once in {_YEAR / DAY / a_year:.0f} days"
    return f"{resource_amount(request, metric)}, {risk}{_BECAUSE[mechanism]}"


def _kills(chance: float, horizon: timedelta) -> float:
    """OOM kills that are expected in a year at this chance of one within the horizon."""
    return chance * (_YEAR / max(horizon, DAY))


def load_clause(ratio: float) -> str:
    """Say how the forecast changed a size; empty where the load is about that of past days."""
    if abs(ratio - 1) < _MIN_CHANGE:
        return ""
    return f", for the load of a pod is forecast {ratio:.2g} times that of the days it was learned from"


def share_text(share: float | None) -> str:
    """Return a ratio as a percentage of two digits."""
    if share is None:
        return "no known share"
    return f"{share * 100:.0f} %" if share >= 0.1 else f"{share * 100:.2g} %"  # noqa: PLR2004  two digits either way


# Beside an HPA on the same request the load per pod at which it acts stays while the request changes: its utilization
# target is a share of the request. A vertical rule that sets the request from usage which the HPA holds at a share of
# that very request shrinks it again and again; a rule that keeps `request * target` cannot. spec/vertical.md §6.12.


MIN_TARGET, MAX_TARGET = 0.5, 0.9
"""Targets that are still sensible, as ratios: a higher one leaves no time to react, a lower one is slack."""


@dataclass(frozen=True, slots=True)
class BesideHpa:
    """Effect of an HPA on the same request: resources that stay, and its new targets."""

    stay: frozenset[str] = frozenset()
    factors: Mapping[str, float] = field(default_factory=dict)
    """Factors by resource on requests and limits that were chosen."""
    targets: tuple[Target, ...] = ()


def beside_hpa(workload: Workload, sizing: PodSizing, policy: VerticalPolicy) -> BesideHpa:
    """Request and target change together only where the size of every container that requests something is known."""
    targets = utilization_targets(workload)
    stay = frozenset(targets) if policy.beside_hpa == "keep" else of_containers(workload)
    results = {name: _changed_together(sizing, name, target) for name, target in targets.items() if name not in stay}
    changed = {metric: change for metric, change in results.items() if change is not None}
    return BesideHpa(
        frozenset(targets.keys() - changed.keys()),
        {metric: factor for metric, (factor, _) in changed.items()},
        tuple(target for _, target in changed.values()),
    )


def _changed_together(sizing: PodSizing, metric: str, target: float) -> tuple[float, Target] | None:
    """Return the factor on the chosen size, and the new target; None where neither may or need change."""
    stated = [container for container in sizing if container.now.request(metric)]
    now = sum_if_all(container.now.request(metric) for container in stated)
    chosen = sum_if_all(_chosen_request(container, metric) for container in stated)
    if not now or not chosen:
        return None
    request, new_target = request_beside_hpa(now, target, chosen)
    return None if isclose(request, now) else (request / chosen, Target(metric, TargetType.UTILIZATION, new_target))


def utilization_targets(workload: Workload) -> dict[str, float]:
    """Targets by resource of an HPA on shares of a request: a new request would move the point at which it acts."""
    targets = workload.autoscaler.targets if workload.autoscaler else ()
    return {target.metric: target.value for target in targets if target.type is TargetType.UTILIZATION}


def of_containers(workload: Workload) -> frozenset[str]:
    """Resources of which an HPA looks at one container: what that one requests is no share of the sum."""
    targets = workload.autoscaler.targets if workload.autoscaler else ()
    return frozenset(target.metric for target in targets if target.container)


def request_beside_hpa(request: float, target: float, desired: float) -> tuple[float, float]:
    """Return the request nearest to the desired one, and its target, that keep the scale point exactly.

    The scale point `request * target` stays what the owner of the HPA stated, so requests lie between it and twice it
    however often this is repeated: there is nothing that could shrink on and on.
    """
    point = request * target
    new_request = min(max(desired, point / MAX_TARGET), point / MIN_TARGET)
    return new_request, point / new_request


def _chosen_request(container: ContainerSizing, metric: str) -> float | None:
    sized = container.of(metric)
    return None if sized is None or not container.knows(metric) else sized.request

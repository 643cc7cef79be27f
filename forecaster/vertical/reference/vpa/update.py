"""Whether a pod is taken into the queue of updates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from forecaster.vertical.reference.vpa.observer import OOM_KILLED
from forecaster.vertical.reference.vpa.policy import NO_POLICY, OFF, ContainerPolicy, policy_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.domain.quantity import Quantity
    from forecaster.vertical.reference.vpa.lists import Container, Recommended
    from forecaster.vertical.reference.vpa.priority import Priority


@dataclass(frozen=True, slots=True)
class UpdateRules:
    """The updater's thresholds."""

    least_change: float = 0.1
    least_age: timedelta = timedelta(hours=12)
    quick_oom: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class LastTermination:
    """How a container of the pod last ended."""

    container: str
    reason: str
    ran: timedelta
    ended_ago: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class EvictionRequirement:
    """A direction in which one of these resources has to move."""

    resources: tuple[str, ...]
    direction: str


def accepts(priority: Priority, age: timedelta | None, rules: UpdateRules, *, quick_oom: bool) -> bool:
    """Outside its range, killed soon after its start, or old enough and far enough from its target."""
    if quick_oom and priority.difference == 0:
        return False
    if priority.outside or quick_oom:
        return True
    return age is not None and age >= rules.least_age and priority.difference >= rules.least_change


def is_quick_oom(
    ended: LastTermination | None,
    observed: frozenset[str] | None,
    policies: Sequence[ContainerPolicy],
    rules: UpdateRules,
) -> bool:
    """Whether the container was killed for memory lately and soon after it began, and is the VPA's to change."""
    if ended is None or ended.reason != OOM_KILLED:
        return False
    known = observed is None or ended.container in observed
    managed = (policy_of(ended.container, policies) or NO_POLICY).mode != OFF
    return known and managed and max(ended.ran, ended.ended_ago) < rules.quick_oom


def retries(last_attempt: Sequence[Recommended] | None, recommendation: Sequence[Recommended] | None) -> bool:
    """After an attempt that no node could satisfy: only if a target of a container has become lower since."""
    if last_attempt is None or recommendation is None:
        return False
    before = {one.container: one.target or {} for one in last_attempt}
    return any(
        name in before.get(one.container, {}) and target.nano < before[one.container][name].nano
        for one in recommendation
        for name, target in (one.target or {}).items()
    )


def may_evict(
    containers: Sequence[Container],
    recommendation: Sequence[Recommended],
    requirements: Sequence[EvictionRequirement] | None,
) -> bool:
    """Whether a container lacks a request or satisfies every requirement; None is no requirement for this pod."""
    if requirements is None:
        return True
    by_name = {one.container: one for one in recommendation}
    return any(_admitted(one, by_name[one.name], requirements) for one in containers if one.name in by_name)


def _admitted(container: Container, one: Recommended, requirements: Sequence[EvictionRequirement]) -> bool:
    requests = container.has.requests
    if "cpu" not in requests or "memory" not in requests:
        return True
    target = one.target or {}
    return all(
        any(_moves(requests.get(name), target.get(name), each.direction) for name in each.resources)
        for each in requirements
    )


def _moves(request: Quantity | None, target: Quantity | None, direction: str) -> bool:
    before, after = (request.nano if request else 0), (target.nano if target else 0)
    return after > before if direction == "TargetHigherThanRequests" else after < before

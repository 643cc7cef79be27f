"""OOM kills as the VPA observes them, and which pods its updater takes (spec/vertical.md §1.7, §1.15)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from forecaster.domain.quantity import QuantityError, parse_quantity
from tests.oracles.vpa_capping import NO_POLICY, OFF, ContainerPolicy, policy_of
from tests.oracles.vpa_resources import milli, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from forecaster.domain.quantity import Quantity
    from tests.oracles.vpa_resources import Container, Recommended, ResourceList

OOM_KILLED = "OOMKilled"
_MEMORY = "memory"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_SEPARATOR = ", "


@dataclass(frozen=True, slots=True)
class Termination:
    """End of a container: its reason and time."""

    reason: str
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """One container's status at one time. `memory_request` in bytes: the reported one, else the specified, else 0."""

    name: str
    memory_request: int = 0
    restarts: int = 0
    running: bool = False
    terminated: Termination | None = None
    last_terminated: Termination | None = None


@dataclass(frozen=True, slots=True)
class OomKill:
    """A container that was killed, and the memory that did not suffice, in bytes."""

    container: str
    memory: int
    at: datetime | None


def oom_of_update(old: ContainerStatus, new: ContainerStatus) -> OomKill | None:
    """The OOM kill that an update shows for the first time, if it shows one."""
    restarted = new.restarts > old.restarts
    ended, before = new.terminated, new.last_terminated
    if ended and ended.reason == OOM_KILLED and (restarted or old.terminated is None):
        return OomKill(new.name, new.memory_request, ended.finished_at)
    if before and before.reason == OOM_KILLED and restarted and old.running and new.running:
        return OomKill(new.name, old.memory_request, before.finished_at)
    return None


def ooms_of_eviction(annotations: Mapping[str, str], created: datetime) -> list[OomKill]:
    """Containers that an eviction event names as offending for want of memory; unreadable entries are left out."""
    keys = ("offending_containers", "offending_containers_usage", "starved_resource")
    if any(key not in annotations for key in keys):
        return []
    containers, usages, resources = (annotations[key].split(",") for key in keys)
    if not len(containers) == len(usages) == len(resources):
        return []
    starved = [
        (container, _bytes(usage))
        for container, usage, resource in zip(containers, usages, resources, strict=True)
        if resource == _MEMORY
    ]
    return [OomKill(container, memory, created) for container, memory in starved if memory is not None]


def _bytes(text: str) -> int | None:
    try:
        return whole(parse_quantity(text))
    except QuantityError:
        return None


@dataclass(frozen=True, slots=True)
class Priority:
    """Whether a request is outside the recommended range, whether anything grows, and by how much all of it moves."""

    outside: bool = False
    scale_up: bool = False
    difference: float = 0.0
    """Relative, summed over resources."""


def observed_containers(annotation: str | None) -> frozenset[str] | None:
    """The containers that the webhook saw; None, for all, without the annotation or with one that is malformed."""
    if annotation is None:
        return None
    names = annotation.split(_SEPARATOR) if annotation else []
    return frozenset(names) if all(_LABEL.fullmatch(name) for name in names) else None


def priority_of(
    containers: Sequence[Container], recommendation: Sequence[Recommended], observed: frozenset[str] | None
) -> Priority:
    """Priority over the observed containers that have a recommendation."""
    by_name = {part.container: part for part in recommendation}
    pairs = [
        (container.has.requests, by_name[container.name])
        for container in containers
        if container.name in by_name and (observed is None or container.name in observed)
    ]
    return Priority(
        any(_outside(requests, part) for requests, part in pairs),
        any(
            request is None or milli(target) > milli(request)
            for requests, part in pairs
            for request, target in _targets(requests, part)
        ),
        _difference(pairs),
    )


def in_order(priorities: Mapping[str, Priority]) -> list[str]:
    """Names of pods, the most urgent first: those that grow, then the larger difference."""
    return sorted(priorities, key=lambda name: (not priorities[name].scale_up, -priorities[name].difference))


def _targets(requests: ResourceList, part: Recommended) -> Iterator[tuple[Quantity | None, Quantity]]:
    return ((requests.get(name), target) for name, target in (part.target or {}).items())


def _outside(requests: ResourceList, part: Recommended) -> bool:
    return any(
        name not in requests or _beyond(requests[name], (part.lower or {}).get(name), (part.upper or {}).get(name))
        for name in part.target or {}
    )


def _beyond(request: Quantity, lower: Quantity | None, upper: Quantity | None) -> bool:
    below = lower is not None and request.nano < lower.nano
    return below or (upper is not None and request.nano > upper.nano)


def _difference(pairs: Sequence[tuple[ResourceList, Recommended]]) -> float:
    requested: dict[str, int] = {}
    targets: dict[str, int] = {}
    for requests, part in pairs:
        for name, target in (part.target or {}).items():
            targets[name] = targets.get(name, 0) + milli(target)
            requested[name] = requested.get(name, 0) + (milli(requests[name]) if name in requests else 0)
    return sum(
        abs(max(float(requested[name]), 1.0) - targets[name]) / max(float(requested[name]), 1.0) for name in targets
    )


@dataclass(frozen=True, slots=True)
class UpdateRules:
    """The updater's thresholds."""

    least_change: float = 0.1
    least_age: timedelta = timedelta(hours=12)
    quick_oom: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class LastTermination:
    """Last termination of a container of the pod."""

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
    """Whether an attempt that fitted no node is repeated: only if a container's target has become lower since."""
    if last_attempt is None or recommendation is None:
        return False
    before = {part.container: part.target or {} for part in last_attempt}
    return any(
        name in before.get(part.container, {}) and target.nano < before[part.container][name].nano
        for part in recommendation
        for name, target in (part.target or {}).items()
    )


def may_evict(
    containers: Sequence[Container],
    recommendation: Sequence[Recommended],
    requirements: Sequence[EvictionRequirement] | None,
) -> bool:
    """Whether a container lacks a request or satisfies every requirement; None is no requirement for this pod."""
    if requirements is None:
        return True
    by_name = {part.container: part for part in recommendation}
    return any(
        _admitted(container, by_name[container.name], requirements)
        for container in containers
        if container.name in by_name
    )


def _admitted(container: Container, part: Recommended, requirements: Sequence[EvictionRequirement]) -> bool:
    requests = container.has.requests
    if "cpu" not in requests or "memory" not in requests:
        return True
    target = part.target or {}
    return all(
        any(_moves(requests.get(name), target.get(name), each.direction) for name in each.resources)
        for each in requirements
    )


def _moves(request: Quantity | None, target: Quantity | None, direction: str) -> bool:
    before, after = (request.nano if request else 0), (target.nano if target else 0)
    return after > before if direction == "TargetHigherThanRequests" else after < before

"""A stored recommendation adjusted to one pod, in the order in which the VPA does it.

Pod LimitRange, container LimitRange, policy, and today's limit for containers whose limits are not controlled. Each
later step may undo an earlier one, so a pod may still be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forecaster.domain.quantity import Quantity
from forecaster.vertical.reference.vpa.limit_range import LimitRange, bounds_of_request
from forecaster.vertical.reference.vpa.pod_limit_range import fit_pod
from forecaster.vertical.reference.vpa.policy import (
    NO_POLICY,
    REQUESTS_ONLY,
    ContainerPolicy,
    lowered,
    policy_of,
    raised,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.vertical.reference.vpa.lists import Container, Recommended, ResourceList

_RANGE = ("capped to fit Min in container LimitRange", "capped to fit Max in container LimitRange")
_POLICY = ("capped to minAllowed", "capped to maxAllowed")
Rule = Callable[[str, Quantity], tuple[Quantity, list[str]]]
"""From the name of a resource and its value to the adjusted value and remarks."""


@dataclass(frozen=True, slots=True)
class Capped:
    """What remains for the pod, and remarks about the targets by container."""

    recommendation: Sequence[Recommended]
    remarks: Mapping[str, list[str]] = field(default_factory=dict)


def cap_for_pod(
    recommendation: Sequence[Recommended] | None,
    policies: Sequence[ContainerPolicy] | None,
    containers: Sequence[Container],
    *,
    pod_range: LimitRange | None = None,
    container_range: LimitRange | None = None,
) -> Capped | None:
    """The recommendation for one pod; None where there is neither a recommendation nor a policy."""
    if recommendation is None and policies is None:
        return None
    by_name = {one.name: one for one in containers}
    capped: list[Recommended] = []
    remarks: dict[str, list[str]] = {}
    for one in fit_pod(recommendation or (), containers, pod_range):
        if one.container in by_name:
            policy = policy_of(one.container, policies or ()) or NO_POLICY
            adjusted, said = _adjusted(one, _rules(by_name[one.container], policy, container_range))
            capped.append(adjusted)
            remarks |= {one.container: said} if said else {}
    return Capped(capped, remarks)


def _rules(container: Container, policy: ContainerPolicy, item: LimitRange | None) -> list[Rule]:
    rules = [_within(policy.min_allowed, policy.max_allowed, _POLICY)]
    if item is not None:
        rules.insert(0, _within(*bounds_of_request(container.has, item), _RANGE))
    if policy.controlled_values == REQUESTS_ONLY:
        rules.append(_at_most(container.has.limits))
    return rules


def _within(lowest: ResourceList, highest: ResourceList, remarks: tuple[str, str]) -> Rule:
    def rule(name: str, value: Quantity) -> tuple[Quantity, list[str]]:
        up = raised(value, lowest.get(name))
        down = lowered(up, highest.get(name))
        moved = (up.nano != value.nano, down.nano != up.nano)
        return down, [f"{name} {said}" for said, has_moved in zip(remarks, moved, strict=True) if has_moved]

    return rule


def _at_most(limits: ResourceList) -> Rule:
    """A limit of zero counts here, unlike a bound of zero."""

    def rule(name: str, value: Quantity) -> tuple[Quantity, list[str]]:
        if name in limits and value.milli > limits[name].milli:
            return limits[name], [f"{name} capped to container limit"]
        return value, []

    return rule


def _adjusted(one: Recommended, rules: Sequence[Rule]) -> tuple[Recommended, list[str]]:
    target, remarks = _through(one.target, rules)
    lower, upper = _through(one.lower, rules)[0], _through(one.upper, rules)[0]
    return replace(one, target=target, lower=lower, upper=upper), remarks


def _through(values: ResourceList | None, rules: Sequence[Rule]) -> tuple[ResourceList | None, list[str]]:
    if values is None:
        return None, []
    adjusted, remarks = dict(values), []
    for rule in rules:
        for name, value in adjusted.items():
            adjusted[name], said = rule(name, value)
            remarks += said
    return adjusted, remarks

"""Container policies of a VPA, and a stored recommendation adjusted to one pod (spec/vertical.md §1.11, §1.12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forecaster.domain.quantity import Quantity, milli_quantity
from tests.oracles.vpa_limit_range import LimitRange, bounds_of_request, fit_pod
from tests.oracles.vpa_recommender import BOTH, CPU
from tests.oracles.vpa_resources import Recommended, ResourceList, milli, whole

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tests.oracles.vpa_resources import Container, ResourceList

EVERY = "*"
AUTO = "Auto"
OFF = "Off"
REQUESTS_AND_LIMITS = "RequestsAndLimits"
REQUESTS_ONLY = "RequestsOnly"
_RANGE = ("capped to fit Min in container LimitRange", "capped to fit Max in container LimitRange")
_POLICY = ("capped to minAllowed", "capped to maxAllowed")
Rule = Callable[[str, Quantity], tuple[Quantity, list[str]]]
"""A rule gets the name of a resource and its value, and returns the adjusted value and remarks."""


@dataclass(frozen=True, slots=True)
class StartupBoost:
    """More CPU while a container starts: a factor of the request, or an amount on top of it."""

    type: str = "Factor"
    factor: int | None = None
    quantity: Quantity | None = None


@dataclass(frozen=True, slots=True)
class ContainerPolicy:
    """The policy of one container, or of all others under the name `*`."""

    container: str = EVERY
    mode: str = AUTO
    min_allowed: ResourceList = field(default_factory=dict)
    max_allowed: ResourceList = field(default_factory=dict)
    controlled_resources: Sequence[str] = BOTH
    controlled_values: str = REQUESTS_AND_LIMITS
    startup_boost: StartupBoost | None = None


NO_POLICY = ContainerPolicy()


def policy_of(container: str, policies: Sequence[ContainerPolicy]) -> ContainerPolicy | None:
    """The policy by exact name, else the one named `*`; the last of several with that name."""
    exact = next((policy for policy in policies if policy.container == container), None)
    return exact or next((policy for policy in reversed(policies) if policy.container == EVERY), None)


def controlled_values(container: str, policies: Sequence[ContainerPolicy]) -> str:
    """Whether limits follow requests."""
    return (policy_of(container, policies) or NO_POLICY).controlled_values


def cap_stored(
    recommendation: Sequence[Recommended], policies: Sequence[ContainerPolicy], cluster_max: ResourceList
) -> list[Recommended]:
    """Raise to `minAllowed`, then lower to `maxAllowed` or, where it is absent, to the cluster's maximum."""
    return [_cap(part, policy_of(part.container, policies) or NO_POLICY, cluster_max) for part in recommendation]


def raised(value: Quantity, least: Quantity | None) -> Quantity:
    """At least the bound; a bound of zero is none."""
    return least if least is not None and least.nano and value.nano < least.nano else value


def lowered(value: Quantity, most: Quantity | None) -> Quantity:
    """At most the bound; a bound of zero is none."""
    return most if most is not None and most.nano and value.nano > most.nano else value


def integer_cpu(recommendation: Sequence[Recommended], containers: Collection[str]) -> list[Recommended]:
    """CPU in whole cores, rounded up, for the annotated containers."""
    return [_integer(part) if part.container in containers else part for part in recommendation]


def _cap(part: Recommended, policy: ContainerPolicy, cluster_max: ResourceList) -> Recommended:
    most = {**cluster_max, **policy.max_allowed}

    def capped(values: ResourceList | None) -> ResourceList | None:
        if values is None:
            return None
        return {
            name: lowered(raised(value, policy.min_allowed.get(name)), most.get(name)) for name, value in values.items()
        }

    return replace(part, target=capped(part.target), lower=capped(part.lower), upper=capped(part.upper))


def _integer(part: Recommended) -> Recommended:
    def rounded(values: ResourceList | None) -> ResourceList | None:
        if values is None or CPU not in values:
            return values
        return {**values, CPU: milli_quantity(whole(values[CPU]) * 1000)}

    return Recommended(
        part.container, rounded(part.target), rounded(part.lower), rounded(part.upper), rounded(part.uncapped)
    )


@dataclass(frozen=True, slots=True)
class Capped:
    """Recommendation that remains for the pod, and remarks about the targets by container."""

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
    by_name = {container.name: container for container in containers}
    capped: list[Recommended] = []
    remarks: dict[str, list[str]] = {}
    for part in fit_pod(recommendation or (), containers, pod_range):
        if part.container in by_name:
            policy = policy_of(part.container, policies or ()) or NO_POLICY
            adjusted, remarked = _adjusted(part, _rules(by_name[part.container], policy, container_range))
            capped.append(adjusted)
            remarks |= {part.container: remarked} if remarked else {}
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
        return down, [f"{name} {remark}" for remark, has_moved in zip(remarks, moved, strict=True) if has_moved]

    return rule


def _at_most(limits: ResourceList) -> Rule:
    """A limit of zero counts here, unlike a bound of zero."""

    def rule(name: str, value: Quantity) -> tuple[Quantity, list[str]]:
        if name in limits and milli(value) > milli(limits[name]):
            return limits[name], [f"{name} capped to container limit"]
        return value, []

    return rule


def _adjusted(part: Recommended, rules: Sequence[Rule]) -> tuple[Recommended, list[str]]:
    target, remarks = _through(part.target, rules)
    lower, upper = _through(part.lower, rules)[0], _through(part.upper, rules)[0]
    return replace(part, target=target, lower=lower, upper=upper), remarks


def _through(values: ResourceList | None, rules: Sequence[Rule]) -> tuple[ResourceList | None, list[str]]:
    if values is None:
        return None, []
    adjusted, remarks = dict(values), []
    for rule in rules:
        for name, value in adjusted.items():
            adjusted[name], remarked = rule(name, value)
            remarks += remarked
    return adjusted, remarks

"""What a VPA's owner asks per container, and what that does to the stored recommendation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from forecaster.domain.quantity import milli_quantity
from forecaster.vertical.reference.vpa.lists import Recommended, ResourceList, whole
from forecaster.vertical.reference.vpa.recommend import BOTH, CPU

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from forecaster.domain.quantity import Quantity

EVERY = "*"
AUTO = "Auto"
OFF = "Off"
REQUESTS_AND_LIMITS = "RequestsAndLimits"
REQUESTS_ONLY = "RequestsOnly"


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
    """Raise to `minAllowed`, then lower to `maxAllowed` or, where it says nothing, to the cluster's maximum."""
    return [_cap(one, policy_of(one.container, policies) or NO_POLICY, cluster_max) for one in recommendation]


def raised(value: Quantity, least: Quantity | None) -> Quantity:
    """At least the bound; a bound of zero is none."""
    return least if least is not None and least.nano and value.nano < least.nano else value


def lowered(value: Quantity, most: Quantity | None) -> Quantity:
    """At most the bound; a bound of zero is none."""
    return most if most is not None and most.nano and value.nano > most.nano else value


def integer_cpu(recommendation: Sequence[Recommended], containers: Collection[str]) -> list[Recommended]:
    """CPU in whole cores, rounded up, for the containers that ask for it."""
    return [_integer(one) if one.container in containers else one for one in recommendation]


def _cap(one: Recommended, policy: ContainerPolicy, cluster_max: ResourceList) -> Recommended:
    most = {**cluster_max, **policy.max_allowed}

    def capped(values: ResourceList | None) -> ResourceList | None:
        if values is None:
            return None
        return {
            name: lowered(raised(value, policy.min_allowed.get(name)), most.get(name)) for name, value in values.items()
        }

    return replace(one, target=capped(one.target), lower=capped(one.lower), upper=capped(one.upper))


def _integer(one: Recommended) -> Recommended:
    def rounded(values: ResourceList | None) -> ResourceList | None:
        if values is None or CPU not in values:
            return values
        return {**values, CPU: milli_quantity(whole(values[CPU]) * 1000)}

    return Recommended(
        one.container, rounded(one.target), rounded(one.lower), rounded(one.upper), rounded(one.uncapped)
    )

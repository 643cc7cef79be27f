"""Resources that the VPA's webhook, or its update in place, writes into a container (spec/vertical.md §1.13, §1.14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.quantity import Quantity, milli_quantity
from tests.oracles.vpa_capping import (
    NO_POLICY,
    OFF,
    REQUESTS_AND_LIMITS,
    REQUESTS_ONLY,
    ContainerPolicy,
    StartupBoost,
    controlled_values,
    policy_of,
)
from tests.oracles.vpa_recommender import BOTH, CPU
from tests.oracles.vpa_resources import (
    ZERO,
    Container,
    Recommended,
    Requirements,
    ResourceList,
    limit_of,
    milli,
    of_units,
    proportional_limits,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_MILLICORE = milli_quantity(1)


class Written(NamedTuple):
    """Written resources, and remarks about limits."""

    resources: Requirements
    remarks: list[str]


def container_resources(
    container: Container,
    recommendation: Recommended | None,
    policies: Sequence[ContainerPolicy],
    *,
    default_limits: ResourceList,
    list_all: bool,
) -> Written:
    """Recommended requests with limits in today's ratio.

    `list_all`, for an update in place, keeps today's values for every resource that has no recommendation.
    """
    has = container.has
    if recommendation is None and not list_all:
        return Written(Requirements(), [])
    requests = has.requests if recommendation is None else recommendation.target or {}
    limits: ResourceList = {}
    remarks: list[str] = []
    if controlled_values(container.name, policies) == REQUESTS_AND_LIMITS:
        limits, remarks = proportional_limits(has, requests, default_limits)
    present = has if list_all else Requirements()
    return Written(Requirements(_filled(requests, present.requests), _filled(limits, present.limits)), remarks)


def _filled(values: ResourceList, present: ResourceList) -> ResourceList:
    """The values, and those of CPU and memory in `present` that they leave out."""
    return {**values, **{name: present[name] for name in BOTH if name in present and name not in values}}


class StartupBoostError(ValueError):
    """The boost is not one that the VPA understands; the message says why, in its words."""


@dataclass(frozen=True, slots=True)
class Boosted:
    """Resources written at creation; `remembered` when the pod has to get its own resources back."""

    resources: Requirements
    remembered: bool


def boosted(
    container: Container,
    without: Requirements,
    boost: StartupBoost | None,
    policies: Sequence[ContainerPolicy],
    *,
    most: Quantity | None = None,
) -> Boosted:
    """Boost the resources that would be written `without` a boost; raises StartupBoostError.

    `boost` is the VPA's own, which the container's policy replaces; `most` caps the request. Nothing at all is written
    to a container whose mode is Off.
    """
    policy = policy_of(container.name, policies) or NO_POLICY
    boost = policy.startup_boost or boost
    if policy.mode == OFF or boost is None:
        return Boosted(Requirements() if policy.mode == OFF else without, remembered=False)
    request = _request(container.specified.requests, without.requests, boost, most)
    if policy.controlled_values == REQUESTS_ONLY:
        request, limits = _below(request, container.specified.limits.get(CPU)), without.limits
    else:
        limit = limit_of(CPU, container.specified, {CPU: request}, {}).value
        limits = without.limits if limit is None else {**without.limits, CPU: limit}
    return Boosted(Requirements({**without.requests, CPU: request}, limits), remembered=True)


def _request(own: ResourceList, recommended: ResourceList, boost: StartupBoost, most: Quantity | None) -> Quantity:
    base = recommended.get(CPU, ZERO)
    raised = _raised(base if base.nano else own.get(CPU, ZERO), boost)
    return most if most is not None and most.nano and raised.nano > most.nano else raised


def _raised(base: Quantity, boost: StartupBoost) -> Quantity:
    match boost.type or "Factor":
        case "Factor":
            if boost.factor is None:
                raise StartupBoostError("startupBoost.CPU.Factor is required when Type is Factor or not specified")
            if boost.factor < 1:
                raise StartupBoostError("boost factor must be >= 1")
            return of_units(CPU, int(float(milli(base)) * boost.factor))
        case "Quantity":
            if boost.quantity is None:
                raise StartupBoostError("startupBoost.CPU.Quantity is required when Type is Quantity")
            return of_units(CPU, milli(base) + milli(boost.quantity))
        case other:
            raise StartupBoostError(f"unsupported startup boost type: {other}")


def _below(request: Quantity, limit: Quantity | None) -> Quantity:
    """A millicore below a limit that it would pass: the pod stays Burstable."""
    if limit is None or milli(request) <= milli(limit):
        return request
    return Quantity(limit.nano - _MILLICORE.nano) if limit.nano > _MILLICORE.nano else limit

"""Resource lists of a manifest, and limits that keep their ratio to the request (spec/vertical.md §1.13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from forecaster.domain.quantity import Quantity, QuantityFormat, milli_quantity
from tests.oracles.vpa_recommender import BOTH

ResourceList = Mapping[str, Quantity]
ZERO = Quantity(0)
LARGEST = 2**63 - 1
_WHOLE, _MILLI = 10**9, 10**6
"""Nano-units of a whole one and of a thousandth."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requests and limits of one container."""

    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Container:
    """A container of the specification, and what its status says it really has: that wins where it is reported."""

    name: str
    specified: Requirements = Requirements()
    reported: Requirements | None = None

    @property
    def has(self) -> Requirements:
        """Requests and limits in effect."""
        return self.specified if self.reported is None else self.reported


@dataclass(frozen=True, slots=True)
class Recommended:
    """Recommendation for one container. A list that is None was not given."""

    container: str
    target: ResourceList | None = None
    lower: ResourceList | None = None
    upper: ResourceList | None = None
    uncapped: ResourceList | None = None


def whole(quantity: Quantity) -> int:
    """Whole units, any part of one counting as a whole."""
    return -(-quantity.nano // _WHOLE)


def milli(quantity: Quantity) -> int:
    """Thousandths, any part of one counting as a whole; beyond 64 bits too, where `Quantity.milli` wraps around."""
    return -(-quantity.nano // _MILLI)


def units_of(resource: str, quantity: Quantity) -> int:
    """Millicores of CPU, whole units of anything else."""
    return milli(quantity) if resource == "cpu" else whole(quantity)


def of_units(resource: str, units: int) -> Quantity:
    """The quantity of so many millicores, or whole units, held at 64 bits."""
    held = min(units, LARGEST)
    return milli_quantity(held) if resource == "cpu" else Quantity(held * _WHOLE, QuantityFormat.BINARY_SI)


def proportion(resource: str, quantity: Quantity, base: Quantity, result: Quantity) -> tuple[Quantity, bool]:
    """`quantity * result / base`, cut to millicores or whole units, and whether it had to be held at 64 bits.

    `base` is not zero.
    """
    product = units_of(resource, quantity) * units_of(resource, result)
    scaled = product // units_of(resource, base)
    return of_units(resource, scaled), scaled > LARGEST


class Limit(NamedTuple):
    """The new limit, or None with the reason why there is none; a remark too where the ratio could not be kept."""

    value: Quantity | None
    remark: str = ""


def proportional_limit(
    resource: str, *, limit: Quantity, request: Quantity, recommended: Quantity, default_limit: Quantity
) -> Limit:
    """The limit that goes with the recommended request, from the present pair or the namespace's default limit."""
    limit = limit if whole(limit) else default_limit
    if not whole(limit):
        return Limit(None, f"{resource}: limit NOT set since originalLimit is nil or 0")
    if not whole(recommended):
        return Limit(None, f"{resource}: limit NOT set since recommendedRequest is nil or 0")
    if not whole(request) or milli(request) == milli(limit):
        return Limit(recommended)
    scaled, held = proportion(resource, limit, request, recommended)
    return Limit(scaled, f"{resource}: failed to keep limit to request ratio; capping limit to int64" if held else "")


def proportional_limits(
    has: Requirements, recommended: ResourceList, default_limits: ResourceList
) -> tuple[dict[str, Quantity], list[str]]:
    """Limits of both resources with remarks; no remarks where neither gets a limit."""
    by_resource = {resource: limit_of(resource, has, recommended, default_limits) for resource in BOTH}
    limits = {resource: limit.value for resource, limit in by_resource.items() if limit.value is not None}
    remarks = [limit.remark for limit in by_resource.values() if limit.remark]
    return limits, remarks if limits else []


def limit_of(resource: str, has: Requirements, recommended: ResourceList, default_limits: ResourceList) -> Limit:
    """The limit of one resource of a container."""
    return proportional_limit(
        resource,
        limit=has.limits.get(resource, ZERO),
        request=has.requests.get(resource, ZERO),
        recommended=recommended.get(resource, ZERO),
        default_limit=default_limits.get(resource, ZERO),
    )

"""Lists of resources as manifests have them, by name; a resource that is not listed counts as zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from forecaster.domain.quantity import Quantity, QuantityFormat, milli_quantity

ResourceList = Mapping[str, Quantity]
ZERO = Quantity(0)
LARGEST = 2**63 - 1
_WHOLE = 10**9


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


def units_of(resource: str, quantity: Quantity) -> int:
    """Millicores of CPU, whole units of anything else."""
    return quantity.milli if resource == "cpu" else whole(quantity)


def of_units(resource: str, units: int) -> Quantity:
    """The quantity of so many millicores, or whole units."""
    return milli_quantity(units) if resource == "cpu" else Quantity(units * _WHOLE, QuantityFormat.BINARY_SI)


def proportion(resource: str, quantity: Quantity, base: Quantity, result: Quantity) -> tuple[Quantity, bool]:
    """`quantity * result / base`, cut to millicores or whole units, and whether it had to be held at 64 bits.

    `base` is not zero.
    """
    product = units_of(resource, quantity) * units_of(resource, result)
    scaled = product // units_of(resource, base)
    return of_units(resource, min(scaled, LARGEST)), scaled > LARGEST

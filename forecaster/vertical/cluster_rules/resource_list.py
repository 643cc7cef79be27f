"""Amounts by resource name: whole milli-units, exact.

The API server rounds finer amounts up, so a milli-unit is the smallest step of any request or limit. A name that is
absent is not set, which differs from zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from forecaster.domain.quantity import Quantity, QuantityFormat, parse_quantity

Amounts = Mapping[str, int]

CPU_RESOURCE = "cpu"
MEMORY_RESOURCE = "memory"
COMPUTE = (CPU_RESOURCE, MEMORY_RESOURCE)
MILLI = 1000
NO_AMOUNTS: Amounts = {}
_NANO_IN_MILLI = 10**6
_IN_BYTES = ("memory", "storage", "hugepages")


def parsed(amounts: Mapping[str, str | int | float] | None) -> dict[str, int]:
    """Quantities of a manifest in milli-units; raises QuantityError."""
    return {name: milli_of(str(text)) for name, text in (amounts or {}).items()}


def milli_of(text: str) -> int:
    """Rules §6.1: one quantity in milli-units, rounded away from zero; raises QuantityError."""
    nano = parse_quantity(text).nano
    return -(-nano // _NANO_IN_MILLI) if nano >= 0 else nano // _NANO_IN_MILLI


def whole(milli: int) -> int:
    """Rules §6.1: return whole units, rounded up, as the API's code reads a value."""
    return -(-milli // MILLI)


def added(*lists: Amounts) -> dict[str, int]:
    """The sum by name."""
    total: dict[str, int] = {}
    for amounts in lists:
        for name, milli in amounts.items():
            total[name] = total.get(name, 0) + milli
    return total


def largest(lists: Iterable[Amounts]) -> dict[str, int]:
    """The largest by name."""
    highest: dict[str, int] = {}
    for amounts in lists:
        for name, milli in amounts.items():
            if name not in highest or milli > highest[name]:
                highest[name] = milli
    return highest


def filled(amounts: Amounts, defaults: Amounts) -> dict[str, int]:
    """Return `amounts`, completed by defaults."""
    return {**defaults, **amounts}


def text_of(milli: int, resource: str) -> str:
    """The canonical text: bytes with binary suffixes, everything else in decimal."""
    in_bytes = resource.removeprefix("requests.").removeprefix("limits.").startswith(_IN_BYTES) or "storage" in resource
    return str(Quantity(milli * _NANO_IN_MILLI, QuantityFormat.BINARY_SI if in_bytes else QuantityFormat.DECIMAL_SI))


def texts(amounts: Amounts) -> dict[str, str]:
    """Return every amount in a manifest's notation."""
    return {name: text_of(milli, name) for name, milli in amounts.items()}


def is_pod_level(resource: str) -> bool:
    """Whether a pod-level block may name this resource: cpu, memory, or a size of huge pages."""
    return resource in COMPUTE or is_huge_pages(resource)


def is_huge_pages(resource: str) -> bool:
    """Pages of one size, which cannot be overcommitted."""
    return resource.startswith("hugepages-")


def is_overcommittable(resource: str) -> bool:
    """Whether a limit may exceed the request: resources of Kubernetes itself except huge pages."""
    native = "/" not in resource or "kubernetes.io/" in resource
    return native and not is_huge_pages(resource)

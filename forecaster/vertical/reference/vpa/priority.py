"""How urgent it is to update a pod, and which of several goes first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from forecaster.domain.quantity import Quantity
    from forecaster.vertical.reference.vpa.lists import Container, Recommended, ResourceList

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_SEPARATOR = ", "


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
    """Over the observed containers that have a recommendation."""
    by_name = {one.container: one for one in recommendation}
    pairs = [
        (one.has.requests, by_name[one.name])
        for one in containers
        if one.name in by_name and (observed is None or one.name in observed)
    ]
    return Priority(
        any(_outside(requests, one) for requests, one in pairs),
        any(
            request is None or target.milli > request.milli
            for requests, one in pairs
            for request, target in _targets(requests, one)
        ),
        _difference(pairs),
    )


def in_order(priorities: Mapping[str, Priority]) -> list[str]:
    """Names of pods, the most urgent first: those that grow, then the larger difference."""
    return sorted(priorities, key=lambda name: (not priorities[name].scale_up, -priorities[name].difference))


def _targets(requests: ResourceList, one: Recommended) -> Iterator[tuple[Quantity | None, Quantity]]:
    return ((requests.get(name), target) for name, target in (one.target or {}).items())


def _outside(requests: ResourceList, one: Recommended) -> bool:
    return any(
        name not in requests or _beyond(requests[name], (one.lower or {}).get(name), (one.upper or {}).get(name))
        for name in one.target or {}
    )


def _beyond(request: Quantity, lower: Quantity | None, upper: Quantity | None) -> bool:
    below = lower is not None and request.nano < lower.nano
    return below or (upper is not None and request.nano > upper.nano)


def _difference(pairs: Sequence[tuple[ResourceList, Recommended]]) -> float:
    requested: dict[str, int] = {}
    wanted: dict[str, int] = {}
    for requests, one in pairs:
        for name, target in (one.target or {}).items():
            wanted[name] = wanted.get(name, 0) + target.milli
            requested[name] = requested.get(name, 0) + (requests[name].milli if name in requests else 0)
    return sum(
        abs(max(float(requested[name]), 1.0) - wanted[name]) / max(float(requested[name]), 1.0) for name in wanted
    )

"""The namespace's LimitRange as the VPA reads it, for containers and for pods (spec/vertical.md §1.12)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.oracles.vpa_recommender import BOTH, CPU
from tests.oracles.vpa_resources import (
    ZERO,
    Container,
    Recommended,
    Requirements,
    ResourceList,
    limit_of,
    of_units,
    proportion,
    units_of,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from forecaster.domain.quantity import Quantity

_BOUNDS: tuple[
    tuple[Callable[[Recommended], ResourceList | None], Callable[[Recommended, ResourceList], Recommended]], ...
] = (
    (lambda part: part.upper, lambda part, values: replace(part, upper=values)),
    (lambda part: part.target, lambda part, values: replace(part, target=values)),
    (lambda part: part.lower, lambda part, values: replace(part, lower=values)),
)


@dataclass(frozen=True, slots=True)
class LimitRange:
    """One effective item of a type; None where nothing is stated."""

    least: ResourceList | None = None
    most: ResourceList | None = None
    default: ResourceList | None = None


def effective(items: Iterable[LimitRange]) -> LimitRange | None:
    """All items of one type and namespace as one: lowest maximum, highest minimum, the last default; None if empty."""
    whole_item = LimitRange()
    for item in items:
        whole_item = LimitRange(
            _tightest(whole_item.least, item.least, max),
            _tightest(whole_item.most, item.most, min),
            item.default if item.default is not None else whole_item.default,
        )
    return None if whole_item == LimitRange() else whole_item


def bounds_of_request(has: Requirements, item: LimitRange) -> tuple[ResourceList, ResourceList]:
    """Lowest and highest request whose limit stays within the item; a zero bounds nothing."""
    lowest, highest = _boundary(has, item.least, item), _boundary(has, item.most, item)
    for resource, least in (item.least or {}).items():
        if resource in BOTH and least.nano > lowest.get(resource, ZERO).nano:
            lowest[resource] = least
    return lowest, highest


def _boundary(has: Requirements, bound: ResourceList | None, item: LimitRange) -> dict[str, Quantity]:
    if bound is None:
        return {}
    defaults = item.default or {}
    return {
        name: _request_for(name, has, bound.get(name, ZERO), default_limit=defaults.get(name, ZERO)) for name in BOTH
    }


def _request_for(resource: str, has: Requirements, bound: Quantity, *, default_limit: Quantity) -> Quantity:
    """The request at which a limit in today's ratio reaches the bound."""
    limit, request = has.limits.get(resource, ZERO), has.requests.get(resource, ZERO)
    limit = limit if whole(limit) else default_limit
    if not whole(limit):
        return ZERO
    if not whole(request):
        return bound
    return proportion(resource, request, limit, bound)[0]


def _tightest(
    before: ResourceList | None, item: ResourceList | None, choose: Callable[[int, int], int]
) -> ResourceList | None:
    if before is None or item is None:
        return item if before is None else before
    return {name: _chosen(before.get(name), item.get(name), choose) for name in dict.fromkeys([*before, *item])}


def _chosen(amount: Quantity | None, other: Quantity | None, choose: Callable[[int, int], int]) -> Quantity:
    if amount is None or other is None:
        return amount or other or ZERO
    return amount if choose(amount.nano, other.nano) == amount.nano else other


def fit_pod(
    recommendation: Sequence[Recommended], containers: Sequence[Container], item: LimitRange | None
) -> Sequence[Recommended]:
    """Upper bounds, targets, lower bounds, CPU before memory; containers without a recommendation join as they are."""
    if item is None:
        return recommendation
    fitted = [*recommendation, *_present(recommendation, containers)]
    for read, write in _BOUNDS:
        for resource in BOTH:
            lists = {part.container: read(part) or {} for part in fitted}
            changed = scale_together(resource, lists, containers, item)
            fitted = [
                write(part, {**lists[part.container], resource: changed[part.container]})
                if part.container in changed
                else part
                for part in fitted
            ]
    return fitted


def scale_together(
    resource: str, lists: Mapping[str, ResourceList], containers: Sequence[Container], item: LimitRange
) -> dict[str, Quantity]:
    """The values of one resource that change, by container; none where the pod fits as it is."""
    scaling = _scaling(resource, lists, containers, item)
    if scaling is None:
        return {}
    return {
        container.name: scaling(lists[container.name].get(resource, ZERO))
        for container in containers
        if container.name in lists
    }


def _scaling(
    resource: str, lists: Mapping[str, ResourceList], containers: Sequence[Container], item: LimitRange
) -> Callable[[Quantity], Quantity] | None:
    least, most = ((bound or {}).get(resource, ZERO) for bound in (item.least, item.most))
    requests, limits = _totals(resource, lists, containers, item.default or {})
    too_low = least.nano > limits.nano
    too_high = 0 < most.nano < limits.nano
    if not (too_low or too_high or least.nano > requests.nano) or not limits.nano:
        return None
    if least.nano > requests.nano:
        return lambda value: _raised(resource, value, requests, least)
    total = most if too_high else least
    return lambda value: _lowered(resource, proportion(resource, value, limits, total)[0])


def _lowered(resource: str, value: Quantity) -> Quantity:
    """Memory that is cut to nothing becomes -1: 0.999 is taken off, and the rest rounded away from zero."""
    return value if resource == CPU or value.nano else of_units(resource, -1)


def _totals(
    resource: str, lists: Mapping[str, ResourceList], containers: Sequence[Container], default: ResourceList
) -> tuple[Quantity, Quantity]:
    """Requests and limits of the whole pod, as recommended."""
    requests = limits = 0
    for container in containers:
        request = lists.get(container.name, container.has.requests).get(resource, ZERO)
        limit = limit_of(resource, container.has, {resource: request}, default).value
        requests, limits = requests + request.nano, limits + (limit.nano if limit else 0)
    return replace(ZERO, nano=requests), replace(ZERO, nano=limits)


def _raised(resource: str, value: Quantity, requests: Quantity, least: Quantity) -> Quantity:
    """Raise the value by its share of the minimum: CPU rounded up, memory cut; the pod may end one byte short."""
    if resource != CPU:
        return proportion(resource, value, requests, least)[0]
    product = units_of(resource, value) * units_of(resource, least)
    return of_units(resource, -(-product // units_of(resource, requests)))


def _present(recommendation: Sequence[Recommended], containers: Sequence[Container]) -> list[Recommended]:
    known = {part.container for part in recommendation}
    return [
        Recommended(container.name, target=container.has.requests)
        for container in containers
        if container.name not in known and container.has.requests
    ]

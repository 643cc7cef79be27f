"""Recommendations scaled together until the pod as a whole fits a LimitRange of type Pod."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from forecaster.vertical.reference.vpa.lists import (
    ZERO,
    Container,
    Recommended,
    ResourceList,
    of_units,
    proportion,
    units_of,
)
from forecaster.vertical.reference.vpa.proportional import limit_of
from forecaster.vertical.reference.vpa.recommend import BOTH, CPU

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forecaster.domain.quantity import Quantity
    from forecaster.vertical.reference.vpa.limit_range import LimitRange

_BOUNDS: tuple[
    tuple[Callable[[Recommended], ResourceList | None], Callable[[Recommended, ResourceList], Recommended]], ...
] = (
    (lambda one: one.upper, lambda one, values: replace(one, upper=values)),
    (lambda one: one.target, lambda one, values: replace(one, target=values)),
    (lambda one: one.lower, lambda one, values: replace(one, lower=values)),
)


def fit_pod(
    recommendation: Sequence[Recommended], containers: Sequence[Container], item: LimitRange | None
) -> Sequence[Recommended]:
    """Upper bounds, targets, lower bounds, CPU before memory; containers without a recommendation join as they are."""
    if item is None:
        return recommendation
    fitted = [*recommendation, *_present(recommendation, containers)]
    for read, write in _BOUNDS:
        for resource in BOTH:
            lists = {one.container: read(one) or {} for one in fitted}
            changed = scale_together(resource, lists, containers, item)
            fitted = [
                write(one, {**lists[one.container], resource: changed[one.container]})
                if one.container in changed
                else one
                for one in fitted
            ]
    return fitted


def scale_together(
    resource: str, lists: Mapping[str, ResourceList], containers: Sequence[Container], item: LimitRange
) -> dict[str, Quantity]:
    """The values of one resource that change, by container; none where the pod fits as it is."""
    scaling = _scaling(resource, lists, containers, item)
    if scaling is None:
        return {}
    return {one.name: scaling(lists[one.name].get(resource, ZERO)) for one in containers if one.name in lists}


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
    return lambda value: proportion(resource, value, limits, total)[0]


def _totals(
    resource: str, lists: Mapping[str, ResourceList], containers: Sequence[Container], default: ResourceList
) -> tuple[Quantity, Quantity]:
    """Requests and limits of the whole pod, as recommended."""
    requests = limits = 0
    for one in containers:
        wanted = lists.get(one.name, one.has.requests).get(resource, ZERO)
        limit = limit_of(resource, one.has, {resource: wanted}, default).value
        requests, limits = requests + wanted.nano, limits + (limit.nano if limit else 0)
    return replace(ZERO, nano=requests), replace(ZERO, nano=limits)


def _raised(resource: str, value: Quantity, requests: Quantity, least: Quantity) -> Quantity:
    """Its share of the minimum: CPU rounded up, memory cut, so that the pod may end one byte short of it."""
    if resource != CPU:
        return proportion(resource, value, requests, least)[0]
    product = units_of(resource, value) * units_of(resource, least)
    return of_units(resource, -(-product // units_of(resource, requests)))


def _present(recommendation: Sequence[Recommended], containers: Sequence[Container]) -> list[Recommended]:
    known = {one.container for one in recommendation}
    return [
        Recommended(one.name, target=one.has.requests)
        for one in containers
        if one.name not in known and one.has.requests
    ]

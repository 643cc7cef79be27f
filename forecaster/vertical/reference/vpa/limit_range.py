"""The namespace's LimitRange as the VPA reads it, and the requests that keep limits within it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.vertical.reference.vpa.lists import ZERO, Requirements, ResourceList, proportion, whole
from forecaster.vertical.reference.vpa.recommend import BOTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from forecaster.domain.quantity import Quantity


@dataclass(frozen=True, slots=True)
class LimitRange:
    """One effective item of a type; None where nothing is said."""

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


def _chosen(one: Quantity | None, other: Quantity | None, choose: Callable[[int, int], int]) -> Quantity:
    if one is None or other is None:
        return one or other or ZERO
    return one if choose(one.nano, other.nano) == one.nano else other

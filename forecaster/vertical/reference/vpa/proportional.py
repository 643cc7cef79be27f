"""A limit that keeps its ratio to the request when the request changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.vertical.reference.vpa.lists import ZERO, Requirements, ResourceList, proportion, whole
from forecaster.vertical.reference.vpa.recommend import BOTH

if TYPE_CHECKING:
    from forecaster.domain.quantity import Quantity


class Limit(NamedTuple):
    """The new limit, or None with the reason why there is none; a remark too where the ratio could not be kept."""

    value: Quantity | None
    remark: str = ""


def proportional_limit(
    resource: str, *, limit: Quantity, request: Quantity, wanted: Quantity, default_limit: Quantity
) -> Limit:
    """The limit that goes with the wanted request, from the present pair or the namespace's default limit."""
    limit = limit if whole(limit) else default_limit
    if not whole(limit):
        return Limit(None, f"{resource}: limit NOT set since originalLimit is nil or 0")
    if not whole(wanted):
        return Limit(None, f"{resource}: limit NOT set since recommendedRequest is nil or 0")
    if not whole(request) or request.milli == limit.milli:
        return Limit(wanted)
    scaled, held = proportion(resource, limit, request, wanted)
    return Limit(scaled, f"{resource}: failed to keep limit to request ratio; capping limit to int64" if held else "")


def proportional_limits(
    has: Requirements, wanted: ResourceList, default_limits: ResourceList
) -> tuple[dict[str, Quantity], list[str]]:
    """Limits of both resources with remarks; no remarks where neither gets a limit."""
    found = {resource: limit_of(resource, has, wanted, default_limits) for resource in BOTH}
    limits = {resource: limit.value for resource, limit in found.items() if limit.value is not None}
    remarks = [limit.remark for limit in found.values() if limit.remark]
    return limits, remarks if limits else []


def limit_of(resource: str, has: Requirements, wanted: ResourceList, default_limits: ResourceList) -> Limit:
    """The limit of one resource of a container."""
    return proportional_limit(
        resource,
        limit=has.limits.get(resource, ZERO),
        request=has.requests.get(resource, ZERO),
        wanted=wanted.get(resource, ZERO),
        default_limit=default_limits.get(resource, ZERO),
    )

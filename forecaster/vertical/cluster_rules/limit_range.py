"""LimitRanges: what they add to a pod and what they refuse (§6.7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements, pod_limits, pod_requests
from forecaster.vertical.cluster_rules.resource_list import MILLI, NO_AMOUNTS, Amounts, filled, text_of, whole
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server
from forecaster.vertical.cluster_rules.validation import Refusal

CONTAINER, POD = "Container", "Pod"
_RULE = "limit-range"
_LARGEST_COMPARED_EXACTLY = (2**63 - 1) // MILLI
"""Values above this many whole units are compared in whole units, as the API's code does to stay within 64 bits."""


@dataclass(frozen=True, slots=True)
class LimitRangeItem:
    """One item; amounts in milli-units, `ratio` in thousandths."""

    type: str = CONTAINER
    min: Amounts = field(default_factory=dict)
    max: Amounts = field(default_factory=dict)
    default: Amounts = field(default_factory=dict)
    default_request: Amounts = field(default_factory=dict)
    ratio: Amounts = field(default_factory=dict)
    """maxLimitRequestRatio."""


@dataclass(frozen=True, slots=True)
class LimitRange:
    """One object of a namespace."""

    items: tuple[LimitRangeItem, ...]
    name: str = ""


def stored(limits: LimitRange) -> LimitRange:
    """Rules §6.7: as the API server keeps it: an absent default copies max, an absent default request copies that."""
    return replace(limits, items=tuple(_stored(item) for item in limits.items))


def _stored(item: LimitRangeItem) -> LimitRangeItem:
    if item.type != CONTAINER:
        return item
    default = filled(item.default, item.max)
    return replace(item, default=default, default_request=filled(filled(item.default_request, default), item.min))


def with_defaults(pod: Pod, ranges: Sequence[LimitRange]) -> Pod:
    """Rules §6.7: missing limits and requests filled in, by one object after the other."""
    for limits in ranges:
        pod = pod.with_containers(partial(_merged, _defaults(limits)))
    return pod


def _defaults(limits: LimitRange) -> Requirements:
    """Return the defaults; of two items that default the same resource, the later one counts."""
    requests: Amounts = NO_AMOUNTS
    of_limits: Amounts = NO_AMOUNTS
    for item in limits.items:
        if item.type == CONTAINER:
            requests, of_limits = {**requests, **item.default_request}, {**of_limits, **item.default}
    return Requirements(requests, of_limits)


def _merged(defaults: Requirements, container: Container) -> Container:
    block = container.resources
    merged = Requirements(filled(block.requests, defaults.requests), filled(block.limits, defaults.limits))
    return replace(container, resources=merged)


def refusals(pod: Pod, ranges: Sequence[LimitRange], server: Server = LATEST_SERVER) -> tuple[Refusal, ...]:
    """Rules §6.7: everything that a complete pod breaks; none means admitted."""
    whole_pod = Requirements(pod_requests(pod, server, overhead=False), pod_limits(pod, server, overhead=False))
    return tuple(
        Refusal(_RULE, where, message)
        for limits in ranges
        for item in limits.items
        for where, block in _blocks(item, pod, whole_pod)
        for message in _broken(item, block)
    )


def contradictions(ranges: Sequence[LimitRange]) -> Iterator[str]:
    """Resources for which no value at all would pass, because a minimum is above a maximum."""
    for kind in (CONTAINER, POD):
        items = [item for limits in ranges for item in limits.items if item.type == kind]
        for name in dict.fromkeys(name for item in items for name in item.max):
            most = min(item.max[name] for item in items if name in item.max)
            least = max(item.min.get(name, 0) for item in items)
            if least > most:
                bounds = f"minimum {text_of(least, name)} is above maximum {text_of(most, name)}"
                yield f"permits no {name} per {kind} at all: {bounds}"


def _blocks(item: LimitRangeItem, pod: Pod, whole_pod: Requirements) -> Iterator[tuple[str, Requirements]]:
    if item.type == CONTAINER:
        yield from ((container.name, container.resources) for container in pod.every_container())
    elif item.type == POD:
        yield "pod", whole_pod


def _broken(item: LimitRangeItem, block: Requirements) -> Iterator[str]:
    for name, enforced in item.min.items():
        yield from _beyond_bound(item.type, name, enforced, block, is_minimum=True)
    for name, enforced in item.max.items():
        yield from _beyond_bound(item.type, name, enforced, block, is_minimum=False)
    for name, enforced in item.ratio.items():
        yield from _beyond_ratio(item.type, name, enforced, block)


def _beyond_bound(kind: str, name: str, enforced: int, block: Requirements, *, is_minimum: bool) -> Iterator[str]:
    """The first that breaks a bound; a minimum needs a request, and a maximum a limit."""
    request, limit = block.requests.get(name), block.limits.get(name)
    requested, limited, bound = _comparable(request, limit, enforced)
    sides = [("request", request, requested < bound), ("limit", limit, limited < bound)]
    if not is_minimum:
        sides = [("limit", limit, limited > bound), ("request", request, requested > bound)]
    violation = f"{'minimum' if is_minimum else 'maximum'} {name} per {kind} is {text_of(enforced, name)}"
    if sides[0][1] is None:
        yield f"{violation}, and no {sides[0][0]} is set"
        return
    broken = [(word, amount) for word, amount, beyond in sides if amount is not None and beyond]
    yield from (f"{violation}, but the {word} is {text_of(amount, name)}" for word, amount in broken[:1])


def _beyond_ratio(kind: str, name: str, enforced: int, block: Requirements) -> Iterator[str]:
    request, limit = block.requests.get(name) or 0, block.limits.get(name) or 0
    bound = f"maximum {name} limit/request ratio per {kind} is {enforced / MILLI:g}"
    if not request or not limit:
        yield f"{bound}, and no {'request' if not request else 'limit'} is set"
        return
    requested, limited, _ = _comparable(request, limit, enforced)
    # In doubles and in this order, as the API server computes it.
    if limited / requested * MILLI > enforced:
        yield f"{bound}, but it is {limited / requested:.4g}"


def _comparable(request: int | None, limit: int | None, enforced: int) -> tuple[int, int, int]:
    """The three at the precision that the API server compares them at."""
    milli = (request or 0, limit or 0, enforced)
    units = (whole(milli[0]), whole(milli[1]), whole(milli[2]))
    return milli if max(units) <= _LARGEST_COMPARED_EXACTLY else units

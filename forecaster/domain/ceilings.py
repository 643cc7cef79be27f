"""Bounds of the platform on the policies that owners of namespaces may state, and whether their objects are read."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from forecaster.domain.policy import HorizontalPolicy, Mode, Policy
from forecaster.domain.settings import Section


class OwnerCeiling(Section):
    """Bounds on the annotations and PredictiveAutoscalers of some namespaces; null means no bound."""

    namespace: str = Field("*", description="Pattern of the namespaces, e.g. `team-*`; of several, the first counts.")
    modes: tuple[Mode, ...] | None = Field(None, description="Modes that owners may state.")
    replicas: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Most replicas that owners may state: min_replicas, max_replicas and those of events."
    )
    events: Annotated[int, Field(ge=0)] | None = Field(None, description="Most events that owners may state.")
    quantile: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="Highest quantile of the forecast peak that owners may state."
    )
    evict: bool = Field(default=True, description="Whether owners may have pods evicted for another size.")


def ceiling_of(ceilings: tuple[OwnerCeiling, ...], namespace: str) -> OwnerCeiling | None:
    """The first ceiling that means this namespace; None where owners are not bounded."""
    return next((ceiling for ceiling in ceilings if fnmatchcase(namespace, ceiling.namespace)), None)


def excess_of(before: Policy, after: Policy, ceiling: OwnerCeiling) -> str:
    """Name the values beyond the ceiling in an owner's layer, which turns `before` into `after`; else empty.

    Values that the platform itself states may exceed the ceiling, and may be repeated by an owner.
    """
    beyond = "; ".join(_beyond(before, after, ceiling))
    return f"{beyond} (resources.owners of {ceiling.namespace!r})" if beyond else ""


def _beyond(before: Policy, after: Policy, ceiling: OwnerCeiling) -> Iterator[str]:
    if ceiling.modes is not None and after.mode != before.mode and after.mode not in ceiling.modes:
        yield f"mode {after.mode} is not one that owners may state: {', '.join(ceiling.modes) or 'none'}"
    if ceiling.replicas is not None:
        count = max((count for _, count in _counts(after.horizontal) - _counts(before.horizontal)), default=0)
        if count > ceiling.replicas:
            yield f"{count} replicas are more than the {ceiling.replicas} that owners may state"
    events = len(after.horizontal.events)
    if ceiling.events is not None and events > ceiling.events and after.horizontal.events != before.horizontal.events:
        yield f"{events} events are more than the {ceiling.events} that owners may state"
    quantile = after.horizontal.quantile
    if ceiling.quantile is not None and quantile > max(ceiling.quantile, before.horizontal.quantile):
        yield f"a quantile of {quantile:g} is above the {ceiling.quantile:g} that owners may state"
    if after.vertical.evict and not before.vertical.evict and not ceiling.evict:
        yield "evict: true is not for owners to state"


def _counts(policy: HorizontalPolicy) -> set[tuple[object, int]]:
    """Return every count of replicas in a policy, with the setting that states it."""
    events = ((event, event.replicas) for event in policy.events)
    stated = (("min_replicas", policy.min_replicas), ("max_replicas", policy.max_replicas), *events)
    return {(source, count) for source, count in stated if count is not None}


class ResourceSettings(Section):
    """PredictiveAutoscaler and PredictivePolicy of the cluster."""

    enabled: bool = Field(
        default=False,
        description="Whether they are read, and the status of PredictiveAutoscalers is written by the replica that "
        "holds the Lease `acting.lease`. Needs live facts and deploy/components/resources.",
    )
    owners: tuple[OwnerCeiling, ...] = Field(
        (),
        description="How far annotations and PredictiveAutoscalers may go, by namespace. What goes beyond is left out "
        "as a whole, with a condition on the object; what the platform states is not bounded.",
    )

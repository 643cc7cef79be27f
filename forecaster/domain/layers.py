"""Layers of policies: values stated by settings, objects of the cluster and annotations, each over the others.

The platform may bound what owners of namespaces state in them (`OwnerCeiling`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import Field

from forecaster.domain.policy import HorizontalPolicy, Mode, Policy, PolicySelector
from forecaster.domain.settings import Section
from forecaster.domain.workload import WorkloadId

NestedPolicy: TypeAlias = Mapping[str, Any]
PAUSED_POLICY: NestedPolicy = MappingProxyType({"mode": "observe"})
"""Policy of a paused workload: recommendations only; nothing is published for reading or written."""


@dataclass(frozen=True)
class Layer:
    """A part of a policy, in the names of the settings, and what states it."""

    origin: str
    """Origin of the layer in words, e.g. `HPA shop/web, annotation forecaster.dev/mode`."""
    policy: NestedPolicy

    @cached_property
    def text(self) -> str:
        """Equal for layers that say the same."""
        return json.dumps(dict(self.policy), sort_keys=True, default=str)

    @property
    def observes(self) -> bool:
        """Whether it states mode observe."""
        return bool(self.policy.get("mode") == PAUSED_POLICY["mode"])

    @property
    def events(self) -> int:
        """Number of stated events; 0 where the layer is not a policy."""
        horizontal = self.policy.get("horizontal")
        events = horizontal.get("events") if isinstance(horizontal, dict) else None
        return len(events) if isinstance(events, list) else 0

    def without_events(self) -> Layer:
        """Return the layer without its events."""
        if not self.events:
            return self
        stated = self.policy.get("horizontal", {})  # absent of what cannot be read, which is refused as a whole
        horizontal = {name: value for name, value in stated.items() if name != "events"}
        return Layer(self.origin, {**self.policy, "horizontal": horizontal})


@dataclass(frozen=True, slots=True)
class ClusterPolicies:
    """Policies stated by objects of the cluster."""

    defaults: tuple[tuple[PolicySelector, Layer], ...] = ()
    """Layers by selector, below the overrides of the settings; the later one wins."""
    own: Mapping[WorkloadId, tuple[Layer, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Layers of single workloads, above the overrides of the settings; the later one wins."""
    labels: Mapping[WorkloadId, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    """Labels of workloads, by which selectors match; a workload that is absent matches no selector by label."""
    faults: tuple[str, ...] = ()
    """Objects that could not be read: a sentence each, with the object and the value."""


NOTHING_STATED = ClusterPolicies()


class Origin(NamedTuple):
    """One stated setting of a workload's policy, its layer, and the layers below it."""

    path: str
    value: object
    origin: str
    over: tuple[tuple[object, str], ...] = ()
    """Other values that lower layers state, each with its origin, the lowest first."""


def leaf_origins(layers: Iterable[Layer]) -> list[Origin]:
    """Each setting that the layers state, by path; the last layer wins. The lowest layer comes first."""
    origins: dict[str, Origin] = {}
    for layer in layers:
        for path, value in leaves(layer.policy):
            before = origins.get(path)
            over = () if before is None else before.over
            if before is not None and before.value != value:
                over = (*over, (before.value, before.origin))
            origins[path] = Origin(path, value, layer.origin, over)
    return sorted(origins.values(), key=lambda leaf: leaf.path)


def leaves(policy: NestedPolicy, before: str = "") -> Iterator[tuple[str, object]]:
    """The settings of a nested policy by their paths."""
    for name, value in policy.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{before}{name}.")
        else:
            yield before + name, value


def origin_sentences(origins: Sequence[Origin]) -> list[str]:
    """Return one sentence for each leaf: its value, its layer, and the layers below."""
    return [f"Policy: {leaf.path} {_shown(leaf.value)} by {leaf.origin}{_over(leaf)}." for leaf in origins]


def _over(leaf: Origin) -> str:
    return "".join(f", over {_shown(value)} by {origin}" for value, origin in leaf.over)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def merged(base: NestedPolicy, over: NestedPolicy) -> dict[str, object]:
    """`base` with the leaves of `over` put in; neither is changed."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


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

"""Layers of policies: values stated by settings, objects of the cluster and annotations, each over the others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from forecaster.domain.policy import PolicySelector
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

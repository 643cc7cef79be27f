"""Policies stated by objects of the cluster: watches of the custom resources, and the last known statements.

Annotations `forecaster.dev/...` of HPAs and workloads state a few settings without one object more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, get_origin

import msgspec
from pydantic import BaseModel, ValidationError

from forecaster.domain.event import MAX_REPLICAS
from forecaster.domain.layers import PAUSED_POLICY, ClusterPolicies, Layer, merged
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.policy_numbers import value_types
from forecaster.domain.settings import allowed
from forecaster.domain.workload import WorkloadId
from forecaster.errors import nearest
from forecaster.kube.collection import Collection
from forecaster.kube.objects import ANNOTATION_PREFIX
from forecaster.kube.watch import Watch
from forecaster.resources.objects import (
    AUTOSCALERS,
    DEFAULT_POLICIES,
    AutoscalerResource,
    CustomResource,
    PolicyResource,
    autoscaler_of_resource,
    path_of_all,
    policy_of_resource,
)

MODE, PAUSED = f"{ANNOTATION_PREFIX}mode", f"{ANNOTATION_PREFIX}paused"


def _annotations_of(section: type[BaseModel], *within: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the annotation of each setting of a section that is one value, with the path of the setting."""
    for name, declared in section.model_fields.items():
        kinds = {get_origin(kind) or kind for kind in value_types(declared.annotation)}
        if not any(kind is tuple or issubclass(kind, BaseModel) for kind in kinds if isinstance(kind, type)):
            yield f"{ANNOTATION_PREFIX}{name.replace('_', '-')}", (*within, name)


ANNOTATION_SETTINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {**dict(_annotations_of(HorizontalPolicy, "horizontal")), **dict(_annotations_of(Policy))}
)
"""The setting that each annotation states: every single value of `policy` and of `policy.horizontal`."""
VALUE_SHOWN = 40
"""Characters of a value that cannot be read."""
NAMES_COMPARED = 1
"""Unknown names of one object that are compared with the known ones, at most: each takes 100 µs."""
VALUE_MAX, NAMES_MAX = 64, 32
"""Longest value that is read, and annotations read of one object: an owner may write 256 KiB, settings are short."""

PERMITTING = {"sizing": "newsvendor", "scale_in_by_forecast": True, "min_replicas": 1, "max_replicas": MAX_REPLICAS}
"""Values beside which each setting may have any value: dependencies are checked where layers are combined."""
WRITTEN = ("-before", "-by", "-expires", "-until")
"""Endings of the annotations that our own writes leave."""
KNOWN_ANNOTATIONS = [name.removeprefix(ANNOTATION_PREFIX) for name in (*ANNOTATION_SETTINGS, PAUSED)]
READ = frozenset({*ANNOTATION_SETTINGS, PAUSED})
"""Annotations with a value that matters: those that our writes leave change often, and would fill the cache."""


class Annotated(NamedTuple):
    """Policy stated by the annotations of one object."""

    layer: Layer | None = None
    pause: Layer | None = None
    """Above the annotations of every other object of the workload."""
    faults: tuple[str, ...] = ()


NO_ANNOTATIONS = Annotated()


def annotated(annotations: Mapping[str, str], described: str) -> Annotated:
    """Read the policy from the annotations of an object; `described` names it, e.g. `HPA shop/web`.

    An unreadable annotation states nothing and is a fault; an unreadable mode or pause counts as `observe`.
    """
    own = sorted(name for name in annotations if name.startswith(ANNOTATION_PREFIX))
    stated = [(name, annotations[name][: VALUE_MAX + 1]) for name in own if name in READ][:NAMES_MAX]
    unknown = [(name, "") for name in own if name not in READ and not name.endswith(WRITTEN)][:NAMES_COMPARED]
    return _annotated((*stated, *unknown), described) if stated or unknown else NO_ANNOTATIONS


@lru_cache(maxsize=1 << 15)
def _annotated(annotations: tuple[tuple[str, str], ...], described: str) -> Annotated:
    policy: dict[str, object] = {}
    pause, faults = None, []
    for name, text in annotations:
        bare = name.removeprefix(ANNOTATION_PREFIX)
        if name in ANNOTATION_SETTINGS:
            fault = _put(policy, ANNOTATION_SETTINGS[name], text)
            faults += [f"{described}: annotation {name} is {text[:VALUE_SHOWN]!r}: {fault}"] if fault else []
        elif name == PAUSED:
            pause = None if text == "false" else Layer(f"annotation {PAUSED} of {described}", PAUSED_POLICY)
            if text not in {"true", "false"}:
                faults.append(
                    f"{described}: annotation {name} is {text[:VALUE_SHOWN]!r}, taken for true; use true or false"
                )
        else:
            near = nearest(bare, KNOWN_ANNOTATIONS, 1)
            hint = f"{described}: there is no annotation {name}; did you mean {ANNOTATION_PREFIX}"
            faults += [f"{hint}{similar}?" for similar in near]
    layer = Layer(f"annotations of {described}", policy) if policy else None
    return Annotated(layer, pause, tuple(faults))


def _put(policy: dict[str, object], path: tuple[str, ...], text: str) -> str:
    """Put one setting into a policy; return its fault, in which case it is left out, or `observe` for a mode."""
    *sections, name = path
    nested: dict[str, object] = {name: text}
    for section in reversed(sections):
        nested = {section: nested}
    fault = f"longer than {VALUE_MAX} characters" if len(text) > VALUE_MAX else _fault_of(nested)
    if fault and path != ("mode",):
        return fault
    text = "observe" if fault else text
    place = policy
    for section in sections:
        place = place.setdefault(section, {})  # type: ignore[assignment]  # sections hold sections
    place[name] = text
    return fault


def _fault_of(stated: Mapping[str, object]) -> str:
    """Say why a setting is wrong by itself; empty where it is not."""
    try:
        Policy.model_validate(merged({"horizontal": PERMITTING}, stated))
    except ValidationError as error:
        return "; ".join(allowed(detail) for detail in error.errors(include_url=False))
    return ""


class AnnotatedObject(NamedTuple):
    """An object with annotations of ours, and the workload that they are about."""

    described: str
    workload: WorkloadId
    annotations: Mapping[str, str]


@dataclass(slots=True)
class _Own:
    layers: list[Layer] = field(default_factory=list)
    pauses: list[Layer] = field(default_factory=list)


def cluster_policies(
    defaults: Sequence[PolicyResource] = (),
    autoscalers: Sequence[AutoscalerResource] = (),
    workloads: Iterable[AnnotatedObject] = (),
    hpas: Iterable[AnnotatedObject] = (),
    labels: Mapping[WorkloadId, Mapping[str, str]] | None = None,
) -> ClusterPolicies:
    """Join PredictivePolicies by name, and by workload its PredictiveAutoscaler and annotations.

    Above the object are the workload's own annotations, above these those of its HPA, above all of them any pause.
    """
    own: dict[WorkloadId, _Own] = defaultdict(_Own)
    by_name, faults = sorted(defaults, key=lambda policy: policy.name), []
    for autoscaler in sorted(autoscalers, key=lambda autoscaler: autoscaler.name):
        before = own[autoscaler.target].layers
        if before:
            faults.append(f"{autoscaler.layer.origin}: {before[-1].origin} has the same target; the later name wins")
        before.append(autoscaler.layer)
    faults += filter(None, [*(policy.fault for policy in by_name), *(autoscaler.fault for autoscaler in autoscalers)])
    for annotated_object in (*workloads, *hpas):
        from_annotations = annotated(annotated_object.annotations, annotated_object.described)
        faults += from_annotations.faults
        if from_annotations.layer:
            own[annotated_object.workload].layers.append(from_annotations.layer)
        if from_annotations.pause:
            own[annotated_object.workload].pauses.append(from_annotations.pause)
    stated = {id_: (*part.layers, *part.pauses) for id_, part in own.items() if part.layers or part.pauses}
    selected = tuple((policy.selector, policy.layer) for policy in by_name)
    return ClusterPolicies(selected, stated, labels or {}, tuple(faults))


class StatedPolicies:
    """PredictiveAutoscalers and PredictivePolicies, as they were known last.

    A cluster without their definitions, or without the right to list them, has none; the state of each watch says why.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        plurals = (AUTOSCALERS, DEFAULT_POLICIES)
        autoscalers, policies = (Collection(path_of_all(plural), CustomResource) for plural in plurals)
        self.autoscalers = Watch(autoscalers, autoscaler_of_resource, clock=clock)
        self.policies = Watch(policies, policy_of_resource, clock=clock)

    @property
    def watches(self) -> tuple[Watch[Any, Any], ...]:
        """Return the two watches."""
        return self.autoscalers, self.policies


class StatedObjects(msgspec.Struct, frozen=True):
    """Objects of a cluster that state policies, by the collections that they are of."""

    hpas: tuple[AnnotatedObject, ...] = ()
    workloads: tuple[AnnotatedObject, ...] = ()
    autoscalers: tuple[AutoscalerResource, ...] = ()
    defaults: tuple[PolicyResource, ...] = ()
    labels: tuple[tuple[WorkloadId, Mapping[str, str]], ...] = ()
    """Labels of workloads."""

    def persisted(self) -> StatedObjects:
        """Return the objects without what states nothing and changes often: annotations of writes, statuses."""
        return StatedObjects(
            tuple(sorted(filter(None, map(_stating, self.hpas)))),
            tuple(sorted(filter(None, map(_stating, self.workloads)))),
            tuple(msgspec.structs.replace(autoscaler, status=msgspec.Raw(b"{}")) for autoscaler in self.autoscalers),
            tuple(msgspec.structs.replace(policy, status=msgspec.Raw(b"{}")) for policy in self.defaults),
            tuple(sorted(self.labels, key=lambda labels: labels[0])),
        )


@dataclass(slots=True)
class StatedBefore:
    """Last known stated policies, also from an earlier process; they apply to collections that are not listed yet."""

    objects: StatedObjects = field(default_factory=StatedObjects)

    def encoded(self) -> bytes:
        """Encode as JSON."""
        return msgspec.json.encode(self.objects.persisted(), enc_hook=lambda selector: selector.model_dump())

    def restore(self, persisted: bytes) -> None:
        """Restore the statements of an earlier process. Raises `msgspec.MsgspecError` where it is something else."""
        self.objects = msgspec.json.decode(persisted, type=StatedObjects, dec_hook=_read)


def _read(kind: Any, text: Any) -> Any:
    """A selector, which is no type of msgspec."""
    return kind.model_validate(text)


def _stating(annotated: AnnotatedObject) -> AnnotatedObject | None:
    annotations = {
        name: text for name, text in annotated.annotations.items() if name in ANNOTATION_SETTINGS or name == PAUSED
    }
    return annotated._replace(annotations=annotations) if annotations else None

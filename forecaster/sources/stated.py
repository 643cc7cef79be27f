"""Policies stated by objects of the cluster: watches of the custom resources, and the last known statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from forecaster.domain.layers import ClusterPolicies, Layer
from forecaster.domain.workload import WorkloadId
from forecaster.kube.collection import Collection
from forecaster.kube.watch import Watch
from forecaster.resources.annotations import ANNOTATION_SETTINGS, PAUSED, annotated
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

"""Policies stated by all objects of a cluster, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping  # noqa: TC003  msgspec resolves the annotations
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.layers import ClusterPolicies, Layer
from forecaster.domain.workload import WorkloadId  # noqa: TC001  msgspec resolves the annotations
from forecaster.resources.annotations import annotated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forecaster.resources.objects import AutoscalerResource, PolicyResource


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

"""What all objects of a cluster state of policies, put in order."""

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
    """What they state together: PredictivePolicies by name; by workload its PredictiveAutoscaler and annotations.

    Above the object are the workload's own annotations, above these those of its HPA, above all of them any pause.
    """
    own: dict[WorkloadId, _Own] = defaultdict(_Own)
    by_name, faults = sorted(defaults, key=lambda one: one.name), []
    for one in sorted(autoscalers, key=lambda one: one.name):
        before = own[one.target].layers
        if before:
            faults.append(f"{one.layer.origin}: {before[-1].origin} has the same target; the later name wins")
        before.append(one.layer)
    faults += filter(None, [*(one.fault for one in by_name), *(one.fault for one in autoscalers)])
    for each in (*workloads, *hpas):
        found = annotated(each.annotations, each.described)
        faults += found.faults
        if found.layer:
            own[each.workload].layers.append(found.layer)
        if found.pause:
            own[each.workload].pauses.append(found.pause)
    stated = {id_: (*one.layers, *one.pauses) for id_, one in own.items() if one.layers or one.pauses}
    selected = tuple((one.selector, one.layer) for one in by_name)
    return ClusterPolicies(selected, stated, labels or {}, tuple(faults))

"""What each query of the inventory says, by workload or by HPA."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from forecaster.domain.workload import Target, TargetType, WorkloadId
from forecaster.sources.blocks import owner_of, workload_of
from forecaster.sources.samples import single_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from forecaster.sources.wire import Answer

_TARGET_TYPES = {
    "utilization": TargetType.UTILIZATION,
    "average": TargetType.AVERAGE_VALUE,
    "value": TargetType.VALUE,
}
_PERCENT = 100.0


class Row(NamedTuple):
    """One series of an instant answer."""

    labels: Mapping[str, str]
    value: float


class HpaName(NamedTuple):
    """Identity of an HPA."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the queries of these names say about specifications; empty until they are asked."""

    pod_requests: Mapping[WorkloadId, Mapping[str, float]] = field(default_factory=dict)
    pod_limits: Mapping[WorkloadId, Mapping[str, float]] = field(default_factory=dict)
    hpa_scale_targets: Mapping[WorkloadId, Sequence[HpaName]] = field(default_factory=dict)
    hpa_min_replicas: Mapping[HpaName, float] = field(default_factory=dict)
    hpa_max_replicas: Mapping[HpaName, float] = field(default_factory=dict)
    hpa_metric_targets: Mapping[HpaName, Sequence[Target]] = field(default_factory=dict)

    def renewed(self, name: str, rows: Sequence[Row]) -> Facts:
        """The same with a new answer of one query."""
        return replace(self, **{name: _READ[name](rows)})


def rows_of(answer: Answer) -> tuple[Row, ...]:
    """Every series of an instant answer with a finite, non-negative value. Raises `MalformedAnswer`."""
    pairs = zip(answer.series, single_values(answer.series).tolist(), strict=True)
    return tuple(Row(one.metric, value) for one, value in pairs if not math.isnan(value))


def by_workload(answer: Answer) -> dict[WorkloadId, float]:
    """The finite, non-negative value of each workload in an instant answer. Raises `MalformedAnswer`."""
    pairs = zip(answer.series, single_values(answer.series).tolist(), strict=True)
    return {one: value for series, value in pairs if not math.isnan(value) and (one := owner_of(series))}


def _by_resource(rows: Sequence[Row]) -> dict[WorkloadId, dict[str, float]]:
    amounts: dict[WorkloadId, dict[str, float]] = defaultdict(dict)
    for row in rows:
        resource = row.labels.get("resource")
        if resource in {"cpu", "memory"} and (one := workload_of(row.labels)):
            amounts[one][resource] = row.value
    return amounts


def _owned(rows: Sequence[Row]) -> dict[WorkloadId, list[HpaName]]:
    owned: dict[WorkloadId, list[HpaName]] = defaultdict(list)
    for row, hpa in _with_hpa(rows):
        kind, name = row.labels.get("scaletargetref_kind", ""), row.labels.get("scaletargetref_name", "")
        owned[WorkloadId(hpa.namespace, kind, name)].append(hpa)
    return {workload: sorted(names) for workload, names in owned.items()}


def _by_hpa(rows: Sequence[Row]) -> dict[HpaName, float]:
    return {hpa: row.value for row, hpa in _with_hpa(rows)}


def _targets(rows: Sequence[Row]) -> dict[HpaName, list[Target]]:
    """In alphabetical order of the metric, because the order of series is the server's."""
    targets: dict[HpaName, list[Target]] = defaultdict(list)
    for row, hpa in _with_hpa(rows):
        kind = _TARGET_TYPES.get(row.labels.get("metric_target_type", ""))
        if kind:
            value = row.value / _PERCENT if kind is TargetType.UTILIZATION else row.value
            targets[hpa].append(Target(row.labels.get("metric_name", ""), kind, value))
    return {hpa: sorted(found, key=lambda target: (target.metric, target.type)) for hpa, found in targets.items()}


def _with_hpa(rows: Sequence[Row]) -> Iterator[tuple[Row, HpaName]]:
    for row in rows:
        yield row, HpaName(row.labels.get("namespace", ""), row.labels.get("horizontalpodautoscaler", ""))


_READ: Mapping[str, Callable[[Sequence[Row]], Any]] = {
    "hpa_max_replicas": _by_hpa,
    "hpa_metric_targets": _targets,
    "hpa_min_replicas": _by_hpa,
    "hpa_scale_targets": _owned,
    "pod_limits": _by_resource,
    "pod_requests": _by_resource,
}
SPECIFICATIONS = tuple(_READ)
"""Names of the queries whose answers change when somebody changes a specification, and not by themselves."""

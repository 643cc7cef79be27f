"""Inventory: what kube-state-metrics says about workloads and their HPAs, put together."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.history import Inventory
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.sources.blocks import workload_of
from forecaster.sources.samples import single_values

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from forecaster.sources.wire import Answer

_TARGET_TYPES = {
    "utilization": TargetType.UTILIZATION,
    "average": TargetType.AVERAGE_VALUE,
    "value": TargetType.VALUE,
}
_PERCENT = 100.0
_DEFAULT_MIN_REPLICAS = 1
"""`spec.minReplicas` of autoscaling/v2 when it is absent."""


class Row(NamedTuple):
    """One series of an instant answer."""

    labels: Mapping[str, str]
    value: float


class _HpaName(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def rows_of(answer: Answer) -> tuple[Row, ...]:
    """Every series of an instant answer with a finite, non-negative value. Raises `MalformedAnswer`."""
    pairs = zip(answer.series, single_values(answer.series).tolist(), strict=True)
    return tuple(Row(one.metric, value) for one, value in pairs if not math.isnan(value))


def inventory_of(at: datetime, rows: Mapping[str, Sequence[Row]], kinds: Collection[str]) -> Inventory:
    """Every workload of these kinds. `rows` holds the answers by the names of `Queries.inventory`."""
    faults: list[str] = []
    autoscalers = _autoscalers(rows, faults)
    replicas, ready = _by_workload(rows["replicas"]), _by_workload(rows["ready_replicas"])
    resources = _resources(rows)
    known = [one for one in sorted(replicas) if one.kind in kinds]
    faults += [f"{one.kind} {one}: no series tells its ready replicas; left out" for one in known if one not in ready]
    faults += _pointless(autoscalers, replicas, kinds)
    workloads = tuple(
        Workload(
            id=one,
            replicas=round(replicas[one]),
            ready_replicas=round(ready[one]),
            resources=resources.get(one, Resources()),
            autoscaler=autoscalers.get(one),
        )
        for one in known
        if one in ready
    )
    return Inventory(at, workloads, tuple(faults))


def _by_workload(rows: Sequence[Row]) -> dict[WorkloadId, float]:
    return {one: row.value for row in rows if (one := workload_of(row.labels))}


def _resources(rows: Mapping[str, Sequence[Row]]) -> dict[WorkloadId, Resources]:
    stated: dict[WorkloadId, dict[str, float]] = defaultdict(dict)
    for name, what in (("pod_requests", "request"), ("pod_limits", "limit")):
        for row in rows[name]:
            resource = row.labels.get("resource")
            if resource in {"cpu", "memory"} and (one := workload_of(row.labels)):
                stated[one][f"{resource}_{what}"] = row.value
    return {one: Resources(**amounts) for one, amounts in stated.items()}


def _autoscalers(rows: Mapping[str, Sequence[Row]], faults: list[str]) -> dict[WorkloadId, Autoscaler]:
    """The HPA of each workload. One that cannot be understood is named in `faults` and left out."""
    lowest, highest = _by_hpa(rows["hpa_min_replicas"]), _by_hpa(rows["hpa_max_replicas"])
    targets = _targets(rows["hpa_metric_targets"])
    found: dict[WorkloadId, Autoscaler] = {}
    for workload, names in _owned(rows["hpa_scale_targets"]).items():
        if len(names) > 1:
            several = ", ".join(hpa.name for hpa in names)
            faults.append(f"{workload.kind} {workload}: scaled by more than one HPA ({several}); none is used")
        elif names[0] not in highest:
            faults.append(f"HPA {names[0]}: no series tells its maxReplicas; not used")
        else:
            hpa = names[0]
            low = round(lowest.get(hpa, _DEFAULT_MIN_REPLICAS))
            found[workload] = Autoscaler(hpa.name, low, round(highest[hpa]), tuple(targets.get(hpa, ())))
    return found


def _owned(rows: Sequence[Row]) -> dict[WorkloadId, list[_HpaName]]:
    owned: dict[WorkloadId, list[_HpaName]] = defaultdict(list)
    for row, hpa in _with_hpa(rows):
        kind, name = row.labels.get("scaletargetref_kind", ""), row.labels.get("scaletargetref_name", "")
        owned[WorkloadId(hpa.namespace, kind, name)].append(hpa)
    return {workload: sorted(names) for workload, names in owned.items()}


def _by_hpa(rows: Sequence[Row]) -> dict[_HpaName, float]:
    return {hpa: row.value for row, hpa in _with_hpa(rows)}


def _targets(rows: Sequence[Row]) -> dict[_HpaName, list[Target]]:
    """In alphabetical order of the metric, because the order of series is the server's."""
    targets: dict[_HpaName, list[Target]] = defaultdict(list)
    for row, hpa in _with_hpa(rows):
        kind = _TARGET_TYPES.get(row.labels.get("metric_target_type", ""))
        if kind:
            value = row.value / _PERCENT if kind is TargetType.UTILIZATION else row.value
            targets[hpa].append(Target(row.labels.get("metric_name", ""), kind, value))
    return {hpa: sorted(found, key=lambda target: (target.metric, target.type)) for hpa, found in targets.items()}


def _with_hpa(rows: Sequence[Row]) -> Iterator[tuple[Row, _HpaName]]:
    for row in rows:
        yield row, _HpaName(row.labels.get("namespace", ""), row.labels.get("horizontalpodautoscaler", ""))


def _pointless(
    autoscalers: Mapping[WorkloadId, Autoscaler], replicas: Mapping[WorkloadId, float], kinds: Collection[str]
) -> list[str]:
    missing = [one for one in autoscalers if one.kind in kinds and one not in replicas]
    return [
        f"HPA {one.namespace}/{autoscalers[one].name}: scales {one.kind} {one.name}, which no series describes"
        for one in sorted(missing)
    ]

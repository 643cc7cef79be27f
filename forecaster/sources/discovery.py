"""Inventory: what kube-state-metrics says about workloads and their HPAs, put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.domain.window import Inventory
from forecaster.domain.workload import Autoscaler, Resources, Workload, WorkloadId

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from forecaster.sources.facts import Facts

_DEFAULT_MIN_REPLICAS = 1
"""`spec.minReplicas` of autoscaling/v2 when it is absent."""


@dataclass(frozen=True, slots=True)
class Specifications:
    """What people and HPAs ask for, by workload; `faults` names what could not be understood."""

    resources: Mapping[WorkloadId, Resources] = field(default_factory=dict)
    autoscalers: Mapping[WorkloadId, Autoscaler] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def specifications_of(facts: Facts) -> Specifications:
    """Requests and limits of each workload, and its HPA."""
    faults: list[str] = []
    return Specifications(_resources(facts), _autoscalers(facts, faults), tuple(faults))


def inventory_of(
    at: datetime,
    replicas: Mapping[WorkloadId, float],
    ready: Mapping[WorkloadId, float],
    specified: Specifications,
    kinds: Collection[str],
) -> Inventory:
    """Every workload of these kinds, with the pods that were asked for and those that are ready."""
    known = [one for one in sorted(replicas) if one.kind in kinds]
    workloads = tuple(
        Workload(
            id=one,
            replicas=round(replicas[one]),
            ready_replicas=round(ready[one]),
            resources=specified.resources.get(one, Resources()),
            autoscaler=specified.autoscalers.get(one),
        )
        for one in known
        if one in ready
    )
    silent = [f"{one.kind} {one}: no series tells its ready replicas; left out" for one in known if one not in ready]
    return Inventory(at, workloads, (*specified.faults, *silent, *_pointless(specified.autoscalers, replicas, kinds)))


def _resources(facts: Facts) -> dict[WorkloadId, Resources]:
    nothing: Mapping[str, float] = {}
    return {
        one: Resources(
            cpu_request=(requests := facts.pod_requests.get(one, nothing)).get("cpu"),
            cpu_limit=(limits := facts.pod_limits.get(one, nothing)).get("cpu"),
            memory_request=requests.get("memory"),
            memory_limit=limits.get("memory"),
        )
        for one in facts.pod_requests.keys() | facts.pod_limits.keys()
    }


def _autoscalers(facts: Facts, faults: list[str]) -> dict[WorkloadId, Autoscaler]:
    """The HPA of each workload. One that cannot be understood is named in `faults` and left out."""
    found: dict[WorkloadId, Autoscaler] = {}
    for workload, names in facts.hpa_scale_targets.items():
        hpa = names[0]
        if len(names) > 1:
            several = ", ".join(hpa.name for hpa in names)
            faults.append(f"{workload.kind} {workload}: scaled by more than one HPA ({several}); none is used")
        elif hpa not in facts.hpa_max_replicas:
            faults.append(f"HPA {hpa}: no series tells its maxReplicas; not used")
        else:
            lowest = round(facts.hpa_min_replicas.get(hpa, _DEFAULT_MIN_REPLICAS))
            targets = tuple(facts.hpa_metric_targets.get(hpa, ()))
            found[workload] = Autoscaler(hpa.name, lowest, round(facts.hpa_max_replicas[hpa]), targets)
    return found


def _pointless(
    autoscalers: Mapping[WorkloadId, Autoscaler], replicas: Mapping[WorkloadId, float], kinds: Collection[str]
) -> list[str]:
    missing = [one for one in autoscalers if one.kind in kinds and one not in replicas]
    return [
        f"HPA {one.namespace}/{autoscalers[one].name}: scales {one.kind} {one.name}, which no series describes"
        for one in sorted(missing)
    ]

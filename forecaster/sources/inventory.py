"""Inventory: what kube-state-metrics says about workloads and their HPAs; specifications are read in rotation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.domain.window import Inventory
from forecaster.domain.workload import Autoscaler, Resources, Workload, WorkloadId
from forecaster.sources.facts import SPECIFICATIONS, Facts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime, timedelta

    from forecaster.sources.facts import InstantRow


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


class Rotation:
    """The last answer to each query about specifications, none older than `every` when it is used.

    All are asked at first and whenever a workload appears, which has an HPA and requests from its first cycle on. From
    then on they fall due one after the other, so that no cycle carries all of them.
    """

    def __init__(self, every: timedelta) -> None:
        self._every = every
        self._due_at: dict[str, datetime] = {}
        self._familiar: frozenset[WorkloadId] = frozenset()
        self._facts = Facts()
        self._made = Specifications()

    def specifications(
        self, at: datetime, ids: Collection[WorkloadId], ask: Callable[[str], Sequence[InstantRow]]
    ) -> Specifications:
        """Those of `ids` at `at`, after asking what is due by its name."""
        due = self._due(at, ids)
        for i, name in enumerate(due, 1):
            self._facts = self._facts.renewed(name, ask(name))
            self._due_at[name] = at + self._every * i / len(due)
        if due:
            self._made = specifications_of(self._facts)
        self._familiar = frozenset(ids)
        return self._made

    def _due(self, at: datetime, ids: Collection[WorkloadId]) -> list[str]:
        if not self._due_at or not self._familiar.issuperset(ids):
            return list(SPECIFICATIONS)
        return [name for name in SPECIFICATIONS if not at < self._due_at[name] <= at + self._every]

"""A workload as the cluster's own series describe it: who it is, how many pods it has, what its HPA wants."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class WorkloadId(NamedTuple):
    """Identity of a scalable object. Two kinds may share a name, so the kind belongs to it."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TargetType(StrEnum):
    """How an HPA metric target is stated (autoscaling/v2)."""

    UTILIZATION = "Utilization"
    AVERAGE_VALUE = "AverageValue"
    VALUE = "Value"


@dataclass(frozen=True, slots=True)
class Target:
    """One metric of an HPA.

    `value` is a ratio of the request for `UTILIZATION`, otherwise an amount in the signal's own unit.
    """

    metric: str
    type: TargetType
    value: float


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """The HPA that owns a workload's replica count."""

    name: str
    min_replicas: int
    max_replicas: int
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, slots=True)
class Resources:
    """Requests and limits of one pod, summed over its app containers; None where at least one container states none."""

    cpu_request: float | None = None
    cpu_limit: float | None = None
    memory_request: float | None = None
    memory_limit: float | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """One scalable object at one instant."""

    id: WorkloadId
    replicas: int
    """`spec.replicas`: what was asked for."""
    ready_replicas: int
    resources: Resources = field(default_factory=Resources)
    autoscaler: Autoscaler | None = None

"""What a replay assumes of the cluster, beside policies and HPAs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.replay.start_up import START_UP, start_up_of
from forecaster.replay.timing import USUAL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from forecaster.domain.workload import Resources, Workload, WorkloadId
    from forecaster.hpa.behavior import Behavior
    from forecaster.replay.setup import Capacity
    from forecaster.replay.start_up import StartUp
    from forecaster.replay.timing import Timing

SWEEP = (1.6, 1.4, 1.25, 1.15, 1.05, 1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
"""Targets as shares of what the owner set: from lean to safe, the knob that every policy has."""
GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Prices:
    """Money for an hour of a core and of a GiB, in whatever currency."""

    core_hour: float = 0.0
    gib_hour: float = 0.0

    def of_pod(self, resources: Resources) -> float:
        """An hour of one pod, by its requests."""
        return self.core_hour * (resources.cpu_request or 0.0) + self.gib_hour * (resources.memory_request or 0.0) / GIB


@dataclass(frozen=True, slots=True)
class Terms:
    """Start-up times are equally likely; a capacity or a behavior that is not stated comes from the workload."""

    start_ups: tuple[timedelta, ...] = (START_UP,)
    timing: Timing = USUAL
    shares: tuple[float, ...] = SWEEP
    every: int = 1
    """Minutes from one forecast to the next."""
    capacities: Mapping[WorkloadId, Capacity] = field(default_factory=dict)
    behaviors: Mapping[WorkloadId, Behavior] = field(default_factory=dict)
    prices: Prices | None = None

    def start_up_of(self, workload: Workload) -> StartUp:
        """The start-up of one workload's pods."""
        return start_up_of(self.start_ups, str(workload.id))

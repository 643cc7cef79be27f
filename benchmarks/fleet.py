"""A fleet of workloads with smooth days, quiet weekends and noise: the same numbers for the same instant, always.

Nothing is stored: the demand at an instant is computed at each request, so that neither the benchmark's own memory
nor its own disk is measured. Good for load on the machinery, of no use for judging forecasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.signal import CPU, DEMAND, MEMORY, PODS, REQUESTS, Signal
from forecaster.domain.window import MINUTE, Block, Inventory
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

GIB = 2.0**30
PER_POD = {CPU: 0.35, MEMORY: 0.6 * GIB, REQUESTS: 40.0}
DAY, WEEK = 86_400.0, 7 * 86_400.0
NOISE = 0.08
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
"""A Wednesday: the week before it holds a weekend."""


@dataclass(frozen=True)
class Fleet:
    """`size` workloads; every second one has an HPA on CPU and memory."""

    size: int

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """Workloads in the order of an inventory."""
        return tuple(sorted(map(_workload, range(self.size)), key=lambda workload: workload.id))

    @cached_property
    def ids(self) -> tuple[WorkloadId, ...]:
        return tuple(workload.id for workload in self.workloads)

    def demand(self, signal: Signal, seconds: Floats) -> Floats:
        """[workload, instant]: total demand, or ready pods, at instants in seconds since the epoch."""
        pods = self._pods
        if signal == PODS:
            return np.broadcast_to(pods, (self.size, len(seconds)))
        mean, swing, phase = self._shapes[signal]
        daily = 1 + swing * np.sin(2 * np.pi * (seconds[None] - phase) / DAY)
        quiet = np.where(((seconds // DAY).astype(int) + 3) % 7 >= 5, 0.7, 1.0)
        return np.asarray(pods * mean * daily * quiet * np.exp(NOISE * self._noise(signal, seconds)))

    @cached_property
    def _pods(self) -> Floats:
        """[workload, 1]: ready pods."""
        return np.array([workload.ready_replicas for workload in self.workloads], np.float64)[:, None]

    @cached_property
    def _shapes(self) -> dict[Signal, tuple[Floats, Floats, Floats]]:
        return {signal: self._shape(signal) for signal in DEMAND}

    def _shape(self, signal: Signal) -> tuple[Floats, Floats, Floats]:
        rng = np.random.default_rng(DEMAND.index(signal))
        size = (self.size, 1)
        return PER_POD[signal] * rng.lognormal(0, 0.5, size), rng.uniform(0.05, 0.7, size), rng.uniform(0, DAY, size)

    def _noise(self, signal: Signal, seconds: Floats) -> Floats:
        at = [(DEMAND.index(signal), int(second)) for second in seconds.tolist()]
        return np.stack([np.random.default_rng(seed).standard_normal(self.size) for seed in at], axis=1)


@dataclass(frozen=True)
class FleetSource:
    """`Source` that computes the fleet's demand, so that only the cycle itself costs."""

    fleet: Fleet
    samples_per_answer: int = 1_000_000

    def inventory(self, at: datetime) -> Inventory:
        return Inventory(at, self.fleet.workloads)

    def latest(self, signal: Signal, at: datetime) -> Block:
        return self._block(signal, at, MINUTE, 1)

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        points, most = (end - start) // step + 1, max(1, self.samples_per_answer // self.fleet.size)
        for first in range(0, points, most):
            yield self._block(signal, start + first * step, step, min(most, points - first))

    def _block(self, signal: Signal, start: datetime, step: timedelta, points: int) -> Block:
        seconds = start.timestamp() + step.total_seconds() * np.arange(points)
        return Block(signal, self.fleet.ids, start, step, self.fleet.demand(signal, seconds))


def _workload(i: int) -> Workload:
    targets = (Target("cpu", TargetType.UTILIZATION, 0.7), Target("memory", TargetType.UTILIZATION, 0.8))
    replicas, name = 2 + i % 9, f"service-{i:05}"
    return Workload(
        id=WorkloadId(f"team-{i % 97:02}", "Deployment", name),
        replicas=replicas,
        ready_replicas=replicas,
        resources=Resources(0.5, 4.0, GIB, 4 * GIB),
        autoscaler=Autoscaler(name, 2, 20, targets) if i % 2 else None,
    )

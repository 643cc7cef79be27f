"""Replicas and size together, from one model of a pod's usage under load.

A pod that carries the load `x` uses `base + per_load * x` of each resource. The total load that is forecast is shared
by the replicas, so every count at the peak implies a size, and every size a utilization at which an HPA keeps that
count; away from the peak the HPA has as many pods of that size as the load then needs. What is forecast is the total,
which does not depend on either: nothing here can chase its own tail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf
from typing import NamedTuple

from forecaster.domain.workload import GIB

NEAR_REFUSED = 0.01
"""Counts that differ by a smaller share need pods of one size, as far as a cluster can show."""
_SLIVER = 1e-9
"""A sliver above a whole pod is the rounding of a quotient, not a reason for one more."""


class LoadStretch(NamedTuple):
    """A part of the coming time, and its highest total load."""

    hours: float
    load: float


@dataclass(frozen=True, slots=True)
class PodModel:
    """Usage of one pod in cores and bytes: without load, and per unit of load."""

    base_cpu: float
    base_memory: float
    cpu_per_load: float
    memory_per_load: float

    def cpu(self, load: float) -> float:
        """Cores at a load per pod."""
        return self.base_cpu + self.cpu_per_load * load

    def memory(self, load: float) -> float:
        """Bytes at a load per pod."""
        return self.base_memory + self.memory_per_load * load


@dataclass(frozen=True, slots=True)
class JointBounds:
    """Bounds of the replicas and of one pod's load; the cluster decides about sizes."""

    min_replicas: int = 1
    max_replicas: int = 100
    least_load: float = 0.0
    most_load: float = inf

    def counts(self, load: float) -> range:
        """Counts that may share a load, and not many others: an HPA may allow two billion."""
        fewest = max(self.min_replicas, int(load / self.most_load), 1)
        most = min(self.max_replicas, int(load / self.least_load) + 1) if self.least_load else self.max_replicas
        return range(fewest, most + 1)


@dataclass(frozen=True, slots=True)
class ResourceCosts:
    """Prices per hour, what starting or stopping a pod costs once, and the share of a request that should be used."""

    core_hour: float = 1.0
    gib_hour: float = 0.13
    pod_start: float = 0.0
    utilization: float = 0.7


class SizePlan(NamedTuple):
    """Pods at the peak, the requests of one in cores and bytes, the cost, and the smallest number of pods."""

    replicas: int
    cpu: float
    memory: float
    cost: float
    least: int


class Infeasible(NamedTuple):
    """No count satisfies every bound; the cheapest plan failed at this one."""

    reason: str


def joint_choice(
    stretches: Sequence[LoadStretch],
    model: PodModel,
    bounds: JointBounds,
    costs: ResourceCosts,
    replicas_now: int,
    refusal: Callable[[SizePlan], str] = lambda _: "",
) -> SizePlan | Infeasible:
    """Return the cheapest count and size for coming total loads (forecast quantiles, never one pod's usage).

    CPU is requested so that the load uses `costs.utilization` of it; memory is requested whole, since it cannot be
    lent. `refusal` says why a plan within the bounds is impossible after all; empty if it is possible. It is not called
    for plans that are like a plan it has refused.
    """
    peak = max(stretch.load for stretch in stretches)
    plans = []
    for count in bounds.counts(peak):
        share = peak / count
        if bounds.least_load <= share <= bounds.most_load:
            cpu, memory = model.cpu(share) / costs.utilization, model.memory(share)
            plan = size_plan(stretches, cpu, memory, model, bounds, costs, replicas_now)
            plans.append(plan._replace(replicas=count))
    refused: dict[int, str] = {}
    for plan in sorted(plans, key=lambda plan: (plan.cost, plan.replicas)):
        if not any(abs(plan.replicas - count) < NEAR_REFUSED * count for count in refused):
            why = refusal(plan)
            if not why:
                return plan
            refused[plan.replicas] = why
    return Infeasible(next(iter(refused.values()), "") or _none_carried(peak, bounds))


def least_replicas(load: float, model: PodModel, cpu_request: float, utilization: float) -> int:
    """Pods of a given request that carry a load at a utilization: the same model, read the other way."""
    left = cpu_request * utilization - model.base_cpu
    return ceil(load * model.cpu_per_load / left - _SLIVER) if left > 0 else 0


def size_plan(
    stretches: Sequence[LoadStretch],
    cpu: float,
    memory: float,
    model: PodModel,
    bounds: JointBounds,
    costs: ResourceCosts,
    now: int,
) -> SizePlan:
    """Return the plan with the HPA's number of pods in each stretch, and the cost of these pods and their starts."""
    counts = [least_replicas(stretch.load, model, cpu, costs.utilization) for stretch in stretches]
    pods = [min(max(count, bounds.min_replicas), bounds.max_replicas) for count in counts]
    hourly = cpu * costs.core_hour + memory / GIB * costs.gib_hour
    moves = sum(abs(after - before) for before, after in pairwise([now, *pods]))
    pod_hours = sum(count * stretch.hours for count, stretch in zip(pods, stretches, strict=True))
    cost = hourly * pod_hours + moves * costs.pod_start
    return SizePlan(max(pods), cpu, memory, cost, min(pods))


def _none_carried(peak: float, bounds: JointBounds) -> str:
    if bounds.min_replicas > bounds.max_replicas:
        return "min_replicas is above max_replicas"
    return (
        f"no count from {bounds.min_replicas} to {bounds.max_replicas} gives a pod between {bounds.least_load:.3g} and "
        f"{bounds.most_load:.3g} of the {peak:.3g} cores that are forecast"
    )

"""Replicas and size together, from one model of what a pod uses at a load.

A pod that carries the load `x` uses `base + per_load * x` of each resource. The total load that is forecast is shared
by the replicas, so every count implies a size, and every size a utilization at which an HPA keeps that count. What is
forecast is the total, which does not depend on either: nothing here can chase its own tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class PodModel:
    """What one pod uses of cores and bytes: without load, and for each unit of load."""

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
class Bounds:
    """Within what replicas and sizes have to stay; a quota is over all pods, a node holds at least one pod."""

    min_replicas: int = 1
    max_replicas: int = 100
    node_cpu: float = inf
    node_memory: float = inf
    quota_cpu: float = inf
    quota_memory: float = inf


@dataclass(frozen=True, slots=True)
class Costs:
    """Prices per hour, what starting or stopping a pod costs once, and the share of a request that should be used."""

    core_hour: float = 1.0
    gib_hour: float = 0.13
    pod_start: float = 0.0
    hours: float = 24.0
    utilization: float = 0.7


class Plan(NamedTuple):
    """A count, the requests of one pod in cores and bytes, and what it costs over the hours."""

    replicas: int
    cpu: float
    memory: float
    cost: float


class Infeasible(NamedTuple):
    """No count satisfies every bound; which one the last count failed at."""

    reason: str


_GIB = 2.0**30


def joint_choice(load: float, model: PodModel, bounds: Bounds, costs: Costs, replicas_now: int) -> Plan | Infeasible:
    """The cheapest count and size for a total load (its forecast quantile over the interval, never what one pod used).

    CPU is requested so that the load uses `costs.utilization` of it, memory whole, since it cannot be lent.
    """
    plans = list(_plans(load, model, costs, replicas_now, bounds))
    possible = [plan for plan in plans if not _refusal(plan, bounds)]
    if not possible:
        return Infeasible(_refusal(plans[-1], bounds) if plans else "min_replicas is above max_replicas")
    return min(possible, key=lambda plan: (plan.cost, plan.replicas))


def _plans(load: float, model: PodModel, costs: Costs, replicas_now: int, bounds: Bounds) -> Iterator[Plan]:
    for replicas in range(bounds.min_replicas, bounds.max_replicas + 1):
        share = load / replicas
        cpu, memory = model.cpu(share) / costs.utilization, model.memory(share)
        hourly = replicas * (cpu * costs.core_hour + memory / _GIB * costs.gib_hour)
        moving = abs(replicas - replicas_now) * costs.pod_start
        yield Plan(replicas, cpu, memory, hourly * costs.hours + moving)


def _refusal(plan: Plan, bounds: Bounds) -> str:
    """Why a plan is not possible; empty if it is."""
    if plan.cpu > bounds.node_cpu or plan.memory > bounds.node_memory:
        return f"a pod of {plan.cpu:.3g} cores and {plan.memory / _GIB:.3g} GiB is larger than a node"
    if plan.replicas * plan.cpu > bounds.quota_cpu or plan.replicas * plan.memory > bounds.quota_memory:
        return f"{plan.replicas} pods of {plan.cpu:.3g} cores and {plan.memory / _GIB:.3g} GiB exceed the quota"
    return ""


def least_replicas(load: float, model: PodModel, cpu_request: float, utilization: float) -> int:
    """Pods of a given request that carry a load at a utilization: the same model, read the other way."""
    room = cpu_request * utilization - model.base_cpu
    return ceil(load * model.cpu_per_load / room) if room > 0 else 0

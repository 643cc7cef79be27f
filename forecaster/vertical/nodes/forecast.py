"""Requests and usage of a pool's pods in the coming windows, and the number of nodes for them, with the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from forecaster.vertical.cluster_rules.node import Resident
from forecaster.vertical.cluster_rules.resource_list import CPU_RESOURCE, MEMORY_RESOURCE, MILLI
from forecaster.vertical.cluster_rules.server import Server
from forecaster.vertical.nodes.joint_samples import DemandWindow, Floats, JointSum, sum_of
from forecaster.vertical.nodes.pools import Member, Packing, Pool, pack


@dataclass(frozen=True, slots=True, eq=False)
class PoolWindow:
    """Forecast of one pool in one window; CPU in cores, memory in bytes."""

    begin: datetime
    until: datetime
    requested_cpu: JointSum
    requested_memory: JointSum
    used_cpu: JointSum
    used_memory: JointSum
    replicas: Mapping[str, int]
    """Pods of each workload in the scenario that needs this much."""
    packing: Packing
    unasked_cpu: float
    """Part of the requested CPU that no replica requests yet, beside that of the present pods."""
    unasked_memory: float


@dataclass(frozen=True, slots=True, eq=False)
class PoolForecast:
    """Forecast of one pool, window by window; `requested_*` and `allocatable_*` are present amounts."""

    pool: Pool
    members: tuple[Member, ...]
    requested_cpu: float
    requested_memory: float
    allocatable_cpu: float
    allocatable_memory: float
    windows: tuple[PoolWindow, ...]
    unforecast: tuple[str, ...]
    """Workloads of the pool without a forecast: taken to stay as they are."""

    @property
    def peak(self) -> PoolWindow | None:
        """Return the window that needs most nodes; the first of equals, by requests."""
        return max(
            self.windows, key=lambda window: (window.packing.new_nodes, window.requested_cpu.value), default=None
        )

    @property
    def nodes_needed(self) -> int:
        """Number of nodes that the pool needs at its peak."""
        return len(self.pool.nodes) + (self.peak.packing.new_nodes if self.peak else 0)


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """Aim of the forecast: a quantile of each pool's sum, on this server; the generator shuffles for comparison."""

    quantile: float
    generator: np.random.Generator
    server: Server


@dataclass(frozen=True, slots=True)
class _Present:
    """A pool at present: its workloads, the pods on its nodes, and pods by workload: there, and on all nodes."""

    pool: Pool
    members: tuple[Member, ...]
    residents: tuple[Resident, ...]
    there: Mapping[str, int]
    placed: Mapping[str, int]

    @property
    def fixed(self) -> tuple[float, float]:
        """Cores and bytes requested by pods without a forecast: daemons, jobs, static pods."""
        workloads = {member.workload for member in self.members}
        return _requested(resident for resident in self.residents if resident.workload not in workloads)

    def _pods(self, counts: Mapping[str, int]) -> Floats:
        return _column([counts.get(member.workload, 0) for member in self.members])

    def requested(self, replicas: Floats) -> tuple[Floats, Floats]:
        """Return cores and bytes [member + 1, sample] of these replicas; the last row is pods without a forecast."""
        # pods on the nodes of other pools are requested there
        local = np.maximum(replicas - (self._pods(self.placed) - self._pods(self.there)), 0)
        cpu = _column([member.cpu for member in self.members])
        memory = _column([member.memory for member in self.members])
        fixed_cpu, fixed_memory = (np.full((1, replicas.shape[1]), value) for value in self.fixed)
        return np.vstack([local * cpu, fixed_cpu]), np.vstack([local * memory, fixed_memory])

    def used(self, demand: DemandWindow, amounts: Floats) -> Floats:
        """Return [workload, sample] of `amounts`: of each workload the share of its pods that is on this pool."""
        known = [name for name in self.there if name in demand.rows]
        shares = [self.there[name] / self.placed[name] for name in known]
        return amounts[[demand.rows[name] for name in known]] * _column(shares)

    def unasked(self, replicas: Floats) -> Floats:
        """Return [member, sample] without stated replicas on no node: they ask for nodes, or a quota keeps them out."""
        placed = self._pods(self.placed)
        waiting = np.maximum(_column([member.replicas for member in self.members]) - placed, 0)
        return np.where(replicas > placed, np.maximum(replicas - waiting, placed), replicas)


def pool_forecast(
    pool: Pool, members: Sequence[Member], residents: Iterable[Resident], windows: Sequence[DemandWindow], aim: Aim
) -> PoolForecast:
    """Requested and used at this quantile of the joint forecast, and the nodes for it."""
    nodes, pods = {node.name for node in pool.nodes}, list(residents)
    inside = tuple(pod for pod in pods if pod.node in nodes)
    there, placed = (Counter(pod.workload for pod in group) for group in (inside, pods))
    present = _Present(pool, tuple(members), inside, there, placed)
    known = windows[0].rows if windows else {}
    requested_cpu, requested_memory = _requested(present.residents)
    return PoolForecast(
        pool=pool,
        members=present.members,
        requested_cpu=requested_cpu,
        requested_memory=requested_memory,
        allocatable_cpu=sum(node.scheduler_allocatable.get(CPU_RESOURCE, 0) for node in pool.nodes) / MILLI,
        allocatable_memory=float(sum(node.scheduler_allocatable.get(MEMORY_RESOURCE, 0) for node in pool.nodes)),
        windows=tuple(_window(present, window, aim) for window in windows),
        unforecast=tuple(member.workload for member in members if member.workload not in known),
    )


def _requested(residents: Iterable[Resident]) -> tuple[float, float]:
    """Return the requests of pods in cores and bytes."""
    requests = [resident.requests for resident in residents]
    return sum(amounts.get(CPU_RESOURCE, 0) for amounts in requests) / MILLI, float(
        sum(amounts.get(MEMORY_RESOURCE, 0) for amounts in requests)
    )


def _window(present: _Present, demand: DemandWindow, aim: Aim) -> PoolWindow:
    members = present.members
    replicas = _replicas(members, demand)
    cpu, memory = present.requested(replicas)
    unasked = present.requested(present.unasked(replicas))
    sums = cpu.sum(axis=0), memory.sum(axis=0)
    counts = _scenario(present, replicas, sums, aim.quantile, known=demand.dependence_known)
    growth = [(member, counts[member.workload] - member.replicas) for member in members]
    growing = [(member, more) for member, more in growth if more > 0]

    def total(amounts: Floats) -> JointSum:
        return sum_of(amounts, aim.quantile, aim.generator, known=demand.dependence_known)

    return PoolWindow(
        begin=demand.begin,
        until=demand.until,
        requested_cpu=total(cpu),
        requested_memory=total(memory),
        used_cpu=total(present.used(demand, demand.cpu)),
        used_memory=total(present.used(demand, demand.memory)),
        replicas=counts,
        packing=pack(present.pool, growing, present.residents, aim.server),
        unasked_cpu=total(unasked[0]).value,
        unasked_memory=total(unasked[1]).value,
    )


def _replicas(members: Sequence[Member], demand: DemandWindow) -> Floats:
    """[member, sample]; as many as now where nothing is forecast."""
    rows = [demand.rows.get(member.workload) for member in members]
    size = demand.cpu.shape[1]
    return np.array(
        [
            np.full(size, float(member.replicas)) if row is None else member.replicas_for(demand.cpu[row])
            for member, row in zip(members, rows, strict=True)
        ]
    ).reshape(len(members), size)


def _scenario(
    present: _Present, replicas: Floats, sums: Sequence[Floats], quantile: float, *, known: bool
) -> dict[str, int]:
    """Pods of each workload in one coherent future at this quantile of the scarcer resource.

    `sums` [sample] are cores and bytes that all members request together. Where the dependence is unknown there is no
    such future: each workload is at its own quantile, all at once.
    """
    if known and sums[0].size:
        nodes = [node.scheduler_allocatable for node in present.pool.nodes]
        cpu, memory = (max(sum(node.get(name, 0) for node in nodes), 1) for name in (CPU_RESOURCE, MEMORY_RESOURCE))
        order = np.argsort(np.maximum(sums[0] * MILLI / cpu, sums[1] / memory), kind="stable")
        pods = replicas[:, order[min(int(np.ceil(quantile * len(order))), len(order)) - 1]]
    else:
        pods = np.quantile(replicas, quantile, axis=1, method="higher")
    return {member.workload: int(count) for member, count in zip(present.members, pods, strict=True)}


def _column(values: Sequence[float]) -> Floats:
    return np.array(values, np.float64)[:, None]

"""Forecast of node pools, from a cycle's forecaster and history and the known nodes.

`NodePools` renews it now and then, after everything that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.cycle.load_forecast import DemandSamples, carried_at, demand_samples
from forecaster.domain.signal import CPU
from forecaster.errors import SourceError
from forecaster.horizontal.targets import targets_of
from forecaster.vertical.nodes.forecast import Aim, PoolForecast, pool_forecast
from forecaster.vertical.nodes.headroom import Headroom, Pressure, headroom, pressures
from forecaster.vertical.nodes.pools import Member, homes_of, pools_of

if TYPE_CHECKING:
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import Workload
    from forecaster.forecasting.forecaster import Forecaster
    from forecaster.ports import Histories
    from forecaster.vertical.admission.cluster import Cluster
    from forecaster.vertical.cluster_rules.node import Node, Resident


@dataclass(frozen=True, slots=True, eq=False)
class NodeForecast:
    """Forecast of the nodes of a cluster at one instant."""

    at: datetime
    quantile: float
    pools: tuple[PoolForecast, ...]
    headroom: tuple[Headroom, ...]
    pressures: tuple[Pressure, ...]
    unplaced: tuple[str, ...] = ()
    """Workloads without a pod on a known node."""


def node_forecast(
    workloads: Sequence[Workload],
    history: Histories,
    forecaster: Forecaster,
    policies: Policies,
    cluster: Cluster,
    now: datetime,
    *,
    quantile: float = 0.95,
    warm: timedelta = timedelta(minutes=30),
) -> NodeForecast:
    """Forecast the requests of each pool; `warm` is how far ahead capacity is reserved. No nodes: no pools."""
    demand = demand_samples(workloads, history, forecaster, policies, now)
    pools = pools_of(cluster.nodes or ())
    residents = cluster.lasting
    known_homes = homes_of(residents, pools)
    homes = {workload.id: known_homes.get(workload.id.path) for workload in workloads}
    aim = Aim(quantile, np.random.default_rng(int(now.timestamp())), cluster.server)
    at_home = {
        pool.name: [_member(workload, policies, cluster) for workload in workloads if homes[workload.id] == pool.name]
        for pool in pools
    }
    forecasts = tuple(pool_forecast(pool, at_home[pool.name], residents, demand.windows, aim) for pool in pools)
    return NodeForecast(
        at=now,
        quantile=quantile,
        pools=forecasts,
        headroom=tuple(headroom(forecast, now + warm) for forecast in forecasts),
        pressures=tuple(_pressures(cluster.nodes or (), residents, demand)),
        unplaced=tuple(str(id_) for id_, pool in homes.items() if pool is None),
    )


def present_pools(cluster: Cluster, now: datetime, *, quantile: float = 0.95) -> NodeForecast:
    """The pools as they are, summed over their pods, however many workloads there are; nothing is forecast."""
    pools = pools_of(cluster.nodes or ())
    pool_of = {node.name: pool.name for pool in pools for node in pool.nodes}
    there: dict[str, list[Resident]] = {pool.name: [] for pool in pools}
    for resident in cluster.lasting:
        if resident.node in pool_of:
            there[pool_of[resident.node]].append(resident)
    aim = Aim(quantile, np.random.default_rng(0), cluster.server)
    forecasts = tuple(pool_forecast(pool, (), there[pool.name], (), aim) for pool in pools)
    return NodeForecast(now, quantile, forecasts, headroom=(), pressures=())


def _member(workload: Workload, policies: Policies, cluster: Cluster) -> Member:
    policy = policies.of(workload.id).horizontal
    targets = targets_of(workload, policy)
    per_pod = [capacity for target in targets if (capacity := carried_at(target, CPU)) is not None]
    scaled = workload.autoscaler
    return Member(
        workload=workload.id.path,
        pod=cluster.context_of(workload, workload.replicas).completed({}),
        replicas=workload.replicas,
        per_pod=min(per_pod) if per_pod and (scaled or policy.max_replicas) else None,
        min_replicas=scaled.min_replicas if scaled else policy.min_replicas or 1,
        max_replicas=scaled.max_replicas if scaled else policy.max_replicas,
    )


def _pressures(nodes: Sequence[Node], residents: Sequence[Resident], demand: DemandSamples) -> list[Pressure]:
    """Return the memory pressure of nodes in the coming window in which memory is highest."""
    if not demand.windows:
        return []
    highest = max(demand.windows, key=lambda window: float(np.quantile(window.memory.sum(axis=0), 0.95)))
    return pressures(nodes, residents, demand.memory, highest)


MAX_PAIRS = 50_000
"""Workloads times nodes: placing the pods of each workload looks at each node in each of eight windows, some 0.2 ms of
CPU a pair. This many take ten seconds, once an hour, in the thread of the cycle."""


@dataclass(slots=True)
class NodePools:
    """The latest node forecast. Nodes and pods are read for it and not stored, because pods are many.

    `cluster` raises `SourceError` where the cluster cannot be read.
    """

    cluster: Callable[[datetime], Cluster]
    every: timedelta
    latest: NodeForecast | None = None
    refused: str = ""
    """Reason, as a sentence, for a missing forecast or one that has the present only."""
    tried: datetime | None = None

    def renew(
        self,
        workloads: Sequence[Workload],
        history: Histories,
        forecaster: Forecaster,
        policies: Policies,
        now: datetime,
    ) -> None:
        """Make it anew where it is old enough. Of a cluster that cannot be read nothing older is shown."""
        if self.tried is not None and self.tried <= now < self.tried + self.every:
            return
        self.tried, self.latest, self.refused = now, None, ""
        try:
            cluster = self.cluster(now)
        except SourceError as error:
            self.refused = f"the nodes could not be read: {error}"
            return
        if not cluster.nodes:
            self.refused = "no nodes are known: let Prometheus scrape kube-state-metrics (kube_node_*, kube_pod_*)"
            return
        pairs = len(workloads) * len(cluster.nodes)
        if pairs > MAX_PAIRS:
            self.refused = (
                f"the coming day of {len(workloads)} workloads on {len(cluster.nodes)} nodes is more than the service "
                "works out beside its cycles; `forecaster nodes --serve` is a process of its own for it"
            )
            self.latest = present_pools(cluster, now)
            return
        self.latest = node_forecast(workloads, history, forecaster, policies, cluster, now)

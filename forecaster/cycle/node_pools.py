"""NodePools: the node pools of the cluster ahead of time, made anew now and then after all that decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.cycle.node_forecast import node_forecast, present_pools
from forecaster.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from forecaster.cycle.node_forecast import NodeForecast
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import Workload
    from forecaster.forecasting.forecaster import Forecaster
    from forecaster.ports import Histories
    from forecaster.vertical.admission.cluster import Cluster


MOST_PAIRS = 50_000
"""Workloads times nodes: placing the pods of each workload looks at each node in each of eight windows, some 0.2 ms of
CPU a pair. This many take ten seconds, once an hour, in the thread of the cycle."""


@dataclass(slots=True)
class NodePools:
    """The newest forecast of nodes. Nodes and pods are asked for, used and forgotten: pods are many.

    `cluster` raises `SourceError` where it cannot say.
    """

    cluster: Callable[[datetime], Cluster]
    every: timedelta
    latest: NodeForecast | None = None
    refused: str = ""
    """Why there is none, or only the present, in a sentence."""
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
        if pairs > MOST_PAIRS:
            self.refused = (
                f"the coming day of {len(workloads)} workloads on {len(cluster.nodes)} nodes is more than the service "
                "works out beside its cycles; `forecaster nodes --serve` is a process of its own for it"
            )
            self.latest = present_pools(cluster, now)
            return
        self.latest = node_forecast(workloads, history, forecaster, policies, cluster, now)

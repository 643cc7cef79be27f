"""Node pools beside the cycles: renewed once an hour, or refused with a reason."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from forecaster.app.outlets import NodesText
from forecaster.cycle.node_forecast import MAX_PAIRS, NodePools
from forecaster.errors import SourceUnavailable
from forecaster.vertical.admission.cluster import Cluster
from tests.support.builders import NOON, workload
from tests.support.cluster_rules import node, resident

if TYPE_CHECKING:
    from datetime import datetime

HOUR = timedelta(hours=1)
UNUSED: Any = None


class Clusters:
    """A source of the cluster that counts how often it is read; without a cluster it is down."""

    def __init__(self, cluster: Cluster | None) -> None:
        self.cluster, self.reads = cluster, 0

    def __call__(self, _now: datetime) -> Cluster:
        self.reads += 1
        if self.cluster is None:
            raise SourceUnavailable("prometheus: no answer")
        return self.cluster


def refusal(cluster: Cluster | None, workloads: int = 1) -> str:
    pools = NodePools(Clusters(cluster), HOUR)
    pools.renew([workload("web")] * workloads, UNUSED, UNUSED, UNUSED, NOON)
    assert pools.latest is None
    return pools.refused


def large(nodes: int = 10) -> NodePools:
    """Pools with more pairs of workload and node than a cycle has time for."""
    pods = [resident(f"n{i % nodes}", "250m", "512Mi", workload=f"shop/w{i}") for i in range(4 * nodes)]
    cluster = Cluster(nodes=tuple(node(f"n{i}", "2", "8Gi") for i in range(nodes)), residents=tuple(pods))
    pools = NodePools(Clusters(cluster), HOUR)
    pools.renew([workload("web")] * (MAX_PAIRS // nodes + 1), UNUSED, UNUSED, UNUSED, NOON)
    return pools


def test_missing_pools_have_a_reason() -> None:
    assert refusal(None) == "the nodes could not be read: prometheus: no answer"
    assert "kube-state-metrics" in refusal(Cluster())


def test_more_than_a_cycle_has_time_for_is_left_to_a_process_of_its_own() -> None:
    assert "forecaster nodes --serve" in large().refused


def test_pools_that_are_too_large_are_shown_as_they_are() -> None:
    shown = msgspec.json.decode(NodesText(large())())
    (pool,) = shown["pools"]
    assert (pool["nodes"], pool["nodes_needed"], pool["windows"]) == (10, 10, [])
    assert (pool["requested"]["cpu_cores"], pool["allocatable"]["cpu_cores"]) == (10.0, 20.0)
    assert "forecaster nodes --serve" in shown["refused"]


def test_nodes_are_asked_for_once_in_a_while_also_where_they_were_refused() -> None:
    clusters = Clusters(None)
    pools = NodePools(clusters, HOUR)
    for minutes in (0, 1, 59, 60):
        pools.renew([], UNUSED, UNUSED, UNUSED, NOON + timedelta(minutes=minutes))
    assert clusters.reads == 2

"""The queries about nodes and namespaces against a small cluster in the real Prometheus, another one beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.workload import WorkloadId
from forecaster.sources.cluster_facts import read_cluster
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from forecaster.sources.wire import at_instant
from forecaster.vertical.cluster_rules.server import Server
from tests.support.exposition import World
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.sources.facts import InstantRow
    from forecaster.vertical.admission.cluster import Cluster
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
AT = datetime(2024, 5, 6, 12, 14, tzinfo=UTC)
WEB = WorkloadId("shop", "Deployment", "web")


def small(cluster: World, node: str = "n1") -> None:
    """One node with a deployment's pod and a daemon on it."""
    for resource, value in (("cpu", 4.0), ("memory", 2.0**34), ("pods", 110.0)):
        cluster.gauge("kube_node_status_allocatable", value, node=node, resource=resource)
    cluster.gauge("kube_node_status_capacity", 2.0**35, node=node, resource="memory")
    cluster.gauge("kube_node_labels", 1, node=node, label_topology_kubernetes_io_zone="a")
    cluster.gauge("kube_node_spec_taint", 1, node=node, key="spot", effect="NoSchedule")
    cluster.gauge("kube_node_spec_unschedulable", 0, node=node)
    cluster.gauge("kube_node_info", 1, node=node, kubelet_version="v1.36.3")
    cluster.replicaset("shop", "web-7d", "Deployment", "web")
    cluster.pod("shop", "web-7d-a", "ReplicaSet", "web-7d")
    cluster.pod("kube-system", "agent-x", "DaemonSet", "agent")
    for namespace, pod, kind in (("shop", "web-7d-a", "ReplicaSet"), ("kube-system", "agent-x", "DaemonSet")):
        who = {"namespace": namespace, "pod": pod}
        cluster.gauge("kube_pod_info", 1, node=node, created_by_kind=kind, created_by_name="agent", **who)
        cluster.gauge("kube_pod_container_resource_requests", 0.5, container="app", resource="cpu", **who)
    mesh = {"namespace": "shop", "pod": "web-7d-a"}
    for container, policy in (("mesh", "Always"), ("setup", "")):
        cluster.gauge("kube_pod_init_container_info", 1, container=container, restart_policy=policy, **mesh)
        cluster.gauge("kube_pod_init_container_resource_requests", 0.2, container=container, resource="cpu", **mesh)
    cluster.gauge("kube_deployment_spec_strategy_rollingupdate_max_surge", 2, namespace="shop", deployment="web")
    limit = {"namespace": "shop", "limitrange": "l", "type": "Container", "resource": "cpu"}
    cluster.gauge("kube_limitrange", 2, constraint="max", **limit)
    for kind, value in (("hard", 10), ("used", 4)):
        cluster.gauge("kube_resourcequota", value, namespace="shop", resourcequota="q", resource="pods", type=kind)


@pytest.fixture(scope="module")
def cluster(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    data = tmp_path_factory.mktemp("clusters") / "data"
    own, other = World("ours", START.timestamp()), World("other", START.timestamp())
    small(own)
    small(other, "n9")
    fill(data, [*own.spans, *other.spans], prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        queries = Queries(labels={"cluster": "ours"}, namespaces="shop")
        source = PrometheusSource(PrometheusSettings(url=running.url), queries)

        def ask(name: str, query: str) -> tuple[InstantRow, ...]:
            return source.rows(at_instant(name, query, AT))

        yield read_cluster(ask, queries.rendered)
        source.close()


def test_nodes_are_those_of_our_cluster(cluster: Cluster) -> None:
    (node,) = cluster.nodes or ()
    assert (node.name, node.scheduler_allocatable["cpu"], node.memory_capacity) == ("n1", 4000, 2**35)
    assert node.labels == {"topology.kubernetes.io/zone": "a"}
    assert ([taint.key for taint in node.taints], node.unschedulable) == (["spot"], False)
    assert cluster.server == Server(1, 36)


def test_pods_of_every_namespace_take_room(cluster: Cluster) -> None:
    residents = {
        resident.workload: (resident.requests, resident.daemon, resident.memory_bytes) for resident in cluster.residents
    }
    assert residents == {
        "shop/Deployment/web": ({"cpu": 700}, False, 1000),
        "kube-system/DaemonSet/agent": ({"cpu": 500}, True, 1000),
    }


def test_a_namespace_s_rules_and_a_workload_s_containers(cluster: Cluster) -> None:
    assert (cluster.limit_ranges or {})["shop"][0].items[0].max == {"cpu": 2000}
    assert (cluster.quotas or {})["shop"][0].hard == {"pods": 10_000}
    assert [container.name for container in cluster.templates[WEB].containers] == ["app"]
    assert cluster.templates[WEB].containers[0].resources.requests == {"cpu": 500}
    assert cluster.rollouts[WEB].surge == 2


def test_a_sidecar_is_an_init_container_that_runs_beside_the_app(cluster: Cluster) -> None:
    (mesh,) = cluster.templates[WEB].init_containers
    assert (mesh.name, mesh.sidecar, mesh.resources.requests) == ("mesh", True, {"cpu": 200})
